"""When the segments of a log were written, and which offsets go with a time.

A log of 0.7 knows of time only what its files tell: when each was changed last.
"""

from __future__ import annotations

from model.asks import now_ms
from model.log.log import Log
from model.log.requests import EARLIEST, LATEST
from model.log.storage import Listed


async def offsets_before(log: Log, time_ms: int, at_most: int) -> list[int]:
    """Offsets at which segments begin, newest first, that were written at a time or before.

    The end counts as one of them, written now, unless the last segment is empty.
    `LATEST` is from the end, `EARLIEST` is the beginning alone.
    """
    now = await now_ms()
    times = await modified_ms(log)
    known = [
        (segment.start, time) for segment, time in zip(log.segments.view, times, strict=True)
    ]
    if log.segments.last.flushed_bytes:
        known.append((log.readable_end, now))
    if time_ms == EARLIEST:
        known = known[:1]
    elif time_ms != LATEST:
        while known and known[-1][1] > time_ms:
            known.pop()
    return [offset for offset, _ in reversed(known)][:at_most]


async def modified_ms(log: Log) -> list[int]:
    """When each segment was changed last; now, for one that is newer than the listing."""
    now = await now_ms()
    listed = {f"{log.folder}/{file.name}": file.modified_ms for file in await Listed(log.folder)}
    return [listed.get(segment.path, now) for segment in log.segments.view]
