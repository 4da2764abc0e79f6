"""The embedded ZooKeeper: its start, its faults, and its clean end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import time

import pytest
from kazoo.client import KazooClient

from tests.support import live_zookeeper
from tests.support.live_zookeeper import (
    LONG_MS,
    SETTINGS,
    TICK_MS,
    connected,
    disconnect,
    is_there,
    until,
)
from tests.support.patience import PATIENCE_S
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real import ports
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.ports import free_ports, is_free
from watchkeeper.real.supervise.child_process import ChildProcess
from watchkeeper.real.zookeeper import jars, java
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.session_times import agreed_session_times, session_times_of
from watchkeeper.real.zookeeper.settings import Ports, Settings

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

QUICK = SETTINGS


@pytest.fixture(scope="module", name="zookeeper")
def fixture_zookeeper(own_zookeeper: Ensemble) -> Ensemble:
    """Tests here stop, kill and pause the server."""
    return own_zookeeper


@pytest.fixture
def client(zookeeper: Ensemble) -> KazooClient:
    """A client of the module's server."""
    client = connected(zookeeper.hosts)
    yield client
    disconnect(client)


def silent_session(server: Ensemble, timeout_ms: int) -> socket.socket:
    """A connection whose session never sends anything again."""
    line = socket.create_connection((ports.HOST, server.servers[0].ports.client))
    effect = struct.pack(">iqiqi16s?", 0, 0, timeout_ms, 0, 16, bytes(16), False)
    line.sendall(struct.pack(">i", len(effect)) + effect)
    assert line.recv(64)
    return line


def only_loopback(places: Ports) -> bool:
    """Whether these ports are unreachable at another address of this machine."""
    for port in places.by_use.values():
        with suppress(OSError), socket.create_connection(("127.0.0.2", port), 0.5):
            return False
    return True


# --- one server ------------------------------------------------------------------------


def test_it_serves_this_machine_alone(zookeeper: Ensemble) -> None:
    server = zookeeper.servers[0]

    assert server.role == "standalone"
    assert zookeeper.leader is server
    assert zookeeper.hosts == server.address == f"127.0.0.1:{server.ports.client}"
    assert server.four_letter_word("ruok", PATIENCE_S) == "imok"
    assert "zk_version\t3.9" in server.four_letter_word("mntr", PATIENCE_S)
    assert zookeeper.version.startswith("3.")
    assert only_loopback(server.ports)


def test_session_timeouts_are_bounded_in_ticks(zookeeper: Ensemble) -> None:
    report = zookeeper.servers[0].four_letter_word("conf", PATIENCE_S)

    assert f"tickTime={TICK_MS}\n" in report
    assert f"minSessionTimeout={2 * TICK_MS}\n" in report
    assert f"maxSessionTimeout={LONG_MS}\n" in report


def test_data_and_sessions_survive_kill_and_restart(
    zookeeper: Ensemble, client: KazooClient
) -> None:
    server = zookeeper.servers[0]
    client.create("/kept", b"1", ephemeral=True)
    before = client.client_id[0]

    assert server.kill()
    assert server.state == "down"
    assert server.pid is None
    assert server.role is None
    assert not server.kill()
    assert not server.pause()
    until(lambda: not client.connected)
    server.start()

    until(lambda: client.connected)
    assert client.get("/kept")[0] == b"1"
    assert client.client_id[0] == before


def test_a_restart_keeps_the_port(zookeeper: Ensemble, client: KazooClient) -> None:
    server = zookeeper.servers[0]
    pid = server.pid
    states: list[str] = []
    client.add_listener(states.append)

    server.restart()

    assert server.state == "running"
    assert server.pid != pid
    until(lambda: states[-2:] == ["SUSPENDED", "CONNECTED"])


def test_a_paused_server_answers_nothing_until_it_goes_on(zookeeper: Ensemble) -> None:
    server = zookeeper.servers[0]

    assert server.pause()
    assert server.state == "paused"
    assert not server.pause()
    # Its threads stop one by one.
    until(lambda: server.four_letter_word("ruok", timeout_s=0.2) == "")
    assert server.role is None

    assert server.resume()
    assert not server.resume()
    assert server.four_letter_word("ruok", PATIENCE_S) == "imok"


def test_a_paused_server_can_be_stopped(zookeeper: Ensemble) -> None:
    server = zookeeper.servers[0]
    pid = server.pid
    assert pid is not None
    server.pause()

    assert server.stop()

    assert not is_there(pid)
    server.start()


# --- the record of sessions ------------------------------------------------------------


