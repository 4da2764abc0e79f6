"""A log on real files is killed a thousand times, and has to keep its guarantees.

    python bench/crash_points.py [--points 1000] [--seed 0] [--mutant NAME] [--json]

A process appends messages to a log, flushes, rolls, deletes old segments, closes and opens
it, all of it drawn from a seed, until it is killed with SIGKILL: at the n-th append, flush,
roll or deletion, just before the storage does it, just after, or in the middle of a write;
or by the clock, at any instruction. Or it is killed at an append, and the process after it
while that recovers the log. Some writes are short. In every second case the host ends too:
what was not synced is cut somewhere and has zeros in it, and a file that was being made or
deleted is there or is not (`watchkeeper.real.storage.host_crash`).

Then the log is started again, in another process, as a broker does it. Its recovery has to
succeed; everything readable is read and compared with what was appended, and with what was
readable before the crash. The next process continues with the same log, so that a log lives
through ten crashes. The exit code is 1 if any guarantee is broken.

With `--mutant` the log is a mutant with a mistake from a real log (`tests.mutants.log`), one of
those that crashes reveal.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, once, parser_of
from tests.mutants.invariants import broken_after_crash
from tests.mutants.log import LOG_MUTANTS

from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.log.settings import log_settings
from watchkeeper.model.log.storage import Append, CreateFile, Delete, Flush, Truncate
from watchkeeper.real.storage.host_crash import WatchedStorage, end_host

TOPIC = "clicks"
LIVES = 10
"""How many crashes one log lives through."""
LONGEST_S = 0.05
"""When the clock kills, at the latest."""
GIVES_UP_S = 60
SHORT = 0.2
"""How often a write is short."""
CLOCK, RECOVERY = "by the clock", "recovery"
LATEST = {"append": 60, "flush": 25, "roll": 12, "delete": 12, RECOVERY: 9, CLOCK: 0}
"""The kind of operation at which a process is killed -> the highest count of it at the kill.

The marker of a clean shutdown is created and deleted as other files are. A recovery is killed
at any of its first operations.
"""
MOMENTS: dict[type[Any], str] = {
    Append: "append",
    Flush: "flush",
    CreateFile: "roll",
    Delete: "delete",
    Truncate: "cut",
}
OTHER = "anything else"

CAUGHT = ("short-write-again", "recovers-when-clean", "close-without-flush")
"""The mutants that crashes reveal; the others need a failing disk, or hours of time."""

SETTINGS = {
    "log.file.size": 4000,
    "log.retention.size": 20_000,
    "log.flush.interval": 12,
}


# --- the process that is killed --------------------------------------------------------


class Doomed(WatchedStorage):
    """The files of a process that is killed at one of its operations, or by the clock."""

    def __init__(self, root: Path, records: Path, random: Random, target: str) -> None:
        super().__init__(root, records)
        self._random = random
        self.target = target
        self._left = random.randint(1, LATEST[target]) if target != CLOCK else -1
        self._record_fd = os.open(
            records / "record", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644
        )

    def append_record(self, what: str) -> None:
        """Append a line to the record of the process, which outlives a kill."""
        os.write(self._record_fd, f"{what}\n".encode())

    def answer(self, effect: Any) -> Any:
        """Answer the operation, or kill the process at it."""
        moment = MOMENTS.get(type(effect), OTHER)
        self.append_record(moment)
        is_one = self.target in (moment, RECOVERY)
        self._left -= is_one
        if isinstance(effect, Append) and self._random.random() < SHORT:
            effect = Append(
                effect.path, effect.contents[: self._random.randint(1, len(effect.contents))]
            )
        if self._left or not is_one:
            return super().answer(effect)
        how = self._random.choice(("before", "after", "within"))
        if isinstance(effect, Append) and how == "within":
            super().answer(Append(effect.path, effect.contents[: len(effect.contents) // 2]))
        elif how != "before":
            super().answer(effect)
        return end_process()


def end_process() -> NoReturn:
    """End as if killed from outside: without any clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process goes on")


