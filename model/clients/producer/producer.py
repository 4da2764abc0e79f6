"""A producer: it chooses a partition for what it is given, and sends it there.

There are three ways to know where to send

    zk.connect                     the brokers and partitions are found in ZooKeeper; a key
                                   chooses among all partitions of the topic, sorted by
                                   broker and number
    broker.list                    any of these brokers, which chooses a partition itself
    broker.list with one address   that of a balancer which deals out connections: one
                                   connection is one broker, until it is made anew

and two to send: at once, in the thread of the application, or by a queue and a thread for
each broker. In either case the application has been told all that it ever will be when
`send` is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from model.asks import sleep
from model.clients.batching import BatchingSender
from model.clients.discovery import BROKERS, BrokerTable, Place, read_table
from model.clients.errors import NoBrokersForPartition, QueueClosed
from model.clients.hooks import EventHandler, Hooks, SendsTogether
from model.clients.outgoing import (
    ENCODERS,
    Encoder,
    Messages,
    Outgoing,
    request_of,
    size_of,
)
from model.clients.partitioners import PARTITIONERS, Partitioner, choose
from model.clients.pool import Pool
from model.clients.producer_settings import ProducerSettings
from model.clients.sending import Sender
from model.errors import ConnectionLoss, SessionExpired
from model.log.requests import ANY_PARTITION, MultiProduceRequest
from model.threads import Posted, below

LOOKS_AGAIN_MS = 10
"""How often a producer that has just started looks whether the brokers are known."""


class Data(NamedTuple):
    """What an application sends: messages of one topic, and a key that says where to."""

    topic: str
    messages: Messages
    key: Any = None


@dataclass(frozen=True, slots=True)
class Plugins:
    """What an application may bring along; None where the settings name something."""

    partitioner: Partitioner | None = None
    encoder: Encoder | None = None
    hooks: Hooks | None = None
    handler: EventHandler | None = None


class Producer:
    """What an application sends messages with."""

    sender_class: type[Sender] = Sender
    batching_class: type[BatchingSender] = BatchingSender
    pool_class: type[Pool[Any]] = Pool
    partitioners: dict[str, Partitioner] = PARTITIONERS

    def __init__(
        self,
        settings: ProducerSettings,
        plugins: Plugins | None = None,
        *,
        name: str = "producer",
    ) -> None:
        plugins = plugins or Plugins()
        self.settings = settings
        self.name = name
        self.partitioner = plugins.partitioner or self.partitioners[settings.partitioner]
        self.encode = plugins.encoder or ENCODERS[settings.serializer]
        self.hooks = plugins.hooks or Hooks()
        self.handler = plugins.handler or SendsTogether(settings)
        self.is_closed = False
        self._made = 0
        self._pool: Pool[Any] = self.pool_class(
            self._make_batching if settings.type == "async" else self._make_sender
        )

    async def send(self, *data: Data) -> None:
        """Send all of this, or give it to the queues; an error says why that is not possible.

        After an error a part of it may have been sent: what goes to one broker goes together.
        """
        if self.is_closed:
            raise QueueClosed(self.name)
        table = await self._known()
        by_broker: dict[int, list[Outgoing]] = {}
        for one in data:
            if not size_of(one.messages):
                continue
            place, table = await self._place(one, table)
            item = Outgoing(one.topic, place.partition, one.messages)
            by_broker.setdefault(place.broker, []).append(item)
        await self._pool.follow(table.brokers)
        for broker, items in by_broker.items():
            await self._send(self._pool.sender(broker), items)

    async def close(self) -> None:
        """Take nothing more, and send what is waiting."""
        self.is_closed = True
        await self._pool.close()

    # --- sending -------------------------------------------------------------------------

    def _make_sender(self, broker: int, address: str) -> Sender:
        return self.sender_class(address, self.settings)

    def _make_batching(self, broker: int, address: str) -> BatchingSender:
        self._made += 1  # a broker that comes back gets another queue than the one it left
        return self.batching_class(
            f"{self.name} to broker {broker}, {self._made}",
            self._make_sender(broker, address),
            self.settings,
            encode=self.encode,
            hooks=self.hooks,
            handler=self.handler,
        )

    async def _send(self, sender: Sender | BatchingSender, items: list[Outgoing]) -> None:
        if isinstance(sender, BatchingSender):
            for item in items:
                await sender.send(item)
            return
        requests = tuple(
            request_of(
                [item],
                self.encode,
                self.settings.codec_for(item.topic),
                largest_message_bytes=self.settings.largest_message_bytes,
            )
            for item in items
        )
        request = requests[0] if len(requests) == 1 else MultiProduceRequest(requests)
        await sender.send(request, sum(item.size for item in items))

    # --- choosing ------------------------------------------------------------------------

    async def _known(self) -> BrokerTable:
        """The brokers that are known; whoever starts waits until some are."""
        if not self.settings.finds_brokers:
            return BrokerTable(self.settings.brokers)
        waited_ms = 0
        while True:
            table: BrokerTable | None = await Posted(BROKERS)
            if table is not None:
                return table
            if 0 <= self.settings.connect_timeout_ms < waited_ms:
                raise NoBrokersForPartition(self.name, "ZooKeeper did not say which there are")
            await sleep(LOOKS_AGAIN_MS)
            waited_ms += LOOKS_AGAIN_MS

    async def _place(self, data: Data, table: BrokerTable) -> tuple[Place, BrokerTable]:
        """Where to send this, and the table that says so: it is read anew if it says nothing."""
        if not self.settings.finds_brokers:
            broker, _ = table.brokers[await below(len(table.brokers))]
            return Place(broker, ANY_PARTITION), table
        for _ in range(self.settings.table_retries):
            if table.brokers:
                break
            table = await self._read_again(data.topic, table)
        places = table.places(data.topic)
        if not places:
            raise NoBrokersForPartition(f"topic {data.topic}, key {data.key!r}")
        return places[await choose(self.partitioner, data.key, len(places))], table

    async def _read_again(self, topic: str, table: BrokerTable) -> BrokerTable:
        try:
            return await read_table(topic)
        except (ConnectionLoss, SessionExpired):
            return table
