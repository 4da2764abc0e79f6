"""What a fetch brought of one partition, and how it is handed on, message by message.

Messages that are bytes are handed on one by one. Of a series, of which only the numbers and
sizes are known, as many as are asked for come at once: a simulated consumer that handles a
thousand messages a millisecond does so in one step.
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
from model.log.pieces import Run


class Handed(NamedTuple):
    """A message, or several of one series, as an application is handed them."""

    partition: Partition
    offset: int
    next_offset: int
    """Where to go on after it."""
    payload: bytes | Series

    @property
    def size(self) -> int:
        """How many messages they are."""
        return self.payload.count if isinstance(self.payload, Series) else 1

    @property
    def lot(self) -> Lot | None:
        """Who they are; None where a payload does not say."""
        if isinstance(self.payload, Series):
            return lot_of_series(self.payload, 0, self.payload.count, self.offset)
        identity = identity_of(self.payload)
        if identity is None:
            return None
        producer, number = identity
        return Lot(producer, number, number + 1, self.offset, self.next_offset)


class Chunk:
    """What a fetch brought, from an offset on. It is read once, from its start."""

    def __init__(self, partition: Partition, contents: Contents, at_offset: int) -> None:
        self.partition = partition
        self._bytes: Iterator[Handed] | None = None
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
        """The next message, or at most so many of a series; None at the end.

        Raises what is wrong with the next entry, if something is.
        """
        if self._bytes is not None:
            return next(self._bytes, None)
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

    def _messages(self, contents: bytes, at_offset: int) -> Iterator[Handed]:
        for message in messages_in(contents, at_offset):
            assert isinstance(message.payload, bytes), "bytes hold payloads"
            yield Handed(self.partition, message.offset, message.next_offset, message.payload)
