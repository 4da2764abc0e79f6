"""Compaction: of the messages of each key, the latest one is kept, at its offset.

    log         | clean segments | dirty segments | active segment |
                                 ^ first dirty offset

The offsets of the latest message of each key in the *dirty* segments are collected. Then all
segments before the active one are copied without the messages that have a later one in that map.
A tombstone stays for a time, so that a reader who began before it sees it. Successive segments
are copied into one as long as it does not exceed the size of a segment. Messages without a key
stay.

Nothing here changes the log. `KeyedLog.replace` exchanges segments, under the lock of the log.

Kafka 0.8.2.2: LogCleaner, Cleaner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from watchkeeper.model.actor.effects import sleep
from watchkeeper.model.log.format.codecs import compress
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES
from watchkeeper.model.log.format.message_08 import (
    CODEC_BITS,
    OFFSET_AND_SIZE,
    KeyedMessage,
    Record,
    Unwrapping,
    encode,
    entries,
    records,
)
from watchkeeper.model.log.segments import DamagedLog
from watchkeeper.model.log.storage import Append, CreateFile, Flush, Read, Touch
from watchkeeper.model.log_08.segments import (
    BYTES_ONLY,
    CHUNK_BYTES,
    KeyedSegment,
    heads,
    position_of,
)
from watchkeeper.model.log_08.swap import cleaned_path

MOST_KEYS = 4_000_000
"""About as many as Kafka's map of 128 MiB holds (`log.cleaner.dedupe.buffer.size`)."""
LARGEST_SPAN = 2**31 - 1
"""Of offsets in one segment: its index has no larger ones."""


KeyAndValue = Callable[[bytes | None, bytes | None], tuple[bytes | None, bytes | None]]
"""What counts as the key and the value of a message, from those that it is stored with."""


