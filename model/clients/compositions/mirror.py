"""A mirror: a consumer of one cluster whose application is a producer to another.

Theory of operation
  A mirror forwards payloads unchanged, so a message keeps its identity. The moment at which
  its position advances decides what a crash loses. The position must advance when the message
  has *arrived*, that is, when the producer has handed it to a connection. Then a commit, by a
  timer, a rebalance or a shutdown, never covers a message that the process can still lose;
  messages that arrived without a commit are sent twice. If the position advances on delivery
  to the mirror instead, a crash loses the messages in the producer's queue.

  A message that cannot be sent is retried for ever, and no later message counts as arrived.

  Messages of one source partition are sent in order. The brokers of the target choose a
  partition for each request, so there is no order between the partitions of the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from watchkeeper.model.actor.effects import emit, sleep
from watchkeeper.model.actor.rpc import CallError
from watchkeeper.model.clients.compositions.kafka_07 import clients_of
from watchkeeper.model.clients.consumer.chunks import Delivery
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.positions import FetchPosition
from watchkeeper.model.clients.consumer.streams import Stream
from watchkeeper.model.clients.errors import ClientError, ConsumerTimeout
from watchkeeper.model.clients.producer.connection_pool import Sender
from watchkeeper.model.clients.producer.interceptors import DefaultEventHandler
from watchkeeper.model.clients.producer.producer import Plugins, ProducerData
from watchkeeper.model.clients.producer.record_batch import (
    Encoder,
    Messages,
    RecordBatch,
    encode_bytes,
    message_count,
)
from watchkeeper.model.log.format.contents import Series
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.plan.plan import Forwarding
from watchkeeper.model.trace.kinds import EventKind

MAX_RANGE = 200
"""The largest number of messages of a simulated series in one delivery; else it is 1."""
RETRY_MS = 100


@dataclass(slots=True)
class _InFlight:
    """A delivery whose messages have not all arrived."""

    position: FetchPosition
    delivery: Delivery
    messages: Messages
    missing: int
    """The number of its messages that have not arrived."""

    def has(self, messages: Messages) -> bool:
        """Whether these messages belong to the delivery."""
        mine = self.messages
        if isinstance(mine, Series) and isinstance(messages, Series):
            return mine.producer == messages.producer and (
                mine.first <= messages.first < mine.first + mine.count
            )
        if isinstance(mine, Series) or isinstance(messages, Series):
            return False
        return any(message is messages[0] for message in mine)


class Mirror:
    """The application of one process of a mirror."""

    def __init__(self, connector: Connector, forwarding: Forwarding, name: str) -> None:
        self.connector = connector
        self.commits_after = forwarding.commits == "after"
        self.event_handler = DefaultEventHandler(forwarding.settings)
        plugins = Plugins(encoder=encode_bytes, handler=self)
        clients = clients_of(connector.me.variant)
        self.producer = clients.producer(forwarding.settings, plugins, name=name)
        self.is_async = forwarding.settings.type == "async"
        self._in_flight: list[_InFlight] = []

    def streams(self, expression: str) -> list[Stream]:
        """Create the stream of all mirrored topics; `_done` advances its positions."""
        streams = self.connector.create_message_streams_by_filter(expression, 1)
        for stream in streams:
            stream.manual_positions = self.commits_after
        return streams

    async def handle_all(self, stream: Stream) -> None:
        """Forward messages until the stream ends."""
        while True:
            try:
                delivery = await stream.next(MAX_RANGE)
            except ConsumerTimeout as error:
                await emit(EventKind.STREAM_TIMED_OUT, why=str(error))
                continue
            except LogError as error:
                await emit(EventKind.STREAM_FAILED, why=str(error))
                continue
            if delivery is None:
                return
            assert stream.latest is not None, "a delivery has a position"
            await self._forward(stream.latest, delivery)

    async def _forward(self, position: FetchPosition, delivery: Delivery) -> None:
        payload = delivery.payload
        assert payload is not None, "messages of 0.7 have a payload"
        messages: Messages = (payload,) if isinstance(payload, bytes) else payload
        self._in_flight.append(_InFlight(position, delivery, messages, message_count(messages)))
        while not await self._send(ProducerData(delivery.partition.topic, messages)):
            await sleep(RETRY_MS)
        if not self.is_async:
            await self._arrived(messages)

    async def _send(self, data: ProducerData) -> bool:
        try:
            await self.producer.send(data)
        except (CallError, ClientError, LogError) as error:
            await emit(EventKind.NOT_MIRRORED, topic=data.topic, why=str(error))
            return False
        return True

    # --- the event handler of an asynchronous producer, in its sending task ---------------

    async def handle(self, batch: Sequence[RecordBatch], sender: Sender, encode: Encoder) -> None:
        """Send a batch, with retries until it succeeds; then all of it has arrived."""
        while True:
            try:
                await self.event_handler.handle(batch, sender, encode)
                break
            except (CallError, ClientError, LogError) as error:
                await emit(EventKind.NOT_MIRRORED, topic=batch[0].topic, why=str(error))
                await sleep(RETRY_MS)
        for delivery in batch:
            await self._arrived(delivery.messages)

    # --- arrivals --------------------------------------------------------------------------

    async def _arrived(self, messages: Messages) -> None:
        """Record arrived messages, and finish the deliveries before which none is missing."""
        entry = next(entry for entry in self._in_flight if entry.missing and entry.has(messages))
        entry.missing -= message_count(messages)
        # The positions advance in the order of deliveries. A later delivery may arrive first,
        # and its position would then cover messages that a crash can still lose.
        while self._in_flight and not self._in_flight[0].missing:
            await self._done(self._in_flight.pop(0))

    async def _done(self, entry: _InFlight) -> None:
        delivery, partition = entry.delivery, entry.delivery.partition
        if self.commits_after:
            entry.position.advance(delivery)
        ranges = [list(delivery.message_range)] if delivery.message_range is not None else []
        await emit(
            EventKind.HANDLED, topic=partition.topic, partition=partition.name, ranges=ranges
        )
