"""What a measurement of a disk has shown, and of the way to it: calls, copies, the network.

Durations are microseconds, or nanoseconds where a microsecond is too coarse. They were
measured from Python, whose own work is in each of them: it is what a broker in Python pays.
"""

from __future__ import annotations

from dataclasses import dataclass

from model.measured import Distribution

MIB = 1 << 20
PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class DiskSizes:
    """How much is measured."""

    file_mib: int
    """How long the file is that is written and read."""
    rounds: int
    """How often what gives a rate is done; the median counts."""
    places: int
    """Reads and writes at random, each."""
    first_syncs: int
    """Those that are not counted: the first ones of an empty file take less than all others."""
    syncs: int
    calls: int
    """System calls in a row, of which the mean counts."""


DISK_QUICK = DiskSizes(file_mib=64, rounds=3, places=300, first_syncs=80, syncs=120, calls=20_000)
DISK_THOROUGH = DiskSizes(
    file_mib=256, rounds=7, places=2_000, first_syncs=100, syncs=300, calls=100_000
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the system says of itself."""

    cores: int
    memory_bytes: int
    """What can be used for pages of files."""
    readahead_bytes: int
    background_percent: int
    dirty_percent: int
    expire_us: int
    wake_us: int


@dataclass(frozen=True, slots=True)
class MeasuredDisk:
    """What was measured of one disk, below one folder."""

    is_direct: bool
    """Whether reads and writes at random went past the pagecache."""
    file_bytes: int
    call_ns: int
    """A read of one byte that is in memory."""
    overwrite_bytes_per_s: int
    """Into pages that are in memory, 1 MiB a call."""
    append_bytes_per_s: int
    """Into pages that are not there yet."""
    small_append_bytes_per_s: int
    """The same, 4 KiB a call."""
    write_back_bytes_per_s: int
    """From memory to the disk, in line, until a flush is answered."""
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
