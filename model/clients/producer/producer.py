"""A producer: chooses a partition for each message, and sends it there.

There are three ways to find a broker

    zk.connect                     discover brokers and partitions in ZooKeeper; the key
                                   chooses among all partitions of the topic, sorted by
                                   broker and number
    broker.list                    a random one of these brokers, which chooses a partition
    broker.list with one address   a load balancer: one connection is one broker, until the
                                   connection is renewed

and two ways to send: at once, in the task of the application, or through a queue and a sending
task for each broker. In both cases the application learns nothing more after `send` returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from watchkeeper.model.actor.effects import sleep
from watchkeeper.model.actor.errors import ConnectionLoss, SessionExpired
from watchkeeper.model.actor.tasks import Posted, below
from watchkeeper.model.clients.errors import NoBrokersForPartition, QueueClosed
from watchkeeper.model.clients.producer.batch_sender import BatchSender
from watchkeeper.model.clients.producer.connection_pool import ConnectionPool, Sender
from watchkeeper.model.clients.producer.interceptors import (
    DefaultEventHandler,
    EventHandler,
    Hooks,
)
from watchkeeper.model.clients.producer.metadata import (
    BROKERS,
    BrokerPartition,
    BrokerTable,
    read_table,
)
from watchkeeper.model.clients.producer.partitioners import PARTITIONERS, Partitioner, choose
from watchkeeper.model.clients.producer.record_batch import (
    ENCODERS,
    Encoder,
    Messages,
    RecordBatch,
    message_count,
    produce_request,
)
from watchkeeper.model.clients.producer.settings import ProducerSettings
from watchkeeper.model.log.format.requests import ANY_PARTITION, MultiProduceRequest

TABLE_POLL_MS = 10
"""The interval at which a starting producer looks for the broker table."""


class ProducerData(NamedTuple):
    """Messages of one topic, and the key that chooses their partition."""

    topic: str
    messages: Messages
    key: Any = None


@dataclass(frozen=True, slots=True)
class Plugins:
    """Components that an application supplies; None: those that the settings name."""

    partitioner: Partitioner | None = None
    encoder: Encoder | None = None
    hooks: Hooks | None = None
    handler: EventHandler | None = None


class Producer:
    """Sends the messages of an application."""

    sender_class: type[Sender] = Sender
    batch_sender_class: type[BatchSender] = BatchSender
    pool_class: type[ConnectionPool[Any]] = ConnectionPool
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
        self.handler = plugins.handler or DefaultEventHandler(settings)
        self.is_closed = False
        self._made = 0
        self._pool: ConnectionPool[Any] = self.pool_class(
            self._make_batch_sender if settings.type == "async" else self._make_sender
        )

    async def send(self, *data: ProducerData) -> None:
        """Send messages, or queue them.

        Messages for one broker are sent together. Raises a `ClientError`, a `CallError` or a
        `LogError`; the messages for other brokers may have been sent before it.
        """
        if self.is_closed:
            raise QueueClosed(self.name)
        table = await self._broker_table()
        by_broker: dict[int, list[RecordBatch]] = {}
        for entry in data:
            if not message_count(entry.messages):
                continue
            target, table = await self._choose_partition(entry, table)
            item = RecordBatch(entry.topic, target.partition, entry.messages)
            by_broker.setdefault(target.broker, []).append(item)
        await self._pool.follow(table.brokers)
        for broker, items in by_broker.items():
            await self._send(self._pool.sender(broker), items)

    async def close(self) -> None:
        """Accept no more messages, and send those that are queued."""
        self.is_closed = True
        await self._pool.close()

    # --- sending -------------------------------------------------------------------------

    def _make_sender(self, broker: int, address: str) -> Sender:
        return self.sender_class(address, self.settings)

    def _make_batch_sender(self, broker: int, address: str) -> BatchSender:
        # The name of the queue is unique, also where a broker gets a second sender, as in 0.7.
        self._made += 1
        return self.batch_sender_class(
            f"{self.name} to broker {broker}, {self._made}",
            self._make_sender(broker, address),
            self.settings,
            encode=self.encode,
            hooks=self.hooks,
            handler=self.handler,
        )

    async def _send(self, sender: Sender | BatchSender, items: list[RecordBatch]) -> None:
        if isinstance(sender, BatchSender):
            for item in items:
                await sender.send(item)
            return
        requests = tuple(
            [
                await produce_request(
                    [item],
                    self.encode,
                    self.settings.codec_for(item.topic),
                    largest_message_bytes=self.settings.largest_message_bytes,
                )
                for item in items
            ]
        )
        request = requests[0] if len(requests) == 1 else MultiProduceRequest(requests)
        await sender.send(request, sum(item.size for item in items))

    # --- choosing ------------------------------------------------------------------------

    async def _broker_table(self) -> BrokerTable:
        """Return the posted table of brokers; a starting producer waits for the first one."""
        if not self.settings.finds_brokers:
            return BrokerTable(self.settings.brokers)
        waited_ms = 0
        while True:
            table: BrokerTable | None = await Posted(BROKERS)
            if table is not None:
                return table
            if 0 <= self.settings.connect_timeout_ms < waited_ms:
                raise NoBrokersForPartition(self.name, "ZooKeeper did not say which there are")
            await sleep(TABLE_POLL_MS)
            waited_ms += TABLE_POLL_MS

    async def _choose_partition(
        self, data: ProducerData, table: BrokerTable
    ) -> tuple[BrokerPartition, BrokerTable]:
        """Choose the partition, and return it with the table; re-read an empty table first."""
        if not self.settings.finds_brokers:
            broker, _ = table.brokers[await below(len(table.brokers))]
            return BrokerPartition(broker, ANY_PARTITION), table
        for _ in range(self.settings.table_retries):
            if table.brokers:
                break
            table = await self._refresh(data.topic, table)
        partitions_of = table.partitions_of(data.topic)
        if not partitions_of:
            raise NoBrokersForPartition(f"topic {data.topic}, key {data.key!r}")
        return partitions_of[await choose(self.partitioner, data.key, len(partitions_of))], table

    async def _refresh(self, topic: str, table: BrokerTable) -> BrokerTable:
        try:
            return await read_table(topic)
        except (ConnectionLoss, SessionExpired):
            return table
