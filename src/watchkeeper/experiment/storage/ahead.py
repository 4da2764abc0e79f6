"""Read-ahead and write-behind: what the pagecache does with small reads and small writes."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, NamedTuple

from watchkeeper.experiment.apparatus.host import new_host
from watchkeeper.experiment.apparatus.programs import (
    MB,
    append_all,
    flushed,
    messages,
    read_all,
    took_s,
)
from watchkeeper.experiment.apparatus.rows import Outcome, Row, at_least, at_most
from watchkeeper.model.log.storage import Append, CreateFile, Flush
from watchkeeper.sim.disk.host_costs import MachineProfile

SMALL_BYTES = 4_000
SMALL = messages(SMALL_BYTES)
READ_BYTES = 20 * MB
WRITTEN_BYTES = 20 * MB
FLUSHED_BYTES = 400_000
"""With a flush after each write less is written: it takes as long."""


def reading_ahead(machine: MachineProfile) -> Outcome:
    """Read a file in small pieces, with the windows of the kernel and with none."""
    without = replace(machine, readahead_bytes=0)
    ahead, each = _read(machine, SMALL_BYTES), _read(without, SMALL_BYTES)
    large = _read(machine, MB)
    return Outcome(
        (
            Row("small reads in line, with read-ahead", ahead.rate / MB, "MB/s"),
            Row("requests of the disk, with read-ahead", ahead.requests, "requests"),
            Row("small reads in line, without read-ahead", each.rate / MB, "MB/s"),
            Row("requests of the disk, without read-ahead", each.requests, "requests"),
            Row("with read-ahead against without", ahead.rate / each.rate, "times", at_least(2)),
            Row(
                "reads of 1 MB against small ones",
                large.rate / ahead.rate,
                "times",
            ),
        ),
        ("A read has 4,000 bytes; the file is on the disk alone.",),
    )


class Rate(NamedTuple):
    """What was seen of a program that reads or writes."""

    rate: float
    """Bytes a second."""
    requests: int
    """That the disk has served."""


def _read(machine: MachineProfile, each_bytes: int) -> Rate:
    host = new_host(machine)
    host.storage.files.preload("log", messages(READ_BYTES))
    took = took_s(host, read_all("log", READ_BYTES, each_bytes))
    return Rate(READ_BYTES / took, host.storage.files.store.requests)


def writing_behind(machine: MachineProfile) -> Outcome:
    """Write small pieces in line: flushed at the end, and flushed one by one."""
    at_the_end = flushed("log", append_all("log", WRITTEN_BYTES, SMALL))
    behind = _written(machine, WRITTEN_BYTES, at_the_end)
    each = _written(machine, FLUSHED_BYTES, _append_flushed())
    joined = 1000 * behind.requests / (WRITTEN_BYTES // SMALL_BYTES)
    alone = 1000 * each.requests / (FLUSHED_BYTES // SMALL_BYTES)
    faster = behind.rate / each.rate
    return Outcome(
        (
            Row("small writes in line, flushed at the end", behind.rate / MB, "MB/s"),
            Row("requests of the disk for 1,000 of them", joined, "requests", at_most(1000)),
            Row("small writes in line, each flushed", each.rate / MB, "MB/s"),
            Row("requests of the disk for 1,000 of these", alone, "requests"),
            Row("written behind against each flushed", faster, "times", at_least(2)),
        ),
        (
            "A write has 4,000 bytes. The kernel joins what lies side by side into large "
            "requests.",
        ),
    )


def _written(machine: MachineProfile, size_bytes: int, body: Coroutine[Any, Any, Any]) -> Rate:
    host = new_host(machine)
    took = took_s(host, body)
    return Rate(size_bytes / took, host.storage.files.store.requests)


async def _append_flushed() -> None:
    await CreateFile("log")
    for _ in range(FLUSHED_BYTES // SMALL_BYTES):
        await Append("log", SMALL)
        await Flush("log")
