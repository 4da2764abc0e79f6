"""The segments of a log: which file holds which offsets.

An offset is a position in bytes, counted from the first byte that was ever appended. A
segment is one file; its name says at which offset it begins, and its end is where the next
one begins. So a log needs no index: the names, sorted, are one.

What can be read of a segment is what has been flushed of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from model.log.errors import LogError, OffsetOutOfRange
from model.log.storage import File

SUFFIX = ".kafka"
DIGITS = 20


class Damaged(LogError):
    """The files of a log are not as a log leaves them; nothing is guessed about them."""

    meaning = "the log is damaged"


class Segment:
    """One file of a log."""

    __slots__ = ("first_append_ms", "flushed_bytes", "is_mutable", "path", "size_bytes", "start")

    def __init__(self, path: str, start: int, size_bytes: int = 0) -> None:
        self.path = path
        self.start = start
        self.size_bytes = size_bytes
        """How much was appended."""
        self.flushed_bytes = size_bytes
        """How much of it is on the disk, and so can be read."""
        self.first_append_ms: int | None = None
        """When its age began; None while it is empty."""
        self.is_mutable = True

    @property
    def end(self) -> int:
        """The offset of whatever is appended next."""
        return self.start + self.size_bytes

    @property
    def readable_end(self) -> int:
        """Up to which offset it can be read."""
        return self.start + self.flushed_bytes

    def grow(self, size_bytes: int, now_ms: int) -> None:
        """So much was appended."""
        assert self.is_mutable, f"{self.path} was appended to after it had been rolled"
        self.size_bytes += size_bytes
        if self.first_append_ms is None:
            self.first_append_ms = now_ms

    def cut(self, size_bytes: int) -> None:
        """Only so much is left of it, and that is on the disk."""
        self.size_bytes = self.flushed_bytes = size_bytes
        if not size_bytes:
            self.first_append_ms = None


class SegmentList:
    """Segments in the order of their offsets; who has taken the `view` keeps it as it was."""

    __slots__ = ("view",)

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.view = tuple(segments)

    @property
    def last(self) -> Segment:
        """The one that is appended to."""
        return self.view[-1]

    def append(self, segment: Segment) -> None:
        """Go on with another segment."""
        self.view = (*self.view, segment)

    def remove_first(self, count: int) -> tuple[Segment, ...]:
        """Take the oldest off, at most so many; they are answered."""
        removed, self.view = self.view[:count], self.view[count:]
        return removed


def find(segments: Sequence[Segment], offset: int, log: str = "") -> Segment | None:
    """The segment in which an offset can be read; None exactly at the end of the last.

    Whether an entry begins at the offset is not looked at.
    """
    if not segments:
        return None
    first, last = segments[0], segments[-1]
    if not first.start <= offset <= last.readable_end:
        detail = f"it has those from {first.start} to {last.readable_end}"
        raise OffsetOutOfRange(f"{log or 'log'} at {offset}", detail)
    if offset == last.readable_end:
        return None
    return segments[bisect_right(segments, offset, key=lambda segment: segment.start) - 1]


# --- names -----------------------------------------------------------------------------


def name_of(start: int) -> str:
    """The name of the file that begins at an offset."""
    return f"{start:0{DIGITS}d}{SUFFIX}"


def start_of(name: str) -> int | None:
    """Where a file begins by its name, with any number of digits; None if it is no segment."""
    digits = name.removesuffix(SUFFIX)
    if digits == name:
        return None
    if not (digits.isascii() and digits.isdecimal()):
        raise Damaged(
            name,
            f"it ends like a segment but is no number before that; expected a name like "
            f"{name_of(0)}: move it out of the folder",
        )
    return int(digits)


def segments_of(folder: str, files: Iterable[File]) -> list[Segment]:
    """The segments that are in a folder; `Damaged` if one does not follow the other."""
    segments = []
    for file in files:
        start = None if file.is_folder else start_of(file.name)
        if start is not None:
            segments.append(Segment(f"{folder}/{file.name}", start, file.size_bytes))
    segments.sort(key=lambda segment: segment.start)
    for before, after in pairwise(segments):
        if before.end != after.start or before.start == after.start:
            raise Damaged(
                before.path,
                f"it begins at {before.start} and ends at {before.end}, but the next segment, "
                f"{after.path}, begins at {after.start}: a file is missing, was changed or is "
                "there twice; put back what belongs there, or move the folder away",
            )
        before.is_mutable = False
    return segments
