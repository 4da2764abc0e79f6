"""The interceptors of an asynchronous producer: hooks of the application, and event handlers.

The hooks are called in this order: `start`; for each message `before_enqueue` and
`after_enqueue`, in the task of the application; in the sending task `after_dequeuing`, for
each message and each timeout, and `before_sending` for each batch; at the end `last_batch`,
and then `close`. They are those of `CallbackHandler` in Kafka 0.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from watchkeeper.model.clients.producer.connection_pool import Sender
from watchkeeper.model.clients.producer.record_batch import (
    Encoder,
    RecordBatch,
    group_by_partition,
    produce_request,
)
from watchkeeper.model.clients.producer.settings import ProducerSettings
from watchkeeper.model.log.format.requests import MultiProduceRequest


class Hooks:
    """Hooks that do nothing; an application overrides some of them."""

    async def start(self) -> None:
        """The queue to a broker was created."""

    async def before_enqueue(self, item: RecordBatch) -> RecordBatch:
        """Return the messages to queue in place of these."""
        return item

    async def after_enqueue(self, item: RecordBatch, *, was_added: bool) -> None:
        """Messages were queued, or the queue had no room."""

    async def after_dequeuing(self, item: RecordBatch | None) -> Sequence[RecordBatch]:
        """Return what to add to the batch for an item of the queue (None: a timeout)."""
        return () if item is None else (item,)

    async def before_sending(self, batch: Sequence[RecordBatch]) -> Sequence[RecordBatch]:
        """Return what to send in place of a batch."""
        return batch

    async def last_batch(self) -> Sequence[RecordBatch]:
        """Return what to send in addition when the producer closes."""
        return ()

    async def close(self) -> None:
        """Everything was sent."""


class EventHandler(Protocol):
    """Sends a batch."""

    async def handle(self, batch: Sequence[RecordBatch], sender: Any, encode: Encoder) -> None:
        """Send a whole batch to the broker of the sender."""


class DefaultEventHandler:
    """The default handler: one multiproduce request with a part for each partition."""

    def __init__(self, settings: ProducerSettings) -> None:
        self.settings = settings

    async def handle(self, batch: Sequence[RecordBatch], sender: Sender, encode: Encoder) -> None:
        """Group the batch by partition, and send all groups in one request."""
        parts = [
            await produce_request(
                group,
                encode,
                self.settings.codec_for(group[0].topic),
                largest_message_bytes=self.settings.largest_message_bytes,
            )
            for group in group_by_partition(batch)
        ]
        await sender.send(MultiProduceRequest(tuple(parts)), sum(item.size for item in batch))