def test_the_log_tells_when_sessions_began_and_ended(
    zookeeper: Ensemble, client: KazooClient
) -> None:
    already = len(zookeeper.session_times)
    began_ms = int(time() * 1000)
    short_lived = connected(zookeeper.hosts, 10.0)
    closed = short_lived.client_id[0]
    disconnect(short_lived)
    line = silent_session(zookeeper, 500)
    until(lambda: len(zookeeper.session_times) >= already + 4)
    line.close()

    opened, gone, opened_too, expired = zookeeper.session_times[already:]

    assert (opened.kind, opened.session, opened.timeout_ms) == (
        EventKind.SESSION_OPENED,
        closed,
        10_000,
    )
    assert (gone.kind, gone.session) == (EventKind.SESSION_CLOSED, closed)
    assert (opened_too.kind, opened_too.timeout_ms) == (EventKind.SESSION_OPENED, 500)
    assert (expired.kind, expired.session) == (EventKind.SESSION_EXPIRED, opened_too.session)
    assert began_ms <= opened_too.time_ms <= expired.time_ms - 500
    assert expired.time_ms <= time() * 1000
    assert opened.zxid < gone.zxid < opened_too.zxid < expired.zxid


def test_a_moment_bears_the_zxid_of_what_it_removed(
    zookeeper: Ensemble, client: KazooClient
) -> None:
    client.ensure_path("/owners")
    short_lived = connected(zookeeper.hosts)
    short_lived.create("/owners/mine", ephemeral=True)
    disconnect(short_lived)

    assert client.exists("/owners").pzxid == zookeeper.session_times[-1].zxid


def test_an_unfinished_record_is_not_read(
    zookeeper: Ensemble, client: KazooClient, tmp_path: Path
) -> None:
    assert client.exists("/")  # its session is a record, though no other test ran before
    log_file = max(
        zookeeper.servers[0].log_folder.glob("log.*"), key=lambda path: path.stat().st_size
    )
    log = log_file.read_bytes().rstrip(b"\0")
    (tmp_path / "log.notes").write_bytes(b"not a log")
    (tmp_path / "log.2").write_bytes(b"not a log")
    (tmp_path / "log.1").write_bytes(log)
    known = list(session_times_of(tmp_path))

    (tmp_path / "log.1").write_bytes(log[:-3])
    cut = list(session_times_of(tmp_path))
    (tmp_path / "log.1").write_bytes(log[:-30] + bytes([log[-30] ^ 1]) + log[-29:])
    spoilt = list(session_times_of(tmp_path))

    assert len(known) > len(cut) >= len(spoilt)
    assert cut == known[: len(cut)]


def test_what_one_server_alone_knows_does_not_count(
    zookeeper: Ensemble, client: KazooClient, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in "123"]

    shutil.copytree(zookeeper.servers[0].log_folder, folders[0])
    assert agreed_session_times(folders) == ()
    shutil.copytree(folders[0], folders[1])

    assert agreed_session_times(folders) == tuple(session_times_of(folders[1])) != ()


# --- an ensemble -----------------------------------------------------------------------


def test_an_ensemble_loses_its_leader_and_goes_on(needs_zookeeper: None) -> None:
    with Ensemble(3, settings=QUICK) as zookeeper:
        assert sorted(str(server.role) for server in zookeeper.servers) == [
            "follower",
            "follower",
            "leader",
        ]
        assert all(only_loopback(server.ports) for server in zookeeper.servers)
        client = connected(zookeeper.hosts)
        client.create("/kept", b"1")
        first = zookeeper.wait_for_leader()

        assert first.kill()
        second = zookeeper.wait_for_leader()
        assert second is not first
        first.start()
        assert first.role == "follower"

        second.pause()
        third = zookeeper.wait_for_leader()
        assert third is not second
        second.resume()
        second.wait_until_it_serves()

        assert client.retry(client.set, "/kept", b"2").version == 1
        session = client.client_id[0]
        disconnect(client)
        ours = [
            session_time.kind
            for session_time in zookeeper.session_times
            if session_time.session == session
        ]
        assert ours == [EventKind.SESSION_OPENED, EventKind.SESSION_CLOSED]

        third.kill()
        zookeeper.wait_for_leader().kill()
        until(lambda: zookeeper.leader is None)
        with pytest.raises(EnvironmentProblem, match=r"lead within 0\.1 s, but none does"):
            zookeeper.wait_for_leader(0.1)
        places = [port for server in zookeeper.servers for port in server.ports.by_use.values()]
        folder = zookeeper.folder
    assert not folder.exists()
    assert all(is_free(port) for port in places)


