"""The contents of a log's files: real bytes, or messages of which only the sizes matter.

A live broker stores bytes. A simulation of a terabyte cannot: it stores ranges of a `Series`,
equal messages with numbers. The offsets are the same, because an offset of the 0.7 format is a
position in bytes. A log does not distinguish the two kinds: it needs only the size of contents
and the size of their intact entries. Compressed series are a `Wrapper`: one entry, as large as
the codec makes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

ENTRY_OVERHEAD_BYTES = 10
"""The size of a 0.7 entry (magic 1) without its payload: size, magic, attributes, CRC."""


class Series(Struct, frozen=True):
    """Messages of one producer, numbered from `first`, with payloads of one size."""

    producer: str
    first: int
    count: int
    payload_bytes: int

    @property
    def entry_bytes(self) -> int:
        """The size of one entry in a file."""
        return self.payload_bytes + ENTRY_OVERHEAD_BYTES

    @property
    def size_bytes(self) -> int:
        """The size of all entries."""
        return self.count * self.entry_bytes


class Wrapper(Struct, frozen=True):
    """Series that were compressed together: one entry with one offset."""

    parts: tuple[Series, ...]
    codec: int
    payload_bytes: int
    """The size of the compressed payload."""

    @property
    def entry_bytes(self) -> int:
        """The size of the entry in a file."""
        return self.payload_bytes + ENTRY_OVERHEAD_BYTES

    size_bytes = entry_bytes

    @property
    def count(self) -> int:
        """The number of messages in it."""
        return sum(part.count for part in self.parts)

    @property
    def plain_bytes(self) -> int:
        """The size of the messages before they are compressed."""
        return sum(part.size_bytes for part in self.parts)


class SeriesRange(Struct, frozen=True):
    """The bytes from `begin` to `end` of a series or wrapper; either may lie within an entry."""

    series: Series | Wrapper
    begin: int
    end: int

    @property
    def size_bytes(self) -> int:
        """The size of the range."""
        return self.end - self.begin


Contents = bytes | tuple[SeriesRange, ...]
"""The contents of a file or of a part of it. Empty contents are `b""` or `()`."""


def size_of(contents: Contents) -> int:
    """Return the size in bytes, also of contents without bytes."""
    if isinstance(contents, bytes):
        return len(contents)
    return sum(part.size_bytes for part in contents)


def concatenate(several: Sequence[Contents]) -> Contents:
    """Concatenate contents of one kind."""
    if len(several) == 1:
        return several[0]
    parts = [contents for contents in several if isinstance(contents, bytes)]
    if len(parts) == len(several):
        return b"".join(parts)
    return tuple(part for group in several if not isinstance(group, bytes) for part in group)


def whole_series(series: Series) -> tuple[SeriesRange, ...]:
    """Return a whole series as contents."""
    return (SeriesRange(series, 0, series.size_bytes),) if series.count else ()


def wrappers_in(contents: Contents) -> tuple[Wrapper, ...]:
    """Return the wrappers of series in contents; none for bytes, which are real messages."""
    if isinstance(contents, bytes):
        return ()
    return tuple(part.series for part in contents if isinstance(part.series, Wrapper))


def slice_contents(contents: Contents, begin: int, end: int) -> Contents:
    """Return the bytes from `begin` to `end` of contents."""
    if isinstance(contents, bytes):
        return contents[begin:end]
    found = []
    for part in contents:
        low, high = max(begin, 0), min(end, part.size_bytes)
        if low < high:
            found.append(SeriesRange(part.series, part.begin + low, part.begin + high))
        begin -= part.size_bytes
        end -= part.size_bytes
    return tuple(found)
