"""Time, chance, and what an operating system gives, within a world."""

from __future__ import annotations

import datetime
import importlib
import os
import pickle
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from time import sleep as sleep_by_name
from typing import Any

import pytest

from tests.support.virtual_time import Machine, in_virtual_time
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.threads.errors import Refused, Stuck
from watchkeeper.virtual.threads.watchdog import Watchdog

START = 1_767_225_600
"""2026-01-01, midnight UTC."""


class Waiter:
    """Holds functions of time as programs do."""

    wait = staticmethod(time.sleep)

    def __init__(self, now: Callable[[], datetime.datetime] = datetime.datetime.utcnow) -> None:
        self.now = now


def test_hours_pass_in_no_time() -> None:
    """Every clock shows the hours that were slept, wherever a program has its function from."""

    def sleep() -> list[float]:
        before = (time.time(), time.monotonic(), time.perf_counter(), time.time_ns() / 1e9)
        time.sleep(3600)
        sleep_by_name(3600)
        Waiter.wait(3600)
        after = (time.time(), time.monotonic(), time.perf_counter(), time.time_ns() / 1e9)
        return [round(b - a) for a, b in zip(before, after, strict=True)]

    assert in_virtual_time(sleep) == [10_800] * 4


def test_the_date_is_the_worlds() -> None:
    """`datetime` and `time` agree on the date, and instances stay what they are."""

    def dates() -> None:
        now = datetime.datetime.now(datetime.UTC)
        assert abs(now.timestamp() - START) < 1
        assert (now.year, now.month, now.day) == (2026, 1, 1)
        assert isinstance(now, datetime.datetime)
        assert isinstance(now, datetime.date)
        assert type(pickle.loads(pickle.dumps(now))) is type(now)
        assert isinstance(now + datetime.timedelta(1), datetime.datetime)
        assert Waiter().now().year == 2026
        assert datetime.datetime.utcnow().year == 2026
        assert datetime.date.today().year in (2025, 2026)
        assert time.gmtime().tm_year == 2026
        assert time.strftime("%S") == time.strftime("%S", time.localtime())
        assert not isinstance(datetime.date(2020, 1, 1), datetime.datetime)
        now, day = datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1)
        # Compiled modules compare it with the size that they were built with.
        assert datetime.datetime.__basicsize__ == type(now).__basicsize__
        assert datetime.date.__basicsize__ == type(day).__basicsize__
        assert datetime.datetime(2020, 1, 2) == datetime.datetime.fromisoformat("2020-01-02")

    in_virtual_time(dates)
    assert abs(datetime.datetime.now().timestamp() - time.time()) < 5


def test_a_class_of_ones_own_from_datetime() -> None:
    """A class that derives from `datetime` has instances of its own."""

    class Mine(datetime.datetime):
        pass

    def now() -> Any:
        return Mine.now(), Mine(2020, 1, 1), isinstance(datetime.datetime.now(), Mine)

    mine, made, is_mine = in_virtual_time(now)
    assert (type(mine), type(made), is_mine) == (Mine, Mine, False)
    assert mine.year in (2025, 2026)


def test_a_loop_that_reads_the_clock_gets_there() -> None:
    """A loop that waits for a moment without a wait ends, and does not starve others."""

    def poll() -> list[int]:
        woken: list[int] = []
        threading.Timer(1, woken.append, [1]).start()
        until = time.monotonic() + 5
        while time.monotonic() < until:
            pass
        return woken

    assert in_virtual_time(poll) == [1]


def drawn() -> list[Any]:
    """A draw of every kind."""
    order = list(range(10))
    random.shuffle(order)
    return [
        *(order, random.random(), random.randrange(100), random.choice("abc")),
        *(random.Random().random(), random.SystemRandom().random(), secrets.token_hex(4)),
        *(str(uuid.uuid4()), str(uuid.uuid1()), os.urandom(4), os.urandom(0)),
    ]


def test_chance_is_the_seeds() -> None:
    """Every source of chance gives the same for one seed, and other values for another."""
    one = in_virtual_time(drawn, seed=1)

    assert one == in_virtual_time(drawn, seed=1)
    assert all(
        mine != others
        for mine, others in zip(one[:-1], in_virtual_time(drawn, seed=2)[:-1], strict=True)
        if mine not in list("abc")
    )


