"""The records that one fetch returned for a replicated partition, and their delivery."""

from __future__ import annotations

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.chunks import Delivery, Messages
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.log.format.contents import Series
from watchkeeper.model.replication.messages import VALUE_BYTES, decoded, message_ranges


class RecordChunk(Messages):
    """Ranges of consecutive messages. An offset counts messages, as 0.8 has it."""

    def __init__(self, partition: Partition, ranges: list[MessageRange]) -> None:
        self.partition = partition
        self._ranges = ranges

    def next(self, max_messages: int) -> Delivery | None:
        """Return up to `max_messages` consecutive messages; None at the end."""
        if not self._ranges:
            return None
        producer, first, end, at, to, _ = self._ranges.pop(0)
        count = min(max_messages, end - first)
        if first + count < end:
            rest = MessageRange(producer, first + count, end, at + count, to)
            self._ranges.insert(0, rest)
        payload = Series(producer, first, count, VALUE_BYTES)
        return Delivery(self.partition, at, at + count, payload)

    async def open_wrapper(self) -> None:
        """Nothing is compressed."""


class EncodedRecords(RecordChunk):
    """The same, of which a fetch of 0.8 has brought the bytes."""

    def __init__(self, partition: Partition, data: bytes, at_offset: int) -> None:
        super().__init__(partition, [])
        self._data = data
        self._at_offset = at_offset

    def next(self, max_messages: int) -> Delivery | None:
        """Return up to `max_messages` consecutive messages; None at the end.

        Raises a `LogError` if the bytes are damaged.
        """
        if self._data:
            data, self._data = self._data, b""
            records = list(decoded(data, self._at_offset))
            self._ranges = list(message_ranges(self.partition, self._at_offset, records))
        return super().next(max_messages)
