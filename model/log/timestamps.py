"""Offsets before a time, by the modification times of segments.

The only times that a log of 0.7 knows are the modification times of its files.
"""

from __future__ import annotations

from collections.abc import Sequence

from watchkeeper.model.actor.effects import now_ms
from watchkeeper.model.log.base_log import BaseLog
from watchkeeper.model.log.format.requests import EARLIEST, LATEST
from watchkeeper.model.log.segments import Segment
from watchkeeper.model.log.storage import ListFolder


async def offsets_before(log: BaseLog, time_ms: int, max_offsets: int) -> list[int]:
    """Return first offsets of segments modified at `time_ms` or before, newest first.

    The high watermark counts as one more, of the present time, unless the last segment is
    empty. With `LATEST` all are returned, with `EARLIEST` the first offset alone.
    """
    now = await now_ms()
    segments = log.segments.view
    times = await modified_ms(log, segments)
    known = [(segment.start, time) for segment, time in zip(segments, times, strict=True)]
    if log.high_watermark > log.segments.last.start:
        known.append((log.high_watermark, now))
    if time_ms == EARLIEST:
        known = known[:1]
    elif time_ms != LATEST:
        while known and known[-1][1] > time_ms:
            known.pop()
    return [offset for offset, _ in reversed(known)][:max_offsets]


async def modified_ms(log: BaseLog, segments: Sequence[Segment]) -> list[int]:
    """Return the modification times of segments; now, for one newer than the listing."""
    now = await now_ms()
    listed = {
        f"{log.folder}/{file.name}": file.modified_ms for file in await ListFolder(log.folder)
    }
    return [listed.get(segment.path, now) for segment in segments]
