"""The segments of a log: the files, and the offsets that each one holds.

An offset is a position in bytes, counted from the first byte ever appended. A segment is one
file. Its name is its first offset, and it ends where the next one begins. So a log needs no
index: the sorted names are the index.

Only the flushed part of a segment can be read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from watchkeeper.model.log.format.errors import LogError, OffsetOutOfRange
from watchkeeper.model.log.storage import File

SUFFIX = ".kafka"
DIGITS = 20


class DamagedLog(LogError):
    """The files of a log contradict each other; the log is not opened by guessing."""

    meaning = "the log is damaged"


class Segment:
    """One file of a log."""

    __slots__ = ("first_append_ms", "flushed_bytes", "is_mutable", "path", "size_bytes", "start")

    def __init__(self, path: str, start: int, size_bytes: int = 0) -> None:
        self.path = path
        self.start = start
        self.size_bytes = size_bytes
        """The bytes that were appended."""
        self.flushed_bytes = size_bytes
        """The bytes that are on the disk, and can be read."""
        self.first_append_ms: int | None = None
        """The time of the first append, from which its age counts; None while it is empty."""
        self.is_mutable = True

    @property
    def end(self) -> int:
        """The offset of the next append."""
        return self.start + self.size_bytes

    @property
    def high_watermark(self) -> int:
        """The offset up to which the segment can be read."""
        return self.start + self.flushed_bytes

    def grow(self, size_bytes: int, now_ms: int) -> None:
        """Record an append of `size_bytes`."""
        assert self.is_mutable, f"{self.path} was appended to after it had been rolled"
        self.size_bytes += size_bytes
        if self.first_append_ms is None:
            self.first_append_ms = now_ms

    def cut(self, size_bytes: int) -> None:
        """Record a truncation to `size_bytes`, all of it on the disk."""
        self.size_bytes = self.flushed_bytes = size_bytes
        # An empty segment has no age. Kafka kept the old one, and rolled an empty segment to
        # the same file name (KAFKA-593, KAFKA-596).
        if not size_bytes:
            self.first_append_ms = None


class SegmentList:
    """Segments in the order of their offsets. A `view` is immutable: a snapshot for readers."""

    __slots__ = ("view",)

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.view = tuple(segments)

    @property
    def last(self) -> Segment:
        """The segment that receives appends."""
        return self.view[-1]

    def append(self, segment: Segment) -> None:
        """Add a segment at the end."""
        self.view = (*self.view, segment)

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Put a segment in the place of successive others."""
        at = self.view.index(old[0])
        assert self.view[at : at + len(old)] == tuple(old), "segments were removed meanwhile"
        self.view = (*self.view[:at], new, *self.view[at + len(old) :])

    def remove_last(self) -> None:
        """Remove the last segment; another one is left."""
        assert len(self.view) > 1, "a log has a segment"
        self.view = self.view[:-1]

    def remove_first(self, count: int) -> tuple[Segment, ...]:
        """Remove and return the oldest segments, at most `count`."""
        removed, self.view = self.view[:count], self.view[count:]
        return removed


def find(segments: Sequence[Segment], offset: int, log: str = "") -> Segment | None:
    """Return the segment in which an offset can be read; None exactly at the high watermark.

    Raises `OffsetOutOfRange` before the first and after the last readable offset. The offset
    is not checked to be the start of an entry.
    """
    if not segments:
        return None
    first, last = segments[0], segments[-1]
    if not first.start <= offset <= last.high_watermark:
        detail = f"it has those from {first.start} to {last.high_watermark}"
        raise OffsetOutOfRange(f"{log or 'log'} at {offset}", detail)
    if offset == last.high_watermark:
        return None
    return segments[bisect_right(segments, offset, key=lambda segment: segment.start) - 1]


# --- names -----------------------------------------------------------------------------


def segment_name(start: int, suffix: str = SUFFIX) -> str:
    """Return the file name of the segment that begins at an offset."""
    return f"{start:0{DIGITS}d}{suffix}"


def segment_start(name: str, suffix: str = SUFFIX) -> int | None:
    """Return the first offset by a file name (any number of digits); None for other files.

    Raises `DamagedLog` for a name with the suffix of a segment but without a number.
    """
    digits = name.removesuffix(suffix)
    if digits == name:
        return None
    if not (digits.isascii() and digits.isdecimal()):
        raise DamagedLog(
            name,
            f"it ends like a segment but is no number before that; expected a name like "
            f"{segment_name(0, suffix)}: move it out of the folder",
        )
    return int(digits)


def segments_in(folder: str, files: Iterable[File]) -> list[Segment]:
    """Return the segments of a folder; raise `DamagedLog` if there is a gap or an overlap."""
    segments = []
    for file in files:
        start = None if file.is_folder else segment_start(file.name)
        if start is not None:
            segments.append(Segment(f"{folder}/{file.name}", start, file.size_bytes))
    segments.sort(key=lambda segment: segment.start)
    for before, after in pairwise(segments):
        if before.end != after.start or before.start == after.start:
            raise DamagedLog(
                before.path,
                f"it begins at {before.start} and ends at {before.end}, but the next segment, "
                f"{after.path}, begins at {after.start}: a file is missing, was changed or is "
                "there twice; put back what belongs there, or move the folder away",
            )
        before.is_mutable = False
    return segments
