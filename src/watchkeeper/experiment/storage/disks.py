"""Disks: writing in line against writing at random, and reading in line against memory."""

from __future__ import annotations

from dataclasses import replace

from watchkeeper.experiment.apparatus.host import new_host
from watchkeeper.experiment.apparatus.programs import (
    MB,
    append_all,
    flushed,
    messages,
    read_all,
    took_s,
)
from watchkeeper.experiment.apparatus.rows import Outcome, Row, about, at_least
from watchkeeper.model.log.storage import Flush, Read
from watchkeeper.sim.disk.host_costs import GIB, MachineProfile
from watchkeeper.sim.engine.random_streams import Stream
from watchkeeper.sim.storage.file_contents import zeros
from watchkeeper.sim.storage.host_effects import Compute, Overwrite

LINEAR, RANDOM, TIMES = 300 * MB, 50_000, 10_000
"""What the page says: bytes a second, bytes a second, and how many times as much."""
LONG_BYTES = 100_000 * MB
"""Of the file that is written to at random."""
WRITES = 200
PAGE, MESSAGE = 4096, 1024


def writing(machine: MachineProfile) -> Outcome:
    """Write a file from its beginning, and write at random into one of 100 GB."""
    linear = linear_rate(machine)
    page, message = random_rate(machine, PAGE), random_rate(machine, MESSAGE)
    return Outcome(
        (
            Row("in line", linear / MB, "MB/s", about(LINEAR / MB)),
            Row(
                "at random, a page of 4 KiB at a time", page / 1000, "kB/s", about(RANDOM / 1000)
            ),
            Row("at random, 1 KiB at a time", message / 1000, "kB/s", about(RANDOM / 1000)),
            Row("in line against pages at random", linear / page, "times", about(TIMES)),
            Row("in line against 1 KiB at random", linear / message, "times", about(TIMES)),
        ),
        (
            f"The page's own numbers make {LINEAR // RANDOM:,} times, not nearly {TIMES:,}.",
            "Each random write is on the disk before the next begins, in a file of 100 GB. To "
            "change 1 KiB, its page is read first and written whole.",
        ),
    )


def linear_rate(machine: MachineProfile) -> float:
    """Bytes a second, until the last of them is on the disk."""
    host = new_host(replace(machine, memory_bytes=2 * GIB))
    total = machine.device.rate(is_write=True) * 4 * max(machine.device.members - 1, 1)
    total -= total % MB
    return total / took_s(host, flushed("log", append_all("log", total, messages(MB))))


def random_rate(machine: MachineProfile, size_bytes: int) -> float:
    """Bytes a second, each write on the disk before the next begins."""
    host = new_host(replace(machine, memory_bytes=GIB))
    host.storage.files.preload("table", zeros(LONG_BYTES))
    chance = host.kernel.streams("places")
    return WRITES * size_bytes / took_s(host, write_anywhere(chance, size_bytes))


async def write_anywhere(chance: Stream, size_bytes: int) -> None:
    """Write to places of chance, and have each write on the disk."""
    for _ in range(WRITES):
        place = chance.below(LONG_BYTES // size_bytes) * size_bytes
        await Overwrite("table", place, size_bytes)
        await Flush("table")


# --- reading ---------------------------------------------------------------------------

VALUE_BYTES = 4
VALUES = 1_000_000
READS = 200


def reading(machine: MachineProfile) -> Outcome:
    """Read values of four bytes: from the disk in line, from memory at random."""
    disk = linear_read_rate(machine) / VALUE_BYTES
    memory = VALUES / took_s(new_host(machine), look_up(machine.access_ns))
    pages = random_read_rate(machine)
    return Outcome(
        (
            Row("disk, in line", disk / 1e6, "million values/s"),
            Row("memory, at random", memory / 1e6, "million values/s"),
            Row("disk in line against memory at random", disk / memory, "times", at_least(1)),
            Row("disk, pages at random", pages / VALUE_BYTES / 1e6, "million values/s"),
            Row("disk in line against pages at random", disk * VALUE_BYTES / pages, "times"),
        ),
        ("A value has four bytes, as in the article that the page cites.",),
    )


async def look_up(access_ns: int) -> None:
    """Look values up that are all over the memory."""
    await Compute(VALUES * access_ns)


def linear_read_rate(machine: MachineProfile) -> float:
    """Bytes a second of a file that is read in order, and is not in memory."""
    host = new_host(machine)
    total = machine.device.rate(is_write=False) * 2 // MB * MB
    host.storage.files.preload("log", messages(total))
    return total / took_s(host, read_all("log", total, MB))


def random_read_rate(machine: MachineProfile) -> float:
    """Bytes a second of pages that are all over a file."""
    host = new_host(machine)
    host.storage.files.preload("table", zeros(LONG_BYTES))
    chance = host.kernel.streams("places")
    return READS * PAGE / took_s(host, read_anywhere(chance))


async def read_anywhere(chance: Stream) -> None:
    """Read pages at places of chance."""
    for _ in range(READS):
        await Read("table", chance.below(LONG_BYTES // PAGE) * PAGE, PAGE)
