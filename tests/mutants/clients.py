"""Mutants of the clients: faults that real clients had, each in otherwise corrected clients.

A mutant is a class that overrides one step; the corrected classes do not know of them. The
table names the property that each one violates. The faults that Kafka 0.7.2 still had when it
was shipped are classes of `kafka_07`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from watchkeeper.model.actor.effects import now_ms
from watchkeeper.model.actor.tasks import put
from watchkeeper.model.clients.compositions.kafka_07 import (
    SOUND,
    ClientSet,
    CommitsConcurrently,
    DeliversAfterStop,
    EndsOnError,
    LastQueueWins,
    MinusOneForUnknown,
)
from watchkeeper.model.clients.consumer.chunks import Chunk
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.fetcher import Fetcher, SavedPosition
from watchkeeper.model.clients.consumer.fetcher_tasks import BrokerFetcher
from watchkeeper.model.clients.consumer.positions import FetchedChunk, FetchPosition
from watchkeeper.model.clients.producer.batch_sender import BatchSender
from watchkeeper.model.clients.producer.connection_pool import ConnectionPool
from watchkeeper.model.clients.producer.partitioners import PARTITIONERS, java_remainder
from watchkeeper.model.clients.producer.producer import Producer
from watchkeeper.model.log.format.errors import InvalidMessageSize
from watchkeeper.model.log.format.requests import FetchResponse
from watchkeeper.model.properties.delivery import COMMITS, DELIVERY
from watchkeeper.model.properties.ownership import MONOTONE
from watchkeeper.model.properties.starvation import PUNCTUAL, STARVATION
from watchkeeper.model.properties.verdicts import Property
from watchkeeper.model.zookeeper.java_hash_order import string_hash

# --- producers ---------------------------------------------------------------------------


class MarksBeforeItCloses(BatchSender):
    """The marker that ends the queue is put into it before the sender is closed."""

    async def close(self) -> None:
        """Queue the marker, close, and wait."""
        if not self.is_closed:
            await self._put_marker()
            self.is_closed = True
        await super().close()


class ClosesItsSendersFirst(ConnectionPool[Any]):
    """The senders are closed before the pool stops making new ones."""

    async def close(self) -> None:
        """Close every sender, and then the pool."""
        for sender in self.senders.values():
            await sender.close()
        self.is_closed = True


class ClosesFromTheInside(Producer):
    """The pool is closed first, and the producer afterwards."""

    batch_sender_class = MarksBeforeItCloses
    pool_class = ClosesItsSendersFirst

    async def close(self) -> None:
        """Close the pool, and then accept no more messages."""
        await self._pool.close()
        self.is_closed = True


class WaitsLongerAndLonger(BatchSender):
    """The time that has passed since the last batch is added to the time to wait."""

    async def _remaining_ms(self) -> int:
        return max(0, self.settings.queue_time_ms - self._sent_ms + await now_ms())


class LeavesTheLastBatch(BatchSender):
    """An incomplete batch is not sent when the producer closes."""

    async def _finish(self) -> None:
        self._batch = []


async def by_signed_java_hash(key: str, number: int) -> int:
    """The hash of a key keeps its sign: it is negative for half of all keys."""
    return java_remainder(string_hash(key), number)


class KeepsDeadEntries(ConnectionPool[Any]):
    """The sender to a broker stays when the broker dies, or comes back at another address."""

    async def follow(self, brokers: Iterable[tuple[int, str]]) -> None:
        """Add new brokers, and keep all known ones."""
        known = [(broker, sender.address) for broker, sender in self.senders.items()]
        new = [broker for broker in brokers if broker[0] not in self.senders]
        await super().follow([*known, *new])


# --- consumers ---------------------------------------------------------------------------


class AdvancesBeforeItPuts(BrokerFetcher):
    """The fetch offset advances before the chunk is in the queue."""

    async def _put(self, position: FetchPosition, chunk: Chunk, size_bytes: int) -> None:
        position.fetch_offset += size_bytes
        await put(position.queue, FetchedChunk(position, chunk), self.settings.queued_chunks)


class GoesOnWhereItFetched(Fetcher):
    """A member resumes after a rebalance at the fetch offset, not at the consumed offset."""

    broker_fetcher_class = AdvancesBeforeItPuts

    def _save(self, position: FetchPosition) -> None:
        if position.last_offset is not None and position.fetch_offset >= 0:
            self._saved[position.partition] = SavedPosition(
                position.last_offset, position.fetch_offset
            )


class TakesTooLargeForNothing(BrokerFetcher):
    """A message larger than the fetch size counts as no message."""

    def _valid_size(self, position: FetchPosition, response: FetchResponse) -> int:
        try:
            return super()._valid_size(position, response)
        except InvalidMessageSize:
            return 0


# --- the table ---------------------------------------------------------------------------


class ClientMutant(NamedTuple):
    """A mutant: its name, the origin of the fault, and the property that it violates."""

    name: str
    origin: str
    violates: Property
    clients: ClientSet

    @property
    def about(self) -> str:
        """A description of the fault."""
        return self.clients.about


def _producer(**parts: Any) -> type[Producer]:
    """Return a corrected producer with these parts replaced."""
    return type("Mutated", (Producer,), parts)


def _connector(**parts: Any) -> type[Connector]:
    """Return a corrected consumer with these parts replaced."""
    return type("Mutated", (Connector,), parts)


def _fetcher(fetcher: type[BrokerFetcher]) -> type[Fetcher]:
    return type("Mutated", (Fetcher,), {"broker_fetcher_class": fetcher})


def _mutant(
    name: str, origin: str, violates: Property, mistake: Any, **clients: Any
) -> ClientMutant:
    """Return a row: the corrected clients but for one, described by the mutated class."""
    about = (mistake.__doc__ or "").partition("\n")[0]
    return ClientMutant(name, origin, violates, SOUND._replace(name=name, about=about, **clients))


_ROWS = (
    _mutant(
        "kafka-116-marker-first",
        "KAFKA-116: close put its marker into the queue and then forbade to send",
        DELIVERY,
        MarksBeforeItCloses,
        producer=ClosesFromTheInside,
    ),
    _mutant(
        "kafka-138-waits-longer",
        "KAFKA-138: the time to wait for more messages was computed with the wrong sign",
        PUNCTUAL,
        WaitsLongerAndLonger,
        producer=_producer(batch_sender_class=WaitsLongerAndLonger),
    ),
    _mutant(
        "kafka-567-last-batch",
        "KAFKA-567: the last batch was not sent when the producer was closed",
        DELIVERY,
        LeavesTheLastBatch,
        producer=_producer(batch_sender_class=LeavesTheLastBatch),
    ),
    _mutant(
        "negative-hash",
        "Kafka, commit da355132: a negative hash gave a negative partition",
        DELIVERY,
        by_signed_java_hash,
        producer=_producer(partitioners={**PARTITIONERS, "java": by_signed_java_hash}),
    ),
    _mutant(
        "dead-pool-entry",
        "Kafka 0.7: the entry of a dead broker was not removed from the producer's pool",
        DELIVERY,
        KeepsDeadEntries,
        producer=_producer(pool_class=KeepsDeadEntries),
    ),
    _mutant(
        "kafka-154-dropped-chunk",
        "KAFKA-154: a rebalance dropped a chunk, and the offset had moved on",
        DELIVERY,
        GoesOnWhereItFetched,
        connector=_connector(fetcher_class=GoesOnWhereItFetched),
    ),
    _mutant(
        "kafka-160-too-large",
        "KAFKA-160, KAFKA-994: a message larger than the fetch size was fetched for ever",
        STARVATION,
        TakesTooLargeForNothing,
        connector=_connector(fetcher_class=_fetcher(TakesTooLargeForNothing)),
    ),
    _mutant(
        "kafka-550-last-queue",
        "KAFKA-550: with a filter the last queue got everything",
        STARVATION,
        LastQueueWins,
        connector=LastQueueWins,
    ),
    _mutant(
        "fetcher-ends",
        "Kafka 0.7: a fetcher that failed twice ended, and nothing started it again",
        STARVATION,
        EndsOnError,
        connector=_connector(fetcher_class=_fetcher(EndsOnError)),
    ),
    _mutant(
        "minus-one",
        "Kafka 0.7: a look for the end of a log that failed gave -1, and that was committed",
        COMMITS,
        MinusOneForUnknown,
        connector=type(
            "Mutated",
            (CommitsConcurrently,),
            {"fetcher_class": _fetcher(MinusOneForUnknown)},
        ),
    ),
    _mutant(
        "prefetched-message",
        "Kafka, all versions: a message that was taken from its chunk survived a rebalance",
        DELIVERY,
        DeliversAfterStop,
        connector=_connector(stream_class=DeliversAfterStop),
    ),
    _mutant(
        "commit-beside",
        "Kafka 0.7 and 1.1: a commit beside a rebalance landed after that of the next owner",
        MONOTONE,
        CommitsConcurrently,
        connector=CommitsConcurrently,
    ),
)

CLIENT_MUTANTS = {row.name: row for row in _ROWS}
"""Every mutant, by name."""
