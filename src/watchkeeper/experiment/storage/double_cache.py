"""A cache inside the process, beside the pagecache: the same data twice in one memory."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from watchkeeper.experiment.apparatus.heap import message_bytes
from watchkeeper.experiment.apparatus.host import Host, new_host
from watchkeeper.experiment.apparatus.programs import (
    MB,
    PAYLOAD_BYTES,
    messages,
    read_all,
    took_s,
)
from watchkeeper.experiment.apparatus.rows import Outcome, Row, at_least, at_most
from watchkeeper.model.log.storage import Read
from watchkeeper.sim.disk.host_costs import MachineProfile

HEAP_SHARE = 2
"""A heap takes this part of the memory: a half."""
SHARES = (50, 90)
"""Percent of the memory that the data take."""
PART = 10
"""A tenth of the memory is simulated, and a tenth of the data."""
OVERHEAD = message_bytes(PAYLOAD_BYTES) / PAYLOAD_BYTES
"""Of an object, against its data."""
LOG = "log"


def caching(machine: MachineProfile) -> Outcome:
    """Read a log twice in order, with the pagecache alone and with a cache of its own."""
    small = replace(machine, memory_bytes=machine.memory_bytes // PART)
    heap_bytes = small.memory_bytes // HEAP_SHARE
    rows: list[Row] = []
    for percent in SHARES:
        size = small.memory_bytes * percent // 100 // MB * MB
        alone, beside = (second_pass(small, size, heap_bytes=heap) for heap in (0, heap_bytes))
        what = f"data of {percent} % of the memory, again"
        rows += [
            Row(
                f"{what}: from the disk, pagecache alone",
                100 * alone.share,
                "%",
                at_most(0),
            ),
            Row(f"{what}: from the disk, with a heap", 100 * beside.share, "%"),
            Row(f"{what}: pagecache alone", alone.took_s, "s"),
            Row(f"{what}: with a heap", beside.took_s, "s"),
        ]
    size = small.memory_bytes // 4 // MB * MB
    twice = held_twice(small, size)
    return Outcome(
        (
            *rows,
            Row(
                "data in the heap that are in the pagecache, too", 100 * twice, "%", at_least(100)
            ),
            Row(
                "data in pages against objects of the same memory", OVERHEAD, "times", at_least(2)
            ),
        ),
        (
            "The heap takes half of the memory from the pagecache and keeps what was read first, "
            "as objects. The pagecache keeps what was read last, so that a second pass in order "
            "finds nothing there as soon as both together are too small.",
        ),
    )


def kept_bytes(heap_bytes: int) -> int:
    """Return how many bytes of messages a heap keeps as objects."""
    return int(heap_bytes / OVERHEAD) // MB * MB


class Pass(NamedTuple):
    """A pass over a log."""

    share: float
    """Of the log, what was read from the disk."""
    took_s: float


def second_pass(machine: MachineProfile, size_bytes: int, *, heap_bytes: int) -> Pass:
    """Read a log for the second time, but for what is in the heap."""
    host = _host(machine, size_bytes, heap_bytes)
    took_s(host, read_all(LOG, size_bytes, MB))
    before = host.storage.files.reader.device_bytes
    kept = min(kept_bytes(heap_bytes), size_bytes)
    took = took_s(host, read_all(LOG, size_bytes - kept, MB, kept))
    return Pass((host.storage.files.reader.device_bytes - before) / size_bytes, took)


def held_twice(machine: MachineProfile, size_bytes: int) -> float:
    """Return the share of the data in a heap that the pagecache has, too, after one pass."""
    heap_bytes = machine.memory_bytes // HEAP_SHARE
    host = _host(machine, size_bytes, heap_bytes)
    took_s(host, read_all(LOG, size_bytes, MB))
    kept = min(kept_bytes(heap_bytes), size_bytes)
    before = host.storage.files.reader.device_bytes
    took_s(host, _look(kept))
    return 1 - (host.storage.files.reader.device_bytes - before) / kept


async def _look(size_bytes: int) -> None:
    """Read from the end to the begin, so that no data are read ahead."""
    for at in range(size_bytes - MB, -1, -MB):
        await Read(LOG, at, MB)


def _host(machine: MachineProfile, size_bytes: int, heap_bytes: int) -> Host:
    host = new_host(replace(machine, memory_bytes=machine.memory_bytes - heap_bytes))
    host.storage.files.preload(LOG, messages(size_bytes))
    return host
