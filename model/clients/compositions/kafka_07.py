"""The clients of Kafka 0.7.2 as shipped, as differences from the corrected clients.

Each class is one difference, and its docstring names the consequence. `Connector07` combines
them; the mutants of the tests take them one by one, to show that a property detects each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from watchkeeper.model.actor.effects import emit, sleep
from watchkeeper.model.actor.errors import ZooKeeperError
from watchkeeper.model.actor.retry import Direct
from watchkeeper.model.actor.rpc import CallError
from watchkeeper.model.clients.consumer.chunks import Delivery
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.fetcher import Fetcher
from watchkeeper.model.clients.consumer.fetcher_tasks import BrokerFetcher
from watchkeeper.model.clients.consumer.positions import FetchPosition
from watchkeeper.model.clients.consumer.simple import SimpleConsumer
from watchkeeper.model.clients.consumer.streams import Stream
from watchkeeper.model.clients.producer.connection_pool import ConnectionPool, Sender
from watchkeeper.model.clients.producer.producer import Producer
from watchkeeper.model.group.offsets import commit_blindly
from watchkeeper.model.group.variants import Variant
from watchkeeper.model.trace.kinds import EventKind


class EndsOnError(BrokerFetcher):
    """A fetcher whose broker fails twice in a row ends, and nothing restarts it.

    Its partitions stay owned and unread until the next rebalance.
    """

    def _on_failure(self) -> None:
        self.is_over = True
        self.fetcher.drop_broker(self.address)


class MinusOneForUnknown(BrokerFetcher):
    """A failed offsets request sets the position to -1."""

    async def _reset(self, consumer: SimpleConsumer, position: FetchPosition, why: str) -> None:
        """Request the offset to resume at, and swallow every error."""
        try:
            await super()._reset(consumer, position, why)
        except CallError:
            position.last_offset = position.consumed_offset = -1


class CommitsResets(BrokerFetcher):
    """The fetcher itself commits a position that it has reset, at once."""

    async def _after_reset(self, position: FetchPosition, offset: int) -> None:
        try:
            await commit_blindly(self.fetcher.me, Direct(), [(position.partition, offset)])
        except ZooKeeperError as error:
            await emit(EventKind.COMMIT_REFUSED, why=str(error))


class DeliversAfterStop(Stream):
    """A message is taken from its chunk first, and delivered a moment later.

    A rebalance between the two does not stop the delivery. The message advances a position
    that is already stopped, so the next owner delivers it again.
    """

    async def _deliver(self, position: FetchPosition, delivery: Delivery) -> Delivery:
        await sleep(0)
        return await super()._deliver(position, delivery)


class LastQueueWins(Connector):
    """With a filter, every partition goes to the queue of the last stream (KAFKA-550)."""

    def queue_for(self, topic: str, number: int) -> str:
        """Return the last queue: each stream overwrote the one before it in the table."""
        wanted = self.me.subscription
        last = wanted.filter_streams - 1 if wanted.is_filter and topic else number
        return super().queue_for(topic, last)


class CommitsConcurrently(Connector):
    """A commit of the application runs in its own task, at the same time as a rebalance.

    It commits the positions that existed when it began. By then a partition may belong to
    another member that has advanced further, and the commit moves that position back.
    """

    async def commit_offsets(self, timeout_ms: int | None = None) -> bool:
        """Commit one position after the other; report an error, and go on with the next."""
        is_done = True
        for position in list(self.fetcher.positions.values()):
            if position.consumed_offset is None:
                continue
            try:
                await commit_blindly(
                    self.me, Direct(), [(position.partition, position.consumed_offset)]
                )
            except ZooKeeperError as error:
                await emit(EventKind.COMMIT_REFUSED, why=str(error))
                is_done = False
        return is_done


class RenewsAtOnce(Sender):
    """A connection is renewed and closed without waiting for what was sent over it.

    The broker serves the old connection and the new one side by side: messages that wait in
    the old one may be stored after later ones.
    """

    async def await_served(self) -> None:
        """Wait for nothing."""


class AddsSenders(ConnectionPool[Any]):
    """A broker that comes back gets a second sender beside the first.

    The first goes on with its queue: its messages may be stored after those of the second.
    Nothing closes it. A broker that moves between two looks keeps its sender, and with it the
    old address.
    """

    def __init__(self, make: Callable[[int, str], Any]) -> None:
        super().__init__(make)
        self._seen: dict[int, None] = {}

    async def follow(self, brokers: Iterable[tuple[int, str]]) -> None:
        """Add a sender for each broker that was not there the last time."""
        alive = dict(brokers)
        for broker, address in alive.items():
            if broker not in self._seen:
                self._seen[broker] = None
                sender = self.senders[broker] = self.make(broker, address)
                await sender.start()
        self._seen = dict.fromkeys(alive)


class Producer07(Producer):
    """The producer of 0.7.2."""

    sender_class = RenewsAtOnce
    pool_class = AddsSenders


class BrokerFetcher07(EndsOnError, MinusOneForUnknown, CommitsResets):
    """The fetcher of one broker, in 0.7.2."""


class Fetcher07(Fetcher):
    """The fetcher of a consumer, in 0.7.2."""

    broker_fetcher_class = BrokerFetcher07


class Connector07(LastQueueWins, CommitsConcurrently):
    """The high-level consumer of 0.7.2."""

    fetcher_class = Fetcher07
    stream_class = DeliversAfterStop


# --- the versions of the message path --------------------------------------------------


class ClientSet(NamedTuple):
    """The clients of one version."""

    name: str
    about: str
    producer: type[Producer] = Producer
    connector: type[Connector] = Connector


SOUND = ClientSet("sound", "the corrected clients")
AS_SHIPPED = ClientSet(
    "shipped", "those of Kafka 0.7.2, with its faults", Producer07, Connector07
)


def clients_of(variant: Variant) -> ClientSet:
    """Return the clients that go with a variant of the protocol."""
    return AS_SHIPPED if variant.fetch_errors == "end the fetcher" else SOUND
