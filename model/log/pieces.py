"""The entries of pieces of series, where `message_set` has those of bytes.

The functions bear the same names and say the same of the same log: which of the two a log
holds makes no difference to the offsets in it. A message of a series is never damaged and
never compressed. What can go wrong is where it was cut: a piece may end within an entry,
as what was fetched does; and one that begins within an entry, without the beginning before
it, is what a wrong offset gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from model.log.contents import Piece, Series
from model.log.errors import InvalidMessageSize, LogError, MessageSizeTooLarge
from model.log.message_set import Checked, Delivered, Numbered


class Run(Struct, frozen=True):
    """Whole entries of one series, one after the other."""

    begin: int
    """Where it begins in the contents."""
    series: Series
    first: int
    """Which of the series' messages is its first, counted from 0."""
    count: int

    @property
    def size_bytes(self) -> int:
        """What they take."""
        return self.count * self.series.entry_bytes


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The same with what was cut apart put together: an append may have come in parts."""
    growing: Piece | None = None
    for piece in pieces:
        if growing is None:
            growing = piece
        elif growing.series == piece.series and growing.end == piece.begin:
            growing = Piece(growing.series, growing.begin, piece.end)
        else:
            yield growing
            growing = piece
    if growing is not None:
        yield growing


def runs(pieces: Sequence[Piece], at_offset: int = 0) -> Iterator[Run]:
    """The whole entries; an error where something follows that is not the end of a cut one."""
    begin = 0
    is_cut = False
    for piece in _joined([piece for piece in pieces if piece.size_bytes]):
        entry_bytes = piece.series.entry_bytes
        first, into_entry = divmod(piece.begin, entry_bytes)
        if is_cut or into_entry:
            what = "an entry is cut, and something else follows" if is_cut else "within an entry"
            raise InvalidMessageSize(f"offset {at_offset + begin}", what)
        run = Run(begin, piece.series, first, piece.end // entry_bytes - first)
        begin += run.size_bytes
        is_cut = run.size_bytes < piece.size_bytes
        if run.count:
            yield run
    if is_cut and begin == 0:
        raise InvalidMessageSize(f"offset {at_offset}", "a part of an entry, and no whole one")


def deep(pieces: Sequence[Piece], at_offset: int = 0) -> Iterator[Delivered]:
    """The messages, each with the offset to go on at."""
    for run in runs(pieces, at_offset):
        offset = at_offset + run.begin
        entry_bytes = run.series.entry_bytes
        number = run.series.first + run.first
        for _ in range(run.count):
            message = Numbered(run.series.producer, number)
            yield Delivered(offset, offset + entry_bytes, message)
            offset += entry_bytes
            number += 1


def valid_size(pieces: Sequence[Piece]) -> int:
    """How many bytes are whole entries; the rest is the part of one."""
    return sum(run.size_bytes for run in runs(pieces))


def whole_entries(pieces: Sequence[Piece]) -> int:
    """How many bytes from the start are whole entries, whatever follows."""
    size_bytes = 0
    with suppress(LogError):
        for run in runs(pieces):
            size_bytes += run.size_bytes
    return size_bytes


def checked(pieces: Sequence[Piece], *, largest_payload_bytes: int) -> Checked:
    """Check messages before they are appended, and cut off the part of an entry at the end."""
    kept = []
    message_count = size_bytes = 0
    for run in runs(pieces):
        payload_bytes = run.series.payload_bytes
        if payload_bytes > largest_payload_bytes:
            detail = f"{payload_bytes} bytes, {largest_payload_bytes} are allowed"
            raise MessageSizeTooLarge(f"offset {run.begin}", detail)
        begin = run.first * run.series.entry_bytes
        kept.append(Piece(run.series, begin, begin + run.size_bytes))
        message_count += run.count
        size_bytes += run.size_bytes
    return Checked(tuple(kept), message_count, size_bytes)
