"""What is deleted of a log: the oldest segments, by their age and by the log's size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import takewhile

from model.asks import now_ms
from model.log.log import Log
from model.log.segments import Segment
from model.log.settings import UNLIMITED
from model.log.storage import Touch
from model.log.times import modified_ms


def too_old(modified_ms: Sequence[int], now: int, retention_ms: int) -> int:
    """How many of the first segments were not changed for longer than that."""
    return len(list(takewhile(lambda time: now - time > retention_ms, modified_ms)))


def too_much(sizes_bytes: Sequence[int], retention_bytes: int) -> int:
    """How many of the first segments can go while the rest is still as large as allowed."""
    surplus = sum(sizes_bytes) - retention_bytes
    if retention_bytes == UNLIMITED or surplus < 0:
        return 0
    for count, size_bytes in enumerate(sizes_bytes):
        surplus -= size_bytes
        if surplus < 0:
            return count
    return len(sizes_bytes)


async def count_old(log: Log) -> int:
    """How many of the first segments of a log are to go, for their age or for its size.

    Both count from the first, so that the larger number is what one after the other gives.
    """
    settings = log.settings
    modified = await modified_ms(log)
    sizes = [segment.size_bytes for segment in log.segments.view]
    return max(
        too_old(modified, await now_ms(), settings.retention_ms),
        too_much(sizes, settings.retention_bytes),
    )


async def delete_old(log: Log) -> tuple[Segment, ...]:
    """Delete of a log what is too old or too much; those segments are answered.

    If all are to go, another one is begun first, so that the end stays where it is. One that
    is empty stays, and counts as new: to begin another at its offset would be to begin the
    same file, and then to delete it.
    """
    return await log.alone(partial(_delete_old, log))


async def _delete_old(log: Log) -> tuple[Segment, ...]:
    count = await count_old(log)
    if count == len(log.segments.view):
        last = log.segments.last
        if last.size_bytes:
            await log.roll()
        else:
            await Touch(last.path)
            count -= 1
    return await log.delete_first(count)
