"""Loading: a cache is filled from the log of its partition, in chunks.

Requests are served between the chunks: fetches of offsets find the cache not loaded, commits are
appended and noted. The load ends at the end that the log has then, without a pause between the
last comparison and the flag, so that no message is missed.

Kafka 0.8.2.2: OffsetManager.loadOffsetsFromLog.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from watchkeeper.model.actor.effects import sleep
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES
from watchkeeper.model.log.format.message_08 import Record, records
from watchkeeper.model.log.segments import DamagedLog
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.offset_manager.cache import OffsetCache
from watchkeeper.model.offset_manager.records import UnreadableRecord, read_record

ReadFrom = Callable[[KeyedLog, int, int], Awaitable[bytes]]


class Loaded(NamedTuple):
    """What a load has read."""

    messages: int
    unreadable: int
    """The messages that are no offsets of groups."""


async def load(
    log: KeyedLog | None, cache: OffsetCache, read: ReadFrom, chunk_bytes: int
) -> Loaded:
    """Fill a cache from a log; None: nothing was ever appended.

    `read` reads some bytes of the log from an offset on, also while it is compacted. As in Kafka,
    a message that is longer than a chunk is read in a longer one.

    Raises a `LogError` for a damaged message; then the cache does not count as loaded.
    """
    count = unreadable = 0
    next_offset = 0 if log is None else log.start
    while log is not None and next_offset < log.high_watermark:
        found = await _chunk(log, next_offset, read, chunk_bytes)
        unreadable += note_all(found, cache)
        count += len(found)
        next_offset = found[-1].offset + 1 if found else log.high_watermark
        await sleep(0)
    cache.is_loaded = True
    return Loaded(count, unreadable)


def note_all(found: Iterable[Record], cache: OffsetCache) -> int:
    """Note the messages of a log; return how many are no offsets."""
    unreadable = 0
    for record in found:
        try:
            cache.note(record.offset, *read_record(record))
        except UnreadableRecord:
            unreadable += 1
    return unreadable


async def _chunk(log: KeyedLog, offset: int, read: ReadFrom, chunk_bytes: int) -> list[Record]:
    """Read some messages from an offset on; none if compaction has left none behind it."""
    size_bytes = chunk_bytes
    while True:
        data = await read(log, offset, size_bytes)
        if not data:
            return []
        found = [each for each in _whole(data) if each.offset >= offset]
        if found:
            return found
        if len(data) < size_bytes or size_bytes > LARGEST_FRAME_BYTES:
            raise DamagedLog(log.folder, f"at offset {offset} no whole message begins")
        size_bytes *= 2


def _whole(data: bytes) -> list[Record]:
    """The messages that are whole; none if the chunk ends in the first one."""
    size_bytes = int.from_bytes(data[8:12], signed=True)
    return list(records(data)) if len(data) >= 12 + size_bytes else []