def test_a_folder_that_was_given_is_kept(needs_zookeeper: None, tmp_path: Path) -> None:
    zookeeper = Ensemble(settings=QUICK, folder=tmp_path / "kept", name="main/zookeeper")
    zookeeper.stop()

    assert (tmp_path / "kept" / "1" / "zoo.cfg").exists()
    assert zookeeper.server("main/zookeeper/1").state == "down"


# --- nothing outlives its parent -------------------------------------------------------

SERVERS = """
import sys, time
from pathlib import Path
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.settings import Settings
zookeeper = Ensemble(3, settings=Settings(tick_ms=200))
for server in zookeeper.servers:
    server.start(timeout_s=None)
zookeeper.servers[1].pause()
processes = [one._process for one in zookeeper.servers]
pids = [pid for process in processes for pid in (process.pid, process._watchdog.pid)]
Path(sys.argv[1]).write_text(" ".join(map(str, pids)) + f"\\n{zookeeper.folder}\\n")
time.sleep(600)
"""

HELD_OPEN = """
import os, sys, time
from pathlib import Path
from watchkeeper.real.supervise.child_process import ChildProcess
process = ChildProcess(["sleep", "600"], output=Path(os.devnull))
other = os.fork()
if other:
    Path(sys.argv[1]).write_text(f"{process.pid} {process._watchdog.pid}\\n{other}\\n")
time.sleep(600)
"""


def kill_parent(program: str, pid_file: Path) -> tuple[list[int], str]:
    """Run a program until it has written its pid file, and kill it; return its contents."""
    parent = subprocess.Popen([sys.executable, "-c", program, str(pid_file)])
    until(lambda: pid_file.exists() and pid_file.read_text().count("\n") == 2)
    first, second = pid_file.read_text().splitlines()
    pids = [int(pid) for pid in first.split()]
    assert all(is_there(pid) for pid in pids)
    parent.kill()
    parent.wait(PATIENCE_S)
    return pids, second


def test_servers_are_gone_when_their_parent_is_killed(
    needs_zookeeper: None, tmp_path: Path
) -> None:
    pids, folder = kill_parent(SERVERS, tmp_path / "pids")

    until(lambda: not any(is_there(pid) for pid in pids))
    until(lambda: not Path(folder).exists())

    assert not any(is_there(pid) for pid in pids)
    assert not Path(folder).exists()


def test_a_fork_that_holds_the_pipe_open_keeps_nothing_alive(tmp_path: Path) -> None:
    pids, fork = kill_parent(HELD_OPEN, tmp_path / "pids")
    try:
        until(lambda: not any(is_there(pid) for pid in pids))
        assert is_there(int(fork))
    finally:
        os.kill(int(fork), signal.SIGKILL)


def test_a_guard_passes_on_how_its_process_ended() -> None:
    by_itself = ChildProcess(["sh", "-c", "exit 3"], output=Path(os.devnull))
    killed = ChildProcess(["sleep", "600"], output=Path(os.devnull))
    assert killed.exit_code is None
    killed.kill()

    assert by_itself.wait()
    assert by_itself.exit_code == 3
    assert killed.exit_code == 128 + signal.SIGKILL
    assert not killed.send(signal.SIGCONT)


# --- what may be missing or in the way -------------------------------------------------