def sets_of(seed: int) -> Iterator[bytes]:
    """The message sets that the process with this seed appends, one after the other."""
    random = Random(seed)
    while True:
        sizes = [random.randint(0, 200) for _ in range(random.randint(0, 4))]
        if random.random() < 0.05:
            sizes.append(random.randint(2000, 6000))
        yield encode([Message.of(random.randbytes(size)) for size in sizes])


def work(storage: Doomed, kind: type[LogManager], seed: int) -> NoReturn:
    """Use a log as a broker does, until the kill."""
    random, sets = Random(f"work {seed}"), sets_of(seed)
    logs, log = started(storage, kind)
    if storage.target == RECOVERY:
        end_process()
    while True:
        storage.append_record(f"readable {log.high_watermark}")
        draw = random.random()
        if draw < 0.75:
            storage.append_record("appends")
            storage.run(log.append(next(sets)))
        elif draw < 0.88:
            storage.run(log.flush())
        elif draw < 0.97:
            storage.run(logs.delete_old())
        else:
            storage.run(logs.close())
            storage.append_record(f"readable {log.end}")
            logs, log = started(storage, kind)


def started(storage: WatchedStorage, kind: type[LogManager]) -> tuple[LogManager, Log]:
    """Start the logs of a broker; `Damaged` if that cannot be done."""
    logs = kind(log_settings(SETTINGS))
    storage.run(logs.start())
    return logs, storage.run(logs.get_or_create(TOPIC, 0))


# --- one crash -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Crash:
    """A crash, and the state of the log after it."""

    seed: int
    target: str
    """The operation at which it was to happen."""
    moment: str
    """The operation under way when it happened."""
    host_ended: bool
    lost_bytes: int
    cut_bytes: int
    readable_bytes: int
    wrong: str
    """The broken guarantees; empty for none."""


class Subject:
    """A log that lives through several crashes, and what it must contain."""

    def __init__(self, home: Path, kind: type[LogManager]) -> None:
        self.root, self.records = home / "root", home / "records"
        self.kind = kind
        self.appended = b""
        self.guaranteed = 0
        WatchedStorage(self.root, self.records).close()

    def crash(self, seed: int) -> Crash:
        """Let a process use the log until it is killed, and examine the log."""
        random = Random(f"crash {seed}")
        target, host_ended = random.choice(list(LATEST)), random.random() < 0.5
        (self.records / "record").unlink(missing_ok=True)
        wrong = self._live(seed, random, target if target != RECOVERY else "append")
        moment = self._read_record(seed)
        lost_bytes = end_host(self.root, self.records, random) if host_ended else 0
        if target == RECOVERY:
            wrong = wrong or self._live(seed, random, target)
            moment = f"{target}, {self.record()[-1]}"
            if random.random() < 0.5:
                lost_bytes += end_host(self.root, self.records, random)
        cut_bytes, readable_bytes, broken = self._examine()
        return Crash(
            *(seed, target, moment, host_ended, lost_bytes, cut_bytes, readable_bytes),
            wrong=wrong or broken,
        )

    def _live(self, seed: int, random: Random, target: str) -> str:
        """Let a process live until it is killed; if it ends in another way, how."""
        pid = os.fork()
        if not pid:
            signal.alarm(GIVES_UP_S)
            doomed = Doomed(self.root, self.records, random, target)
            try:
                work(doomed, self.kind, seed)
            except BaseException as error:
                doomed.append_record(f"{type(error).__name__}: {error}")
            finally:
                os._exit(1)
        if target == CLOCK:
            time.sleep(random.uniform(0, LONGEST_S))
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status):
            return f"ended by itself, {self.record()[-1]}"
        if os.WTERMSIG(status) != signal.SIGKILL:
            return f"ran for {GIVES_UP_S} s without reaching the operation at which it was to end"
        return ""

    def record(self) -> list[str]:
        """The lines that processes have recorded since the last crash."""
        path = self.records / "record"
        return path.read_text().splitlines() if path.exists() else []

    def _read_record(self, seed: int) -> str:
        """Read the record of the process, and return the operation under way at its end."""
        moment, sets = "start", sets_of(seed)
        for line in self.record():
            if line == "appends":
                self.appended += next(sets)
            elif line.startswith("readable "):
                self.guaranteed = max(self.guaranteed, int(line.split()[1]))
            else:
                moment = line
        return moment

    def _examine(self) -> tuple[int, int, str]:
        """Start the log as a broker does; return bytes cut, bytes readable, and what is wrong."""
        storage = WatchedStorage(self.root, self.records)
        try:
            logs = self.kind(log_settings(SETTINGS))
            cut_bytes = sum(size for _, size in storage.run(logs.start()).cut_bytes)
            log = storage.run(logs.get_or_create(TOPIC, 0))
            found = read_all(storage, log)
        except Exception as error:
            return 0, 0, f"{type(error).__name__}: {error}"
        finally:
            storage.close()
        broken = broken_after_crash(self.appended, self.guaranteed, log.start, found)
        self.appended = self.appended[: log.end]
        self.guaranteed = log.high_watermark
        return cut_bytes, len(found), ", ".join(broken)


