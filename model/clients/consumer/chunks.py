"""The messages that one fetch returned for one partition, and their delivery.

A delivery may hold several messages if they are consecutive messages of one producer with a
known identity: a range of a series, or payloads that carry their identity. A simulated
consumer that processes a thousand messages a millisecond then takes one step for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.tasks import Decompress
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.delivery.message_id import identity_of
from watchkeeper.model.log.format import series as series_format
from watchkeeper.model.log.format.contents import Contents, Series, Wrapper
from watchkeeper.model.log.format.entries import messages_in
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.series import EntryRun


class Delivery(NamedTuple):
    """A message, or several consecutive ones, as an application receives them."""

    partition: Partition
    offset: int
    next_offset: int
    """The offset to resume at afterwards."""
    payload: bytes | tuple[bytes, ...] | Series | None
    """None in a tombstone of 0.8."""
    begins_entry: bool = True
    """Whether it is the first at its offset: messages compressed together share one."""
    key: bytes | None = None

    @property
    def size(self) -> int:
        """The number of messages."""
        if isinstance(self.payload, Series):
            return self.payload.count
        return len(self.payload) if isinstance(self.payload, tuple) else 1

    @property
    def message_range(self) -> MessageRange | None:
        """The identity of the messages; None if the payload does not carry one."""
        if isinstance(self.payload, Series):
            piece, end = self.payload, self.payload.first + self.payload.count
            return MessageRange(piece.producer, piece.first, end, self.offset, self.next_offset)
        first = self.payload[0] if isinstance(self.payload, tuple) else self.payload
        identity = None if first is None else identity_of(first)
        if identity is None:
            return None
        producer, number = identity
        return MessageRange(producer, number, number + self.size, self.offset, self.next_offset)


class Messages(ABC):
    """What came for one partition, and is delivered in order."""

    @abstractmethod
    def next(self, max_messages: int) -> Delivery | None:
        """Return the next message, or up to `max_messages` consecutive ones; None at the end."""

    @abstractmethod
    async def open_wrapper(self) -> None:
        """Take the time to decompress the next messages, if that takes any."""


class Chunk(Messages):
    """The contents of one fetch, which begin at an offset. They are read once, in order."""

    def __init__(self, partition: Partition, contents: Contents, at_offset: int) -> None:
        self.partition = partition
        self._bytes: Iterator[Delivery] | None = None
        self._read: Delivery | LogError | None = None
        """A message or an error that was read ahead and is not delivered yet."""
        self._runs: Iterator[EntryRun] = iter(())
        if isinstance(contents, bytes):
            self._bytes = self._messages(contents, at_offset)
        else:
            self._runs = series_format.runs(contents, at_offset)
        self._at_offset = at_offset
        self._run: EntryRun | None = None
        self._taken = 0
        """The number of messages of that run that were delivered."""
        self._opened: EntryRun | None = None
        """The wrapper whose decompression has taken its time."""

    def next(self, max_messages: int) -> Delivery | None:
        """Return the next message, or up to `max_messages` consecutive ones; None at the end.

        Raises the `LogError` of the next entry if it is damaged.
        """
        if self._bytes is not None:
            return self._together(max_messages)
        run = self._present_run()
        if run is None:
            return None
        if isinstance(run.series, Wrapper):
            return self._of_wrapper(run, run.series, max_messages)
        return self._of_series(run, run.series, max_messages)

    async def open_wrapper(self) -> None:
        """Take the time to decompress the next messages, if they are a wrapper of series.

        Real messages are decompressed when they are read, and take their time then.
        """
        run = None if self._bytes is not None else self._present_run()
        if run is None or not isinstance(run.series, Wrapper) or run is self._opened:
            return
        self._opened = run
        await Decompress(run.series.codec, run.series.plain_bytes)

    def _present_run(self) -> EntryRun | None:
        if self._run is None or self._taken == self._run.message_count:
            self._run, self._taken = next(self._runs, None), 0
        return self._run

    def _of_wrapper(self, run: EntryRun, wrapper: Wrapper, max_messages: int) -> Delivery:
        """Return the next messages of one series in a wrapper."""
        begins_entry, skipped = not self._taken, self._taken
        for part in wrapper.parts:
            if skipped < part.count:
                break
            skipped -= part.count
        count = min(max_messages, part.count - skipped)
        self._taken += count
        offset = self._at_offset + run.begin
        is_last = self._taken == wrapper.count
        next_offset = offset + wrapper.entry_bytes if is_last else offset
        some = Series(part.producer, part.first + skipped, count, part.payload_bytes)
        return Delivery(self.partition, offset, next_offset, some, begins_entry)

    def _of_series(self, run: EntryRun, series: Series, max_messages: int) -> Delivery:
        count = min(max_messages, run.count - self._taken)
        offset = self._at_offset + run.begin + self._taken * series.entry_bytes
        first = series.first + run.first + self._taken
        self._taken += count
        part = Series(series.producer, first, count, series.payload_bytes)
        return Delivery(self.partition, offset, offset + part.size_bytes, part)

    def _together(self, max_messages: int) -> Delivery | None:
        """Return the next message with the messages behind it that continue its range."""
        first = self._next_message()
        if max_messages == 1 or first is None or (message_range := first.message_range) is None:
            return first
        delivery = [first]
        while len(delivery) < max_messages:
            try:
                following = self._next_message()
            except LogError as error:
                # Deliver the good messages first; the next call raises the error.
                self._read = error
                break
            other = None if following is None else following.message_range
            if following is None or other is None or not message_range.precedes(other):
                self._read = following
                break
            message_range = message_range._replace(end=other.end, to=other.to)
            delivery.append(following)
        payloads = tuple(
            message.payload for message in delivery if isinstance(message.payload, bytes)
        )
        return first._replace(next_offset=message_range.to, payload=payloads)

    def _next_message(self) -> Delivery | None:
        assert self._bytes is not None, "only bytes hold single messages"
        held, self._read = self._read, None
        if isinstance(held, LogError):
            raise held
        return held or next(self._bytes, None)

    def _messages(self, contents: bytes, at_offset: int) -> Iterator[Delivery]:
        begun_at = -1
        for message in messages_in(contents, at_offset):
            assert isinstance(message.payload, bytes), "bytes hold payloads"
            offset, next_offset = message.offset, message.next_offset
            is_first = offset != begun_at
            yield Delivery(self.partition, offset, next_offset, message.payload, is_first)
            begun_at = offset