def as_stored(key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Take the key and the value as they are."""
    return key, value


class Interrupted(Exception):
    """The broker ends: the compaction is given up, and the next start removes what it wrote."""


class Source(NamedTuple):
    """A segment that is copied."""

    segment: KeyedSegment
    modified_ms: int
    keeps_tombstones: bool


class Latest(NamedTuple):
    """The latest offset of each key in dirty segments, which were read up to `end`."""

    offsets: Mapping[bytes, int]
    end: int


class Copied(NamedTuple):
    """A new segment, and what was left out of it."""

    segment: KeyedSegment
    removed_messages: int
    removed_bytes: int


class SegmentReader:
    """Reads a segment, which nothing changes, in chunks of whole entries."""

    def __init__(self, segment: KeyedSegment, position: int = 0) -> None:
        self._segment = segment
        self._position = position

    async def next(self) -> bytes:
        """Return the next entries; none at the end."""
        chunk_bytes = CHUNK_BYTES
        while self._position < self._segment.size_bytes:
            data = await Read(self._segment.path, self._position, chunk_bytes)
            assert isinstance(data, bytes), BYTES_ONLY
            whole = max((end for _, _, end in heads(data) if end <= len(data)), default=0)
            if whole:
                self._position += whole
                return data[:whole]
            if len(data) < chunk_bytes or chunk_bytes > LARGEST_FRAME_BYTES:
                where = f"{self._segment.path} at byte {self._position}"
                raise DamagedLog(where, "no whole message begins there")
            chunk_bytes *= 2
        return b""


async def latest_offsets(
    segments: Sequence[KeyedSegment],
    first_dirty: int,
    is_over: Callable[[], bool],
    most_keys: int,
    key_and_value: KeyAndValue = as_stored,
) -> Latest:
    """Collect the latest offset of each key from `first_dirty` on, about `most_keys` at most."""
    found: dict[bytes, int] = {}
    for segment in segments:
        if segment.next_offset <= first_dirty:
            continue
        reader = SegmentReader(segment, await position_of(segment, first_dirty))
        while data := await reader.next():
            for record in records(data):
                key, _ = key_and_value(record.key, record.value)
                if key is not None:
                    found[key] = record.offset
                    if len(found) >= most_keys:
                        return Latest(found, record.offset + 1)
            await _pause(is_over)
    return Latest(found, segments[-1].next_offset)


def in_groups(sources: Sequence[Source], segment_bytes: int) -> Iterator[tuple[Source, ...]]:
    """Yield successive segments that together are no larger than one segment may be."""
    group: list[Source] = []
    size_bytes = 0
    for source in sources:
        size_bytes += source.segment.size_bytes
        start = group[0].segment.start if group else source.segment.start
        is_too_long = source.segment.next_offset - start > LARGEST_SPAN
        if group and (size_bytes > segment_bytes or is_too_long):
            yield tuple(group)
            group, size_bytes = [], source.segment.size_bytes
        group.append(source)
    if group:
        yield tuple(group)


async def copy(
    group: Sequence[Source],
    latest: Latest,
    is_over: Callable[[], bool],
    key_and_value: KeyAndValue = as_stored,
) -> Copied:
    """Copy what is kept of some segments into a new file, and flush it.

    The new file has the modification time of the last segment: the age of tombstones counts
    from there.
    """
    first, last = group[0].segment, group[-1]
    path = cleaned_path(first.path)
    await CreateFile(path)
    new = KeyedSegment(first.path, first.start)
    count = 0
    for source in group:
        reader = SegmentReader(source.segment)
        while data := await reader.next():
            stays = _Filter(latest.offsets, source.keeps_tombstones, key_and_value)
            kept = stays.kept(data)
            await _append(path, new, kept)
            count += kept.removed
            await _pause(is_over)
    await Flush(path, new.size_bytes)
    await Touch(path, last.modified_ms)
    new.cut(new.size_bytes)
    new.next_offset, new.is_mutable = last.segment.next_offset, False
    removed_bytes = sum(source.segment.size_bytes for source in group) - new.size_bytes
    return Copied(new, count, removed_bytes)


async def _append(path: str, new: KeyedSegment, kept: _Kept) -> None:
    data = b"".join(entry for _, entry in kept.entries)
    assert new.index is not None, "a new segment has an index"
    position = new.size_bytes
    for offset, entry in kept.entries:
        new.index.note(offset, position)
        position += len(entry)
    new.size_bytes = position
    while data:
        data = data[await Append(path, data) :]


async def _pause(is_over: Callable[[], bool]) -> None:
    """Let requests be served."""
    await sleep(0)
    if is_over():
        raise Interrupted


class _Kept(NamedTuple):
    entries: list[tuple[int, bytes]]
    """Offset and bytes of each entry that stays."""
    removed: int


class _Filter:
    """Chooses the messages of a segment that stay."""

    def __init__(
        self, latest: Mapping[bytes, int], keeps_tombstones: bool, key_and_value: KeyAndValue
    ) -> None:
        self._latest = latest
        self._keeps_tombstones = keeps_tombstones
        self._key_and_value = key_and_value

    def kept(self, data: bytes) -> _Kept:
        """Return the entries that stay; a wrapper is compressed again if it loses a message."""
        found: list[tuple[int, bytes]] = []
        removed = 0
        unwrapping = Unwrapping(LARGEST_FRAME_BYTES)
        for begin, end, offset, attributes, key, value in entries(data):
            if not attributes & CODEC_BITS:
                if self._stays(offset, key, value):
                    found.append((offset, data[begin:end]))
                else:
                    removed += 1
                continue
            inner = list(unwrapping.unwrapped(attributes, value, f"offset {offset}"))
            staying = [each for each in inner if self._stays(*_fields(each))]
            removed += len(inner) - len(staying)
            if len(staying) == len(inner):
                found.append((offset, data[begin:end]))
            elif staying:
                found.append((staying[-1].offset, _wrapped(staying, attributes & CODEC_BITS)))
        return _Kept(found, removed)

    def _stays(self, offset: int, key: bytes | None, value: bytes | None) -> bool:
        key, value = self._key_and_value(key, value)
        if key is None:
            return True
        if offset < self._latest.get(key, offset):
            return False
        return value is not None or self._keeps_tombstones


def _fields(record: Record) -> tuple[int, bytes | None, bytes | None]:
    return record.offset, record.key, record.value


def _wrapped(messages: Sequence[Record], codec: int) -> bytes:
    """Compress messages that keep their offsets into one wrapper."""
    inner = bytearray()
    for each in messages:
        encoded = KeyedMessage(each.key, each.value).encode()
        inner += OFFSET_AND_SIZE.pack(each.offset, len(encoded))
        inner += encoded
    return encode([KeyedMessage(None, compress(codec, bytes(inner)), codec)], messages[-1].offset)
