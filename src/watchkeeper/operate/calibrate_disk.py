"""The command `calibrate --disk`: measure a disk and the path to it, and print the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.model.calibration.disk import DISK_QUICK, DISK_THOROUGH, MeasuredDisk
from watchkeeper.model.calibration.latency import Distribution
from watchkeeper.operate.disk_profile import disk_section
from watchkeeper.scenarios.profiles.profile import VERSION, ProfileModel
from watchkeeper.scenarios.profiles.quantiles import quantile_name

SHOWN = (0, 10, 50, 90, 98, 100)
MB = 1_000_000


def measured_disk(folder: Path, *, quick: bool, tell: Callable[[str], None]) -> MeasuredDisk:
    """Measure the disk under a folder; raise Stop on failure."""
    from watchkeeper.real.calibration.disk import measure_disk
    from watchkeeper.real.errors import EnvironmentProblem

    try:
        return measure_disk(folder, DISK_QUICK if quick else DISK_THOROUGH, tell)
    except EnvironmentProblem as problem:
        raise Stop(USAGE, f"--disk: {problem}") from None


def disk_profile(measured: MeasuredDisk, folder: Path) -> ProfileModel:
    """A profile with nothing but a disk."""
    section = disk_section(measured, folder)
    return ProfileModel(watchkeeper_profile=VERSION, zookeeper=None, disk=section, codecs=None)


def show_disk(measured: MeasuredDisk, folder: Path, out: Path) -> None:
    """Print the measurements."""
    from watchkeeper.api.tables import console, plain_table, show_table

    to = console()
    past = "past the pagecache" if measured.is_direct else "with its pages given back"
    to.print(f"disk under {folder}, single pages {past}; times in milliseconds", soft_wrap=True)
    table = plain_table("", "times", *(quantile_name(level) for level in SHOWN))
    for name, distribution in _rows(measured):
        table.add_row(
            name,
            str(distribution.number),
            *(f"{distribution.at(level) / 1000:.2f}" for level in SHOWN),
        )
    show_table(table, to)
    rates = plain_table("", "MB/s")
    for name, rate in _rates(measured):
        rates.add_row(name, f"{rate / MB:,.0f}")
    to.print()
    show_table(rates, to)
    to.print()
    to.print(
        f"a system call takes {measured.call_ns} ns, Python's own work with it; profile {out}",
        soft_wrap=True,
    )


def _rows(measured: MeasuredDisk) -> Iterator[tuple[str, Distribution]]:
    yield "4 KiB read at random", measured.read
    yield "4 KiB written at random", measured.write
    yield "a flush after 4 KiB", measured.sync


def _rates(measured: MeasuredDisk) -> Iterator[tuple[str, int]]:
    yield "written into pages in memory", measured.overwrite_bytes_per_s
    yield "appended, in memory", measured.append_bytes_per_s
    yield "appended, 4 KiB a call", measured.small_append_bytes_per_s
    yield "from memory to the disk", measured.write_back_bytes_per_s
    yield "read from the disk in line", measured.read_bytes_per_s
    yield "sent over the loopback by sendfile", measured.sendfile_bytes_per_s
    yield "by reading and writing", measured.copying_bytes_per_s
