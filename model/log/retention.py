"""Retention: deletes the oldest segments of a log, by age and by the size of the log.

The age of a segment is the time since its file was last modified. Segments are deleted whole
and from the beginning, so a log keeps up to one segment more than its limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import takewhile

from watchkeeper.model.actor.effects import now_ms
from watchkeeper.model.log.base_log import BaseLog
from watchkeeper.model.log.segments import Segment
from watchkeeper.model.log.settings import UNLIMITED
from watchkeeper.model.log.storage import Touch
from watchkeeper.model.log.timestamps import modified_ms


def count_expired(modified_ms: Sequence[int], now: int, retention_ms: int) -> int:
    """Return how many of the first segments were last modified over `retention_ms` ago."""
    return len(list(takewhile(lambda time: now - time > retention_ms, modified_ms)))


def count_excess(sizes_bytes: Sequence[int], retention_bytes: int) -> int:
    """Return how many of the first segments can be deleted with `retention_bytes` left."""
    surplus = sum(sizes_bytes) - retention_bytes
    if retention_bytes == UNLIMITED or surplus < 0:
        return 0
    for count, size_bytes in enumerate(sizes_bytes):
        surplus -= size_bytes
        if surplus < 0:
            return count
    return len(sizes_bytes)


async def count_deletable(log: BaseLog) -> int:
    """Return how many of the first segments of a log exceed its retention."""
    # Both rules delete from the beginning, so the larger count covers both.
    settings = log.settings
    modified = await modified_ms(log, log.segments.view)
    sizes = [segment.size_bytes for segment in log.segments.view]
    return max(
        count_expired(modified, await now_ms(), settings.retention_ms),
        count_excess(sizes, settings.retention_bytes),
    )


async def delete_old(log: BaseLog) -> tuple[Segment, ...]:
    """Delete the segments of a log that exceed its retention; return them.

    The end offset of the log never changes: if all segments expire, the log rolls first.
    """
    return await log.exclusively(partial(_delete_old, log))


async def _delete_old(log: BaseLog) -> tuple[Segment, ...]:
    count = await count_deletable(log)
    if count == len(log.segments.view):
        last = log.segments.last
        if last.size_bytes:
            await log.roll()
        else:
            # A new segment would have the same offset and so the same file name as an empty
            # last one, and the deletion would remove it (KAFKA-292). Keep it, as a new one.
            await Touch(last.path)
            count -= 1
    return await log.delete_first(count)
