"""What a file of a log holds: real bytes, or messages of which only the sizes matter.

A live broker stores bytes. A simulation of a terabyte must not: it stores `Series`, equal
messages known by their numbers, and the offsets come out the same, since in the 0.7 format
an offset is a position in bytes. A log never looks which of the two it has; it asks for the
size of what it appends and for how far a file holds whole entries.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

ENTRY_OVERHEAD_BYTES = 10
"""What a 0.7 entry (magic 1) takes beside its payload: size, magic, attributes, CRC."""


class Series(Struct, frozen=True):
    """Messages of one producer, numbered from `first`, all with payloads of one size."""

    producer: str
    first: int
    count: int
    payload_bytes: int

    @property
    def entry_bytes(self) -> int:
        """What one of them takes in a file."""
        return self.payload_bytes + ENTRY_OVERHEAD_BYTES

    @property
    def size_bytes(self) -> int:
        """What all of them take."""
        return self.count * self.entry_bytes


class Piece(Struct, frozen=True):
    """The bytes from `begin` to `end` of a series; either may lie within an entry."""

    series: Series
    begin: int
    end: int

    @property
    def size_bytes(self) -> int:
        """How much it is."""
        return self.end - self.begin


Contents = bytes | tuple[Piece, ...]
"""What is appended to a file and read from it. An empty one is `b""` or `()`."""


def size_of(contents: Contents) -> int:
    """How many bytes this is, or would be."""
    if isinstance(contents, bytes):
        return len(contents)
    return sum(piece.size_bytes for piece in contents)


def joined(several: Sequence[Contents]) -> Contents:
    """Some contents one after the other; a log holds only one of the two kinds."""
    if len(several) == 1:
        return several[0]
    parts = [contents for contents in several if isinstance(contents, bytes)]
    if len(parts) == len(several):
        return b"".join(parts)
    return tuple(piece for one in several if not isinstance(one, bytes) for piece in one)


def whole(series: Series) -> tuple[Piece, ...]:
    """All of a series, as contents."""
    return (Piece(series, 0, series.size_bytes),) if series.count else ()


def part_of(contents: Contents, begin: int, end: int) -> Contents:
    """The bytes from `begin` to `end` of contents."""
    if isinstance(contents, bytes):
        return contents[begin:end]
    found = []
    for piece in contents:
        low, high = max(begin, 0), min(end, piece.size_bytes)
        if low < high:
            found.append(Piece(piece.series, piece.begin + low, piece.begin + high))
        begin -= piece.size_bytes
        end -= piece.size_bytes
    return tuple(found)
