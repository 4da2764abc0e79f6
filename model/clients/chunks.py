"""What a fetch brought of one partition, and how it is handed on, message by message.

As many as are asked for come at once, as long as they are messages of one producer that
follow one another and of which it is known who they are: all of a series, or payloads that
say so. A consumer that handles a thousand messages a millisecond does so in one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from model.asks import Partition
from model.clients.identities import identity_of, lot_of_series
from model.delivery import Lot
from model.log import pieces
from model.log.contents import Contents, Series
from model.log.entries import messages_in
from model.log.errors import LogError
from model.log.pieces import Run


class Handed(NamedTuple):
    """A message, or several that follow one another, as an application is handed them."""

    partition: Partition
    offset: int
    next_offset: int
    """Where to go on after it."""
    payload: bytes | tuple[bytes, ...] | Series
    begins_entry: bool = True
    """Whether it is the first at its offset: what was compressed together has one offset."""

    @property
    def size(self) -> int:
        """How many messages they are."""
        if isinstance(self.payload, Series):
            return self.payload.count
        return 1 if isinstance(self.payload, bytes) else len(self.payload)

    @property
    def lot(self) -> Lot | None:
        """Who they are; None where a payload does not say."""
        if isinstance(self.payload, Series):
            return lot_of_series(self.payload, 0, self.payload.count, self.offset)
        first = self.payload if isinstance(self.payload, bytes) else self.payload[0]
        identity = identity_of(first)
        if identity is None:
            return None
        producer, number = identity
        return Lot(producer, number, number + self.size, self.offset, self.next_offset)


class Chunk:
    """What a fetch brought, from an offset on. It is read once, from its start."""

    def __init__(self, partition: Partition, contents: Contents, at_offset: int) -> None:
        self.partition = partition
        self._bytes: Iterator[Handed] | None = None
        self._read: Handed | LogError | None = None
        """What was read after the last message that was handed on."""
        self._runs: Iterator[Run] = iter(())
        if isinstance(contents, bytes):
            self._bytes = self._messages(contents, at_offset)
        else:
            self._runs = pieces.runs(contents, at_offset)
        self._at_offset = at_offset
        self._run: Run | None = None
        self._taken = 0
        """How much of that run was handed on."""

    def next(self, at_most: int) -> Handed | None:
        """The next message, or at most so many that follow one another; None at the end.

        Raises what is wrong with the next entry, if something is.
        """
        if self._bytes is not None:
            return self._together(at_most)
        if self._run is None or self._taken == self._run.count:
            self._run, self._taken = next(self._runs, None), 0
        return None if self._run is None else self._of(self._run, at_most)

    def _of(self, run: Run, at_most: int) -> Handed:
        series, count = run.series, min(at_most, run.count - self._taken)
        offset = self._at_offset + run.begin + self._taken * series.entry_bytes
        first = series.first + run.first + self._taken
        self._taken += count
        part = Series(series.producer, first, count, series.payload_bytes)
        return Handed(self.partition, offset, offset + part.size_bytes, part)

    def _together(self, at_most: int) -> Handed | None:
        """The next message, with those behind it that continue its lot."""
        first = self._next_message()
        if at_most == 1 or first is None or (lot := first.lot) is None:
            return first
        handed = [first]
        while len(handed) < at_most:
            try:
                following = self._next_message()
            except LogError as error:
                self._read = error
                break
            other = None if following is None else following.lot
            if following is None or other is None or not lot.precedes(other):
                self._read = following
                break
            lot = lot._replace(end=other.end, to=other.to)
            handed.append(following)
        payloads = tuple(one.payload for one in handed if isinstance(one.payload, bytes))
        return first._replace(next_offset=lot.to, payload=payloads)

    def _next_message(self) -> Handed | None:
        assert self._bytes is not None, "only bytes hold single messages"
        held, self._read = self._read, None
        if isinstance(held, LogError):
            raise held
        return held or next(self._bytes, None)

    def _messages(self, contents: bytes, at_offset: int) -> Iterator[Handed]:
        begun_at = -1
        for message in messages_in(contents, at_offset):
            assert isinstance(message.payload, bytes), "bytes hold payloads"
            offset, next_offset = message.offset, message.next_offset
            is_first = offset != begun_at
            yield Handed(self.partition, offset, next_offset, message.payload, is_first)
            begun_at = offset
