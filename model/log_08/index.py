"""The index of a segment: every few kilobytes, an offset and its position in the file.

    index file    entries of int32 offset, counted from the first of the segment, and int32
                  position of the entry that has it

A lookup finds the last entry of the index that is not behind the offset, and reads the log from
there on. The file is written when the segment takes no more, so that the next start need not read
the whole log; a file that is missing or damaged costs only that reading.

Kafka 0.8.2.2: OffsetIndex, LogSegment.append.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from struct import Struct

ENTRY = Struct(">ii")
INTERVAL_BYTES = 4096
"""`log.index.interval.bytes`: so many bytes of the log have at least one entry."""
SUFFIX = ".index"


class OffsetIndex:
    """Offsets and positions, in rising order, from the start of the segment."""

    __slots__ = ("_offsets", "_positions", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self._offsets = array("q", (start,))
        self._positions = array("q", (0,))

    @property
    def last(self) -> tuple[int, int]:
        """The last offset of the index, and its position."""
        return self._offsets[-1], self._positions[-1]

    def note(self, offset: int, position: int) -> None:
        """Add an entry, if the last one is far enough away."""
        if position - self._positions[-1] >= INTERVAL_BYTES:
            self._offsets.append(offset)
            self._positions.append(position)

    def position_before(self, offset: int) -> int:
        """Return a position at or before the entry of an offset, and not far from it."""
        return self._positions[max(bisect_right(self._offsets, offset) - 1, 0)]

    def cut(self, position: int) -> None:
        """Drop the entries at a position and behind it."""
        while len(self._positions) > 1 and self._positions[-1] >= position:
            self._offsets.pop()
            self._positions.pop()

    def encode(self) -> bytes:
        """Encode the index as a file; the first entry of a segment needs none."""
        rows = zip(self._offsets[1:], self._positions[1:], strict=True)
        return b"".join(ENTRY.pack(offset - self.start, position) for offset, position in rows)

    @classmethod
    def decode(cls, data: bytes, start: int, size_bytes: int) -> OffsetIndex:
        """Decode an index as far as it can be that of a segment of this size.

        A broker that was killed leaves its file with zeros at the end.
        """
        index = cls(start)
        for relative, position in _rows(data):
            offset, before = start + relative, index.last
            if offset <= before[0] or not before[1] < position < size_bytes:
                break
            index._offsets.append(offset)
            index._positions.append(position)
        return index


def _rows(data: bytes) -> Iterator[tuple[int, int]]:
    yield from ENTRY.iter_unpack(data[: len(data) // ENTRY.size * ENTRY.size])
