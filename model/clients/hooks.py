"""Where an application can have a say in what an asynchronous producer does.

The hooks are called in this order: `start`; for each message `before_enqueue` and
`after_enqueue`, in the thread of the application; and in the thread that sends
`after_dequeuing`, for each message and whenever the time is up, and `before_sending` for
each batch; at the end `last_batch`, and then `close`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from model.clients.outgoing import Encoder, Outgoing, collated, request_of
from model.clients.producer_settings import ProducerSettings
from model.clients.sending import Sender
from model.log.requests import MultiProduceRequest


class Hooks:
    """Hooks that do nothing: a handler of one's own overrides some of them."""

    async def start(self) -> None:
        """A queue to a broker is there now."""

    async def before_enqueue(self, item: Outgoing) -> Outgoing:
        """A message is about to be put into the queue: what is to be put there."""
        return item

    async def after_enqueue(self, item: Outgoing, *, was_added: bool) -> None:
        """A message was put into the queue, or there was no room."""

    async def after_dequeuing(self, item: Outgoing | None) -> Sequence[Outgoing]:
        """A message was taken from the queue, or the time was up: what joins the batch."""
        return () if item is None else (item,)

    async def before_sending(self, batch: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """A batch is about to be sent: what is to be sent."""
        return batch

    async def last_batch(self) -> Sequence[Outgoing]:
        """The producer closes: what is to be sent beside what is left."""
        return ()

    async def close(self) -> None:
        """All was sent."""


class EventHandler(Protocol):
    """Sends a batch."""

    async def handle(self, batch: Sequence[Outgoing], sender: Sender, encode: Encoder) -> None:
        """Send all of a batch to the sender's broker."""


class SendsTogether:
    """The handler that comes along: one request with a part for each partition."""

    def __init__(self, settings: ProducerSettings) -> None:
        self.settings = settings

    async def handle(self, batch: Sequence[Outgoing], sender: Sender, encode: Encoder) -> None:
        """Put together what goes to one partition, and send all of it at once."""
        parts = [
            request_of(
                group,
                encode,
                self.settings.codec_for(group[0].topic),
                largest_message_bytes=self.settings.largest_message_bytes,
            )
            for group in collated(batch)
        ]
        await sender.send(MultiProduceRequest(tuple(parts)), sum(one.size for one in batch))
