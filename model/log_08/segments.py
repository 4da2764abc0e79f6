"""The segments of a log of 0.8: `<first offset>.log`, and beside it `<first offset>.index`.

An offset counts messages, so the size of a file does not say where it ends: the last segment is
read at the start, from the last entry of its index on. The others end where the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from zlib import crc32

from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES
from watchkeeper.model.log.format.message_08 import (
    CRC,
    CRC_AT,
    OFFSET_AND_SIZE,
    SMALLEST_MESSAGE_BYTES,
)
from watchkeeper.model.log.segments import Segment, segment_name, segment_start
from watchkeeper.model.log.storage import File, Flush, NoSuchFile, Read, Truncate
from watchkeeper.model.log_08.index import INTERVAL_BYTES, OffsetIndex
from watchkeeper.model.log_08.index import SUFFIX as INDEX_SUFFIX

SUFFIX = ".log"
CHUNK_BYTES = 1024 * 1024
HEADS_BYTES = 2 * INTERVAL_BYTES
"""Read at once where an entry is searched for."""
BYTES_ONLY = "the logs of 0.8 hold bytes, not ranges of a series"


class KeyedSegment(Segment):
    """One file of a log."""

    __slots__ = ("index", "next_offset")

    def __init__(self, path: str, start: int, size_bytes: int = 0) -> None:
        super().__init__(path, start, size_bytes)
        self.next_offset = start
        self.index: OffsetIndex | None = None if size_bytes else OffsetIndex(start)
        """None until it is needed, where the file existed before the broker."""

    @property
    def end(self) -> int:
        """The offset of the next append."""
        return self.next_offset

    @property
    def high_watermark(self) -> int:
        """The offset up to which the segment can be read: what was appended can be read."""
        return self.next_offset

    @property
    def index_path(self) -> str:
        """The path of its index."""
        return self.path.removesuffix(SUFFIX) + INDEX_SUFFIX

    def extend(
        self, size_bytes: int, next_offset: int, marks: Sequence[tuple[int, int]], now_ms: int
    ) -> None:
        """Record an append; `marks` are offsets in it, and their positions in it."""
        assert self.index is not None, "a segment that is appended to was opened with its index"
        for offset, position in marks:
            self.index.note(offset, self.size_bytes + position)
        self.grow(size_bytes, now_ms)
        self.next_offset = next_offset


def segments_in(folder: str, files: Iterable[File]) -> list[KeyedSegment]:
    """Return the segments of a folder; raise `DamagedLog` for a file whose name is no offset.

    The end of the last one is not known yet.
    """
    segments = []
    for file in files:
        start = None if file.is_folder else segment_start(file.name, SUFFIX)
        if start is not None:
            segments.append(KeyedSegment(f"{folder}/{file.name}", start, file.size_bytes))
    segments.sort(key=lambda segment: segment.start)
    for before, after in pairwise(segments):
        before.is_mutable = False
        before.next_offset = after.start
    return segments


def first_name() -> str:
    """Return the name of the first segment of a new log."""
    return segment_name(0, SUFFIX)


# --- entries ---------------------------------------------------------------------------


def heads(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield offset, begin and end of each entry whose head is in the data.

    Only the last one may end behind the data. An impossible size ends it.
    """
    at, limit = 0, len(data) - OFFSET_AND_SIZE.size
    unpack = OFFSET_AND_SIZE.unpack_from
    while at <= limit:
        offset, size_bytes = unpack(data, at)
        if size_bytes < SMALLEST_MESSAGE_BYTES:
            return
        end = at + OFFSET_AND_SIZE.size + size_bytes
        yield offset, at, end
        at = end


async def position_of(segment: KeyedSegment, offset: int) -> int:
    """Return the position of the first entry at or behind an offset; the end if there is none.

    Messages that are compressed together have one entry, with the offset of the last one.
    """
    position = (await index_of(segment)).position_before(offset)
    while position < segment.size_bytes:
        data = await Read(segment.path, position, HEADS_BYTES)
        assert isinstance(data, bytes), BYTES_ONLY
        size_bytes = 0
        for found, begin, end in heads(data):
            if found >= offset:
                return position + begin
            size_bytes = end
        if not size_bytes:
            break
        position += size_bytes
    return segment.size_bytes


# --- opening ---------------------------------------------------------------------------


async def open_last(segment: KeyedSegment) -> None:
    """Find the end of a segment that was closed cleanly."""
    index = await index_of(segment)
    start, position = index.last
    _, segment.next_offset = await _scan(segment, index, position, start)


async def recover_last(segment: KeyedSegment) -> int:
    """Cut a segment after its last intact entry; return the number of bytes removed."""
    segment.index = OffsetIndex(segment.start)
    end, next_offset = await _scan(segment, segment.index, 0, segment.start, checks=True)
    cut_bytes = segment.size_bytes - end
    if cut_bytes:
        await Truncate(segment.path, end)
    await Flush(segment.path)
    segment.cut(end)
    segment.next_offset = next_offset
    return cut_bytes


async def index_of(segment: KeyedSegment) -> OffsetIndex:
    """Return the index of a segment, which is read from its file the first time."""
    if segment.index is None:
        index = await _read_index(segment)
        # Another task may have read it meanwhile; both are the same.
        segment.index = segment.index or index
    return segment.index


async def _read_index(segment: KeyedSegment) -> OffsetIndex:
    data: Contents = b""
    with suppress(NoSuchFile):
        data = await Read(segment.index_path, 0, segment.size_bytes)
    assert isinstance(data, bytes), BYTES_ONLY
    index = OffsetIndex.decode(data, segment.start, segment.size_bytes)
    if not index.last[1]:
        await _scan(segment, index, 0, segment.start)
    return index


async def _scan(
    segment: KeyedSegment, index: OffsetIndex, position: int, start: int, *, checks: bool = False
) -> tuple[int, int]:
    """Index the entries from a position on; return the end of the last one and the next offset.

    With `checks`, it ends before the first entry that is damaged or out of order.
    """
    next_offset, chunk_bytes = start, CHUNK_BYTES
    while position < segment.size_bytes:
        data = await Read(segment.path, position, chunk_bytes)
        assert isinstance(data, bytes), BYTES_ONLY
        whole = 0
        for offset, begin, end in heads(data):
            if end > len(data):
                break
            if checks and (offset < next_offset or not _is_intact(data, begin, end)):
                return position + whole, next_offset
            index.note(offset, position + begin)
            next_offset, whole = offset + 1, end
        if not whole:
            chunk_bytes = _size_of_first(data)
            if not len(data) < chunk_bytes <= segment.size_bytes - position:
                break
            continue
        position += whole
        chunk_bytes = CHUNK_BYTES
    return position, next_offset


def _size_of_first(data: bytes) -> int:
    """The size of an entry that is longer than the chunk; 0 if it cannot be that long."""
    _, _, end = next(heads(data), (0, 0, 0))
    return end if end <= LARGEST_FRAME_BYTES else 0


def _is_intact(data: bytes, begin: int, end: int) -> bool:
    (crc,) = CRC.unpack_from(data, begin + CRC_AT)
    return bool(crc == crc32(memoryview(data)[begin + CRC_AT + CRC.size : end]))
