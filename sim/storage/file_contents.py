"""What a file holds, byte for byte, or as series of messages of which only the sizes matter.

Blocks of zeros, which a crash may leave, are a piece of a message that is too long to ever be
whole. Whoever looks for whole entries finds none in it, as in a file of zeros.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from model.log.contents import Contents, Piece, Series

ZEROS = Series("", 0, 1, 1 << 60)


def zeros(size_bytes: int) -> tuple[Piece, ...]:
    """So many bytes of zeros, among series."""
    return (Piece(ZEROS, 0, size_bytes),) if size_bytes else ()


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
        self._pieces: list[Piece] = []
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
        for piece in contents:
            size = piece.end - piece.begin
            joined = _joined(pieces[-1], piece) if size and pieces else None
            if joined is not None:
                pieces[-1] = joined
                ends[-1] += size
            elif size:
                pieces.append(piece)
                ends.append(ends[-1] + size if ends else size)

    def read(self, at: int, size_bytes: int) -> Contents:
        """What stands between two places."""
        until = min(at + size_bytes, self.size_bytes)
        found = []
        number = bisect_right(self._ends, at)
        while at < until:
            piece, end = self._pieces[number], self._ends[number]
            behind = end - min(end, until)
            begin = piece.end - (end - at)
            found.append(Piece(piece.series, begin, piece.end - behind))
            at, number = end, number + 1
        return tuple(found)

    def cut(self, size_bytes: int) -> None:
        """Forget what is behind."""
        number = bisect_left(self._ends, size_bytes)
        if number < len(self._ends):
            piece, end = self._pieces[number], self._ends[number]
            del self._pieces[number:], self._ends[number:]
            self.append((Piece(piece.series, piece.begin, piece.end - (end - size_bytes)),))

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


def _joined(left: Piece, right: Piece) -> Piece | None:
    """Both as one piece, if the second goes on where the first ends."""
    one, other = left.series, right.series
    if one == other:
        return Piece(one, left.begin, right.end) if left.end == right.begin else None
    if (
        one.producer != other.producer
        or one.payload_bytes != other.payload_bytes
        or other.first != one.first + one.count
        or left.end != one.size_bytes
        or right.begin
    ):
        return None
    both = Series(one.producer, one.first, one.count + other.count, one.payload_bytes)
    return Piece(both, left.begin, left.end + right.end)
