"""The simulated storage beside the real one: appends with flushes, and fetches by sendfile.

    python bench/storage.py [--folder DIR] [--subject files] [--rounds 5] [--mib 64] [--json]

In each round the disk under a folder is measured as `watchkeeper calibrate --disk` does, the
patterns below run on real files, and the same patterns are simulated on the machine that was
found. The simulated figure is divided by the real one round by round, since the machine
may be busier in one round than in another, and the median of the rounds is compared with the
bar. *At best* takes the best round of each pattern, and simulates it on the machine that has
the best of each figure, as an idle machine would have.

Of the subjects, `files` are plain files, by the system calls that a log makes; `log` is the log
of a broker, which also checks every message that it takes. What it spends on that is measured
with a storage that does nothing, and simulated as computing (see `support/storage_subjects.py`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, Spread, number, parser_of
from bench.support.storage_subjects import SUBJECTS, Real, Simulated, Subject, message_set

from watchkeeper.experiment.apparatus.host import Host, new_host, run
from watchkeeper.model.calibration.disk import DISK_QUICK, MIB, MeasuredDisk
from watchkeeper.model.calibration.latency import Distribution
from watchkeeper.operate.disk_profile import disk_section, machine_with
from watchkeeper.real.calibration.disk import measure_disk
from watchkeeper.real.calibration.loopback import sink
from watchkeeper.sim.disk.host_costs import MachineProfile
from watchkeeper.sim.storage.host_effects import Delivered

MOST_OFF = 25.0
KIB = 1024


@dataclass(frozen=True, slots=True)
class Appending:
    """Append sets of a size, and flush after so many of them."""

    name: str
    set_bytes: int
    flush_every: int | None = None
    part: int = 1
    """Into so many parts what is written is divided, and one is: a flush takes long."""

    def count(self, total_bytes: int) -> int:
        return total_bytes // self.part // self.set_bytes

    def own_ns(self, subject: Subject) -> int:
        return subject.append_ns(self.set_bytes)

    def real(self, subject: Real, total_bytes: int) -> float:
        data, count = message_set(self.set_bytes), self.count(total_bytes)
        begin = time.perf_counter()
        for turn in range(1, count + 1):
            subject.append(data)
            if self.flush_every and turn % self.flush_every == 0:
                subject.flush()
        return count * self.set_bytes / (time.perf_counter() - begin)

    async def simulated(self, host: Host, subject: Simulated, total_bytes: int) -> float:
        await subject.open()
        begin_us, count = host.kernel.now_us, self.count(total_bytes)
        for turn in range(1, count + 1):
            await subject.append(self.set_bytes)
            if self.flush_every and turn % self.flush_every == 0:
                await subject.flush()
        return count * self.set_bytes * 1e6 / max(host.kernel.now_us - begin_us, 1)


@dataclass(frozen=True, slots=True)
class Fetching:
    """Send a log to one consumer, in fetches of a size."""

    name: str
    fetch_bytes: int
    copies: bool = False
    is_cold: bool = False

    def own_ns(self, subject: Subject) -> int:
        return subject.fetch_ns(self.fetch_bytes)

    def real(self, subject: Real, total_bytes: int) -> float:
        block = message_set(MIB)
        for _ in range(total_bytes // MIB):
            subject.append(block)
        subject.flush()
        if self.is_cold:
            subject.cool_down()
        part = subject.copy if self.copies else subject.send
        with sink() as to:
            begin, at = time.perf_counter(), 0
            while at < total_bytes:
                at += part(at, min(self.fetch_bytes, total_bytes - at), to)
            return total_bytes / (time.perf_counter() - begin)

    async def simulated(self, host: Host, subject: Simulated, total_bytes: int) -> float:
        await subject.open()
        for _ in range(total_bytes // MIB):
            await subject.append(MIB)
        await subject.flush()
        if self.is_cold:
            cool_down(host)
        to, begin_us = host.connection(), host.kernel.now_us
        part = subject.copy if self.copies else subject.send
        for at in range(0, total_bytes, self.fetch_bytes):
            await part(at, self.fetch_bytes, to)
        await Delivered(to)
        return total_bytes * 1e6 / max(host.kernel.now_us - begin_us, 1)


def cool_down(host: Host) -> None:
    """Have no page of any file in memory."""
    cache = host.storage.files.cache
    pages = cache.capacity_pages
    cache.resize(0)
    cache.resize(pages)


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
Pattern = Appending | Fetching


def machine_of(measured: MeasuredDisk, folder: Path) -> MachineProfile:
    """The machine that a measurement finds."""
    return machine_with(disk_section(measured, folder).simulation.given, "measured")


def best_of(measured: Sequence[MeasuredDisk]) -> MeasuredDisk:
    """The best of each figure: that of an idle machine."""
    best: dict[str, Any] = {}
    for name in (field.name for field in fields(MeasuredDisk)):
        values = [getattr(disk, name) for disk in measured]
        if name.endswith("_per_s"):
            best[name] = max(values)
        elif name == "call_ns":
            best[name] = min(values)
        elif isinstance(values[0], Distribution):
            best[name] = min(values, key=lambda spread: spread.median)
    return replace(measured[0], **best)


class Rounds:
    """What was found in several rounds."""

    def __init__(self, folder: Path, name: str, total_bytes: int) -> None:
        self.folder = folder
        self.subject = SUBJECTS[name]
        self.total_bytes = total_bytes
        self.measured: list[MeasuredDisk] = []
        self.real: dict[str, list[float]] = {pattern.name: [] for pattern in PATTERNS}
        self.simulated: dict[str, list[float]] = {pattern.name: [] for pattern in PATTERNS}
        self.own_ns: dict[str, int] = {}

    def take(self) -> None:
        """Measure, do the real thing, and simulate."""
        self.measured.append(measure_disk(self.folder, DISK_QUICK, lambda what: None))
        machine = machine_of(self.measured[-1], self.folder)
        for pattern in PATTERNS:
            own_ns = pattern.own_ns(self.subject)
            self.own_ns[pattern.name] = min(own_ns, self.own_ns.get(pattern.name, own_ns))
            folder = self.subject.real(self.folder)
            try:
                self.real[pattern.name].append(pattern.real(folder, self.total_bytes))
            finally:
                folder.close()
            self.simulated[pattern.name].append(self.simulate(pattern, machine, own_ns))

    def simulate(self, pattern: Pattern, machine: MachineProfile, own_ns: int) -> float:
        """Simulate a pattern; bytes a second."""
        host = new_host(machine)
        body = pattern.simulated(host, self.subject.simulated(host, own_ns), self.total_bytes)
        (rate,) = run(host, [host.start(host.process(), body)])
        return float(rate)

    def row(self, pattern: Pattern, best: MachineProfile) -> dict[str, Any]:
        """What was real, and what was simulated: by the median, and at best."""
        real, simulated = self.real[pattern.name], self.simulated[pattern.name]
        ratios = [ours / other for ours, other in zip(simulated, real, strict=True)]
        best_simulated = self.simulate(pattern, best, self.own_ns[pattern.name])
        return {
            "pattern": pattern.name,
            "real": median(real),
            "simulated": median(simulated),
            "off": 100 * (median(ratios) - 1),
            "best_real": max(real),
            "best_simulated": best_simulated,
            "best_off": 100 * (best_simulated / max(real) - 1),
        }


def measure(folder: Path, name: str, rounds: int, total_bytes: int) -> Report:
    """Measure, do the real thing, and simulate, round by round."""
    found = Rounds(folder, name, total_bytes)
    for _ in range(rounds):
        found.take()
    best = machine_of(best_of(found.measured), folder)
    report = Report(
        f"Storage, real ({name}) and simulated, MB a second; {rounds} rounds",
        ("pattern", "real", "simulated", "off by %", "at best", "simulated ", "off by % "),
    )
    for row in (found.row(pattern, best) for pattern in PATTERNS):
        rates = [number(row[key] / 1e6) for key in ("real", "simulated")]
        bests = [number(row[key] / 1e6) for key in ("best_real", "best_simulated")]
        cells = [*rates, f"{row['off']:+.0f}", *bests, f"{row['best_off']:+.0f}"]
        report.rows.append([row["pattern"], *cells])
        off = Spread(abs(row["best_off"]), abs(row["off"]))
        report.bars.append(Bar(row["pattern"], "at most", MOST_OFF, "% off", off))
        report.data.setdefault("runs", []).append(row)
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--folder", type=Path, default=Path("."), help="on the disk to measure")
    parser.add_argument("--subject", choices=SUBJECTS, default="files", help="(files)")
    parser.add_argument("--rounds", type=int, default=5, help="how often (5)")
    parser.add_argument("--mib", type=int, default=64, help="how much is written each time (64)")
    options = parser.parse_args(arguments)
    report = measure(options.folder, options.subject, options.rounds, options.mib * MIB)
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
