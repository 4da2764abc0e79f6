"""What a file holds, byte for byte, or as series of messages of which only the sizes matter.

Blocks of zeros, which a crash may leave, are a piece of a message that is too long to ever be
whole. A reader of whole entries finds none in it, as in a file of zeros.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from watchkeeper.model.log.format.contents import Contents, Series, SeriesRange, Wrapper

ZEROS = Series("", 0, 1, 1 << 60)


def zeros(size_bytes: int) -> tuple[SeriesRange, ...]:
    """So many bytes of zeros, among series."""
    return (SeriesRange(ZEROS, 0, size_bytes),) if size_bytes else ()


def first_bytes(contents: Contents, size_bytes: int) -> Contents:
    """The beginning of something, for a write that is cut short."""
    if isinstance(contents, bytes):
        return contents[:size_bytes]
    holding = Pieces()
    holding.append(contents)
    return holding.read(0, size_bytes)


class Bytes:
    """Real bytes."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray(data)

    @property
    def size_bytes(self) -> int:
        """How long it is."""
        return len(self._data)

    def append(self, contents: Contents) -> None:
        """Put something at the end."""
        assert isinstance(contents, bytes), "a file holds real bytes or series, not both"
        self._data += contents

    def read(self, at: int, size_bytes: int) -> Contents:
        """What stands between two places."""
        return bytes(self._data[at : at + size_bytes])

    def cut(self, size_bytes: int) -> None:
        """Forget what is behind."""
        del self._data[size_bytes:]

    def blank(self, begin: int, end: int) -> None:
        """Put zeros between two places."""
        self._data[begin:end] = bytes(end - begin)


class Pieces:
    """Pieces of series, one after the other; what goes on where a series ended becomes one."""

    __slots__ = ("_ends", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[SeriesRange] = []
        self._ends: list[int] = []
        """Where in the file each piece ends."""

    @property
    def size_bytes(self) -> int:
        """How long it is."""
        return self._ends[-1] if self._ends else 0

    def append(self, contents: Contents) -> None:
        """Put something at the end."""
        assert not isinstance(contents, bytes), "a file holds real bytes or series, not both"
        pieces, ends = self._pieces, self._ends
        for part in contents:
            size = part.end - part.begin
            joined = _joined(pieces[-1], part) if size and pieces else None
            if joined is not None:
                pieces[-1] = joined
                ends[-1] += size
            elif size:
                pieces.append(part)
                ends.append(ends[-1] + size if ends else size)

    def read(self, at: int, size_bytes: int) -> Contents:
        """What stands between two places."""
        until = min(at + size_bytes, self.size_bytes)
        found = []
        number = bisect_right(self._ends, at)
        while at < until:
            part, end = self._pieces[number], self._ends[number]
            behind = end - min(end, until)
            begin = part.end - (end - at)
            found.append(SeriesRange(part.series, begin, part.end - behind))
            at, number = end, number + 1
        return tuple(found)

    def cut(self, size_bytes: int) -> None:
        """Forget what is behind."""
        number = bisect_left(self._ends, size_bytes)
        if number < len(self._ends):
            part, end = self._pieces[number], self._ends[number]
            del self._pieces[number:], self._ends[number:]
            self.append((SeriesRange(part.series, part.begin, part.end - (end - size_bytes)),))

    def blank(self, begin: int, end: int) -> None:
        """Put zeros between two places."""
        behind = self.read(end, self.size_bytes)
        self.cut(begin)
        self.append(zeros(end - begin))
        self.append(behind)


Holding = Bytes | Pieces


def holding_for(contents: Contents) -> Holding:
    """An empty one that can hold this."""
    return Bytes() if isinstance(contents, bytes) else Pieces()


def _joined(left: SeriesRange, right: SeriesRange) -> SeriesRange | None:
    """Both as one piece, if the second goes on where the first ends."""
    one, other = left.series, right.series
    if one == other:
        return SeriesRange(one, left.begin, right.end) if left.end == right.begin else None
    if isinstance(one, Wrapper) or isinstance(other, Wrapper):
        return None
    if (
        one.producer != other.producer
        or one.payload_bytes != other.payload_bytes
        or other.first != one.first + one.count
        or left.end != one.size_bytes
        or right.begin
    ):
        return None
    both = Series(one.producer, one.first, one.count + other.count, one.payload_bytes)
    return SeriesRange(both, left.begin, left.end + right.end)
