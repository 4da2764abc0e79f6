"""The measurements of a disk and the way to it: system calls, copies, the network.

Durations are microseconds, or nanoseconds where a microsecond is too coarse. They are measured
from Python and include its overhead, which a broker in Python pays as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.model.calibration.latency import Distribution

MIB = 1 << 20
PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class DiskSizes:
    """How much is measured."""

    file_mib: int
    """How long the file is that is written and read."""
    rounds: int
    """How often a rate is measured; the median counts."""
    places: int
    """Reads and writes at random, each."""
    first_syncs: int
    """First flushes that do not count: those of an empty file take less time."""
    syncs: int
    calls: int
    """System calls in a row, of which the mean counts."""


DISK_QUICK = DiskSizes(file_mib=64, rounds=3, places=300, first_syncs=80, syncs=120, calls=20_000)
DISK_THOROUGH = DiskSizes(
    file_mib=256, rounds=7, places=2_000, first_syncs=100, syncs=300, calls=100_000
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The system's description of itself."""

    cores: int
    memory_bytes: int
    """Memory that is available for file pages."""
    readahead_bytes: int
    background_percent: int
    dirty_percent: int
    expire_us: int
    wake_us: int


@dataclass(frozen=True, slots=True)
class MeasuredDisk:
    """The measurements of one disk, in one folder."""

    is_direct: bool
    """Whether random reads and writes bypassed the pagecache."""
    file_bytes: int
    call_ns: int
    """A read of one byte that is in memory."""
    overwrite_bytes_per_s: int
    """Into pages in memory, 1 MiB a call."""
    append_bytes_per_s: int
    """Into pages that are not there yet."""
    small_append_bytes_per_s: int
    """The same, 4 KiB a call."""
    write_back_bytes_per_s: int
    """From memory to the disk, sequentially, until a flush returns."""
    read_bytes_per_s: int
    """From the disk in line, 1 MiB a call, as the system reads ahead."""
    sendfile_bytes_per_s: int
    """From memory over the loopback, 1 MiB a call."""
    copying_bytes_per_s: int
    """The same by reading and writing."""
    read: Distribution
    """4 KiB at random, from the disk."""
    write: Distribution
    """4 KiB at random, to the disk."""
    sync: Distribution
    """A flush after 4 KiB were appended."""
    surroundings: Surroundings
