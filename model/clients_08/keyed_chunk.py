"""The messages of 0.8 that one fetch returned for one partition, and their delivery."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.chunks import Delivery, Messages
from watchkeeper.model.log.format.message_08 import Record, records


class KeyedChunk(Messages):
    """Messages with keys, from an offset on. An offset counts messages.

    A set that is compressed comes whole, also if the fetch began within it; the messages before
    the offset are left out.
    """

    def __init__(self, partition: Partition, data: bytes, at_offset: int) -> None:
        self.partition = partition
        self._records: Iterator[Record] = (
            each for each in records(data) if each.offset >= at_offset
        )

    def next(self, max_messages: int) -> Delivery | None:
        """Return the next message; None at the end.

        Raises the `LogError` of the next entry if it is damaged.
        """
        for record in self._records:
            at = record.offset
            return Delivery(self.partition, at, at + 1, record.value, key=record.key)
        return None

    async def open_wrapper(self) -> None:
        """Messages are decompressed when they are read."""
