"""The simulated storage beside real files: appends with flushes, and fetches by sendfile.

    python bench/storage.py [--folder DIR] [--rounds 5] [--mib 64] [--json]

In each round the disk under a folder is measured as `watchkeeper calibrate --disk` does, the
patterns below are done with real files, and the same patterns are simulated on the machine
that was found. What the simulation gets is divided by what was real, round by round, since
the machine may be busier in one round than in another; the median of the rounds is held
against the bar.

What is appended to and fetched from is a *subject*: plain files, by the system calls that a
log makes. A log or a broker is another one: it has the methods of `Subject`.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Protocol

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measuring import Bar, Report, number, once, parser_of

from model.log.contents import Series, whole
from model.log.storage import Append, CreateFile, Flush, Read, Send
from model.measured_disk import DISK_QUICK, MIB
from real.disk_measuring import measure_disk
from real.loopback import copy, send, sink
from sim.host import Host, new_host, run
from sim.machine import MachineProfile
from sim.work import Delivered, Transmit
from watchkeeper.disk_profiles import disk_section, machine_with

MOST_OFF = 25.0
KIB = 1024


class Subject(Protocol):
    """What is appended to and fetched from."""

    def append(self, data: bytes) -> None:
        """Put something at the end."""

    def flush(self) -> None:
        """Have it on the disk."""

    def send(self, at: int, size_bytes: int, to: socket.socket) -> int:
        """Send a part by sendfile; how much was sent."""

    def copy(self, at: int, size_bytes: int, to: socket.socket) -> int:
        """Send a part by reading and writing."""

    def cool_down(self) -> None:
        """Have nothing of it in memory."""

    def close(self) -> None:
        """Be gone."""


class PlainFile:
    """A file, by the system calls that a log makes."""

    def __init__(self, folder: Path) -> None:
        self.file, name = tempfile.mkstemp(dir=folder, prefix=".watchkeeper-bench-")
        os.unlink(name)

    def append(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.file, data) :]

    def flush(self) -> None:
        os.fsync(self.file)

    def send(self, at: int, size_bytes: int, to: socket.socket) -> int:
        return send(to, self.file, at, size_bytes)

    def copy(self, at: int, size_bytes: int, to: socket.socket) -> int:
        return copy(to, self.file, at, size_bytes)

    def cool_down(self) -> None:
        os.fsync(self.file)
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        os.close(self.file)


SUBJECTS: dict[str, Callable[[Path], Subject]] = {"plain": PlainFile}


@dataclass(frozen=True, slots=True)
class Appending:
    """Append sets of a size, and flush after so many of them."""

    name: str
    set_bytes: int
    flush_every: int | None = None
    part: int = 1
    """Into so many parts what is written is divided, and one is: a flush takes long."""

    def real(self, subject: Subject, total_bytes: int) -> float:
        data = os.urandom(self.set_bytes)
        count = total_bytes // self.part // self.set_bytes
        begin = time.perf_counter()
        for turn in range(1, count + 1):
            subject.append(data)
            if self.flush_every and turn % self.flush_every == 0:
                subject.flush()
        return count * self.set_bytes / (time.perf_counter() - begin)

    def simulated(self, host: Host, total_bytes: int) -> float:
        count = total_bytes // self.part // self.set_bytes
        return count * self.set_bytes / took_s(host, self._append(count))

    async def _append(self, count: int) -> None:
        each = whole(Series("producer", 0, 1, self.set_bytes - 10))
        await CreateFile("log")
        for turn in range(1, count + 1):
            await Append("log", each)
            if self.flush_every and turn % self.flush_every == 0:
                await Flush("log")


@dataclass(frozen=True, slots=True)
class Fetching:
    """Send a log to one consumer, in fetches of a size."""

    name: str
    fetch_bytes: int
    copies: bool = False
    is_cold: bool = False

    def real(self, subject: Subject, total_bytes: int) -> float:
        block = os.urandom(MIB)
        for _ in range(total_bytes // MIB):
            subject.append(block)
        if self.is_cold:
            subject.cool_down()
        with sink() as to:
            begin, at = time.perf_counter(), 0
            while at < total_bytes:
                part = subject.copy if self.copies else subject.send
                at += part(at, min(self.fetch_bytes, total_bytes - at), to)
            return total_bytes / (time.perf_counter() - begin)

    def simulated(self, host: Host, total_bytes: int) -> float:
        files = host.storage.files
        file = files.preload("log", whole(Series("producer", 0, 1, total_bytes - 10)))
        if not self.is_cold:
            files.cache.put(file.cached, 0, total_bytes // 4096)
        return total_bytes / took_s(host, self._fetch(host, total_bytes))

    async def _fetch(self, host: Host, total_bytes: int) -> None:
        to = host.connection()
        for at in range(0, total_bytes, self.fetch_bytes):
            if self.copies:
                await Transmit(await Read("log", at, self.fetch_bytes), to)
            else:
                await Send("log", at, self.fetch_bytes, to)
        await Delivered(to)


PATTERNS = (
    Appending("append 1 MiB", MIB),
    Appending("append 64 KiB", 64 * KIB),
    Appending("append 4 KiB", 4 * KIB, part=4),
    Appending("append 64 KiB, flush every 100", 64 * KIB, flush_every=100),
    Appending("append 64 KiB, flush every 10", 64 * KIB, flush_every=10, part=2),
    Appending("append 64 KiB, flush each", 64 * KIB, flush_every=1, part=8),
    Appending("append 4 KiB, flush each", 4 * KIB, flush_every=1, part=128),
    Fetching("fetch 1 MiB by sendfile, from memory", MIB),
    Fetching("fetch 64 KiB by sendfile, from memory", 64 * KIB),
    Fetching("fetch 1 MiB by read and write, from memory", MIB, copies=True),
    Fetching("fetch 1 MiB by sendfile, from the disk", MIB, is_cold=True),
)


def took_s(host: Host, body: object) -> float:
    """How long a thread of a simulated process takes."""
    run(host, [host.start(host.process(), body)])  # type: ignore[arg-type]
    return max(host.kernel.now_us, 1) / 1e6


def measured_machine(folder: Path) -> MachineProfile:
    """The machine that a measurement finds now."""
    measured = measure_disk(folder, DISK_QUICK, lambda what: None)
    return machine_with(disk_section(measured, folder).simulation.given, "measured")


def measure(folder: Path, subject: str, rounds: int, total_bytes: int) -> Report:
    """Measure, do the real thing, and simulate, round by round."""
    real: dict[str, list[float]] = {one.name: [] for one in PATTERNS}
    simulated: dict[str, list[float]] = {one.name: [] for one in PATTERNS}
    for _ in range(rounds):
        machine = measured_machine(folder)
        for pattern in PATTERNS:
            one = SUBJECTS[subject](folder)
            try:
                real[pattern.name].append(pattern.real(one, total_bytes))
            finally:
                one.close()
            simulated[pattern.name].append(pattern.simulated(new_host(machine), total_bytes))
    report = Report(
        f"Storage, real ({subject} files) and simulated; MB a second, medians of {rounds} rounds",
        ("pattern", "real", "simulated", "off by %", "least", "most"),
    )
    for pattern in PATTERNS:
        add_row(report, pattern.name, real[pattern.name], simulated[pattern.name])
    return report


def add_row(report: Report, name: str, real: list[float], simulated: list[float]) -> None:
    """Add a pattern to the report, with its bar."""
    offs = [100 * (one / other - 1) for one, other in zip(simulated, real, strict=True)]
    off = median(offs)
    report.rows.append(
        [
            name,
            *(number(median(values) / 1e6) for values in (real, simulated)),
            *(f"{value:+.0f}" for value in (off, min(offs), max(offs))),
        ]
    )
    report.data.setdefault("runs", []).append(
        {"pattern": name, "real": median(real), "simulated": median(simulated), "off": offs}
    )
    report.bars.append(Bar(name, "at most", MOST_OFF, "% off", once(abs(off))))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--folder", type=Path, default=Path("."), help="on the disk to measure")
    parser.add_argument("--subject", choices=SUBJECTS, default="plain", help="what is measured")
    parser.add_argument("--rounds", type=int, default=5, help="how often (5)")
    parser.add_argument("--mib", type=int, default=64, help="how much is written each time (64)")
    options = parser.parse_args(arguments)
    report = measure(options.folder, options.subject, options.rounds, options.mib * MIB)
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