def read_all(storage: WatchedStorage, log: Log) -> bytes:
    """All of a log that can be read."""
    found = b""
    while log.start + len(found) < log.high_watermark:
        part = storage.run(log.read(log.start + len(found), 2**16))
        assert isinstance(part, bytes)
        found += part
    return found


# --- all of them -----------------------------------------------------------------------


def crashes_of(options: Namespace) -> Iterator[Crash]:
    """One crash after the other, each log through ten of them."""
    kind = LOG_MUTANTS[options.mutant].logs if options.mutant else LogManager
    for first in range(0, options.points, LIVES):
        with TemporaryDirectory(prefix="crash-points-") as home:
            subject = Subject(Path(home), kind)
            for number in range(first, min(first + LIVES, options.points)):
                crash = subject.crash(options.seed * 1_000_000 + number)
                yield crash
                if crash.wrong:
                    break


def report_of(crashes: Sequence[Crash], points: int, took_s: float) -> Report:
    """The table of the crashes, by what was under way."""
    wrong = [crash for crash in crashes if crash.wrong]
    report = Report(
        f"{len(crashes)} crashes of a log on real files in {took_s:.0f} s",
        (
            *("under way", "crashes", CLOCK, "of the host", "bytes lost by the host"),
            *("cut by recovery", "wrong"),
        ),
        data={"crashes": [asdict(crash) for crash in crashes]},
    )
    counted = Counter(crash.moment for crash in crashes)
    for moment, number in sorted(counted.items()):
        those = [crash for crash in crashes if crash.moment == moment]
        report.rows.append(
            [
                moment,
                str(number),
                str(sum(crash.target == CLOCK for crash in those)),
                str(sum(crash.host_ended for crash in those)),
                f"{sum(crash.lost_bytes for crash in those):,}",
                f"{sum(crash.cut_bytes for crash in those):,}",
                str(sum(bool(crash.wrong) for crash in those)),
            ]
        )
    report.bars = [
        Bar("crashes", "at least", points, "crashes", once(len(crashes))),
        Bar("guarantees broken or recoveries failed", "at most", 0, "crashes", once(len(wrong))),
    ]
    report.notes = [f"seed {crash.seed}: {crash.wrong}" for crash in wrong]
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    """Crash, look, print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--points", type=int, default=1000, help="crashes in all (1000)")
    parser.add_argument("--seed", type=int, default=0, help="of all random choices (0)")
    parser.add_argument("--mutant", choices=CAUGHT, help="a mutant of the log to be caught")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    crashes = list(crashes_of(options))
    report_of(crashes, options.points, time.monotonic() - began).show(as_json=options.json)
    sys.exit(1 if any(crash.wrong for crash in crashes) else 0)


if __name__ == "__main__":
    main()