def test_each_process_draws_for_itself() -> None:
    """Two processes have other draws, numbers and host names."""
    machine = Machine(seed=1)
    for name in ("a", "b"):
        machine.process(name, lambda: (random.random(), os.getpid(), socket.gethostname()))
    results = machine.run()

    assert all(mine != other for mine, other in zip(results["a"], results["b"], strict=True))


def test_an_alarm_interrupts_the_main_thread() -> None:
    """`signal.alarm` calls the handler in a sleep, which then goes on to its end."""

    def main() -> list[Any]:
        rung: list[float] = []
        began = time.monotonic()
        signal.signal(signal.SIGALRM, lambda *_: rung.append(round(time.monotonic() - began)))
        signal.alarm(2)
        time.sleep(5)
        return [*rung, round(time.monotonic() - began)]

    before = signal.getsignal(signal.SIGALRM)
    assert in_virtual_time(main) == [2, 5]
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_signal_ends_a_process() -> None:
    """SIGKILL to another process of the world ends it, and to none raises an error."""
    machine = Machine()
    machine.process("victim", time.sleep, 1_000)
    victim = machine.scheduler.processes[0]

    def kill() -> bool:
        os.kill(victim.pid, signal.SIGKILL)
        with pytest.raises(ProcessLookupError):
            os.kill(victim.pid, signal.SIGKILL)
        return True

    machine.process("killer", kill)
    assert machine.run() == {"killer": True}
    assert victim.ending == "it has crashed"


def test_an_exit_without_clean_up() -> None:
    """`os._exit` ends the process, and nothing else of it runs."""
    machine = Machine()

    def leave() -> None:
        try:
            os._exit(3)
        finally:
            machine.results["finally"] = True

    machine.process("main", leave)
    machine.run()
    assert "main" not in machine.results
    assert machine.scheduler.processes[0].ending == "it has ended by os._exit(3)"


def test_an_import_is_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run of a process imports a module, the second does not: both are one run."""
    (tmp_path / "imported_once.py").write_text(
        "import threading, time\nwith threading.Lock():\n    time.monotonic()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def steps() -> tuple[int, int]:
        machine = Machine(RandomPolicy(3))

        def use() -> None:
            importlib.import_module("imported_once")
            time.sleep(1)

        machine.process("main", use)
        machine.run()
        return machine.scheduler.step, machine.scheduler.turn

    assert "imported_once" not in sys.modules
    assert steps() == steps()
    del sys.modules["imported_once"]


REFUSED: dict[str, Callable[[], Any]] = {
    "fork": lambda: os.fork(),
    "subprocess": lambda: subprocess.run([sys.executable, "-c", ""], check=False),
    "system": lambda: os.system("true"),
    "a file that is written": lambda: open("/tmp/x", "w"),  # noqa: SIM115
    "a descriptor that is written": lambda: os.open("/tmp/x", os.O_WRONLY | os.O_CREAT),
    "a path that is written": lambda: Path("/tmp/x").write_text("x"),
    "a datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    "another network": lambda: socket.create_connection(("192.0.2.1", 80), 1),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_virtual_is_refused(what: str) -> None:
    """A sentence says what to do instead."""

    def attempt() -> str:
        with pytest.raises(Refused) as found:
            REFUSED[what]()
        return str(found.value)

    assert len(in_virtual_time(attempt)) > 40


def test_what_a_world_allows_is_done(tmp_path: Path) -> None:
    """Files may be written where the world permits it; reading always works."""
    machine = Machine()
    machine.scheduler.allowed = frozenset({"files"})
    machine.process("main", (tmp_path / "x").write_text, "text")
    machine.run()

    assert in_virtual_time((tmp_path / "x").read_text) == "text"


@pytest.mark.parametrize("is_main", [True, False], ids=["main thread", "another thread"])
def test_a_loop_without_end_is_stopped(is_main: bool) -> None:
    """The watchdog names the line of a thread that computes for too long."""

    def spin() -> None:
        while True:
            pass

    found: list[BaseException] = []

    def watched() -> None:
        machine = Machine()
        machine.process("main", spin)
        try:
            with Watchdog(machine.scheduler, limit_s=0.05):
                machine.run()
        except Stuck as error:
            found.append(error)

    if is_main:
        watched()
    else:
        thread = threading.Thread(target=watched)
        thread.start()
        thread.join()
    assert "test_system.py" in str(found[0])
    assert "in spin" in str(found[0])