def program(folder: Path, says: str, code: int = 0) -> Path:
    """A program `java` that prints this."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    path.chmod(0o755)
    return folder


def test_java_of_java_home_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = program(tmp_path, 'openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(home))

    assert java.find_java() == home / "bin" / "java"


@pytest.mark.parametrize(
    ("says", "code", "problem"),
    [
        ('java version "1.8.0_392"', 0, "is Java 8, but ZooKeeper's jars need Java 17 or later"),
        ('openjdk version "11.0.1"', 0, "is Java 11, but ZooKeeper's jars need Java 17"),
        ("no Java runtime present", 1, "should name a version, but printed 'no Java runtime"),
        ("", 2, "should name a version, but printed 'exit code 2'"),
    ],
)
def test_a_java_that_is_no_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int, problem: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(program(tmp_path, says, code)))

    with pytest.raises(EnvironmentProblem, match=problem) as caught:
        java.find_java()

    assert str(caught.value).endswith(java.ADVICE)


def test_a_java_home_without_java_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(EnvironmentProblem, match="is not a program; install Java 17"):
        java.find_java()


def test_no_java_at_all_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EnvironmentProblem, match="no Java on PATH and JAVA_HOME is not set"):
        java.find_java()


def test_a_java_that_cannot_be_run_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / "java"
    broken.parent.mkdir()
    broken.write_bytes(b"\x7fnothing that runs")
    broken.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(EnvironmentProblem, match="cannot be run"):
        java.find_java()


def test_no_pyspark_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "find_spec", lambda name: None)

    with pytest.raises(EnvironmentProblem, match=r"PySpark is not installed.*watchkeeper\[spark"):
        jars.zookeeper_jars()


def test_a_pyspark_without_zookeeper_is_reported(tmp_path: Path) -> None:
    (tmp_path / "zookeeper-3.9.5.jar").touch()

    with pytest.raises(
        EnvironmentProblem, match="has no jar that matches zookeeper-jute"
    ) as refusal:
        jars.zookeeper_jars(tmp_path)

    assert "zookeeper-[0-9]" not in str(refusal.value)


@pytest.mark.parametrize(
    ("has_java", "outcome"), [(False, pytest.skip.Exception), (True, pytest.fail.Exception)]
)
def test_with_java_nothing_is_skipped(
    monkeypatch: pytest.MonkeyPatch, has_java: bool, outcome: type[BaseException]
) -> None:
    def missing() -> None:
        raise EnvironmentProblem("it is not there")

    monkeypatch.setattr(live_zookeeper, "find_java", (lambda: None) if has_java else missing)
    monkeypatch.setattr(live_zookeeper, "zookeeper_jars", missing)

    with pytest.raises(outcome, match="it is not there"):
        live_zookeeper.skip_without_zookeeper()


def test_pyspark_is_not_imported_to_find_its_jars() -> None:
    program = (
        "import sys; from watchkeeper.real.zookeeper.jars import zookeeper_jars; "
        "zookeeper_jars(); print('pyspark' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout.strip() == "False" or "PySpark is not installed" in done.stderr


def test_a_port_that_is_taken_is_reported(needs_zookeeper: None) -> None:
    with socket.create_server((ports.HOST, 0)) as squatter:
        port = squatter.getsockname()[1]
        zookeeper = Ensemble(settings=QUICK, ports=(Ports(port),))

        with pytest.raises(EnvironmentProblem, match=f"listen on 127.0.0.1:{port}, but another"):
            zookeeper.start()

    assert not zookeeper.folder.exists()


def test_ports_are_never_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [*free_ports(5), *free_ports(5)]

    assert len(set(given)) == 10
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    with pytest.raises(EnvironmentProblem, match=r"9 free ports are needed .* only 0 are free"):
        free_ports(9)


def test_a_server_that_ends_at_once_is_reported_with_its_last_words(
    needs_zookeeper: None,
) -> None:
    zookeeper = Ensemble(settings=QUICK)
    (zookeeper.folder / "1" / "zoo.cfg").write_text("tickTime=nonsense\n")

    with pytest.raises(EnvironmentProblem) as caught:
        zookeeper.start()

    text = str(caught.value)
    assert "zookeeper/1 should serve at 127.0.0.1:" in text
    assert "its process ended with exit code 2" in text
    assert "nonsense" in text


def test_a_server_that_takes_too_long_is_reported(needs_zookeeper: None) -> None:
    zookeeper = Ensemble(settings=QUICK)

    with pytest.raises(EnvironmentProblem, match=r"but it did not within 0\.1 s"):
        zookeeper.start(timeout_s=0.0)

    assert zookeeper.servers[0].state == "down"
    assert not zookeeper.folder.exists()


def test_a_command_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="should start under a watchdog, but did not"):
        ChildProcess([str(tmp_path / "nothing")], output=Path(os.devnull))


@pytest.mark.parametrize("wrong", [{"tick_ms": 0}, {"min_session_ms": 10, "max_session_ms": 5}])
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"positive"):
        Settings(**wrong)


def test_ensembles_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="odd number of servers, not 2"):
        Ensemble(2)
    with pytest.raises(ValueError, match="3 servers need 3 sets of ports, not 1"):
        Ensemble(3, ports=(Ports(1),))


def test_two_processes_never_get_the_same_port() -> None:
    """Not even the port of a server that is down for a while."""
    program = "from watchkeeper.real.ports import free_ports; print(*free_ports(150)); input()"
    command = [sys.executable, "-c", program]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    given = [
        set(process.stdout.readline().split()) for process in both if process.stdout is not None
    ]
    for process in both:
        process.communicate("\n")

    assert [len(ports) for ports in given] == [150, 150]
    assert not given[0] & given[1]


def test_ports_are_reused_only_after_many() -> None:
    """A process that runs for long does not take all ports."""
    rounds = [set(free_ports(60)) for _ in range(12)]

    assert not rounds[0] & rounds[1]
    assert len(set().union(*rounds)) < 100 * ports.RECYCLE_FROM
