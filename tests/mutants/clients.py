"""Mistakes that were made in clients like these, each in clients that are sound but for it.

A plant is a class that does one step in its own way; the sound classes know nothing of
them. Which property each violates stands in the table. What Kafka 0.7.2 still did when it
was shipped is in `shipped`, and is planted from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from model.asks import now_ms
from model.clients.batching import BatchingSender
from model.clients.chunks import Chunk
from model.clients.connector import Connector
from model.clients.fetchers import BrokerFetcher
from model.clients.fetching import Fetching, Kept
from model.clients.partitioners import PARTITIONERS, java_remainder
from model.clients.places import Fetched, Place
from model.clients.pool import Pool
from model.clients.producer import Producer
from model.clients.shipped import (
    CommitsBesideTheMember,
    EndsOnError,
    HandsOnWhatItHolds,
    LastQueueWins,
    MinusOneForUnknown,
)
from model.clients.versions import SOUND, Clients
from model.delivered import COMMITS, DELIVERY
from model.log.errors import InvalidMessageSize
from model.log.requests import FetchResponse
from model.ownership import MONOTONE
from model.threads import put
from model.verdicts import Property
from model.waiting import PUNCTUAL, STARVATION
from model.zookeeper.java import string_hash

# --- producers ---------------------------------------------------------------------------


class MarksBeforeItCloses(BatchingSender):
    """The marker that ends the queue is put into it before sending is forbidden."""

    async def close(self) -> None:
        """Put the marker, forbid to send, and wait."""
        if not self.is_closed:
            await self._put_marker()
            self.is_closed = True
        await super().close()


class ClosesItsSendersFirst(Pool[Any]):
    """What sends is closed, and then nothing is made any more."""

    async def close(self) -> None:
        """Close every sender, and then the pool."""
        for sender in (*self.retired, *self.senders.values()):
            await sender.close()
        self.is_closed = True


class ClosesFromTheInside(Producer):
    """What sends is closed first, and the producer afterwards."""

    batching_class = MarksBeforeItCloses
    pool_class = ClosesItsSendersFirst

    async def close(self) -> None:
        """Close what sends, and then take nothing more."""
        await self._pool.close()
        self.is_closed = True


class WaitsLongerAndLonger(BatchingSender):
    """The time that has passed since the last batch is added to the time to wait."""

    async def _patience_ms(self) -> int:
        return max(0, self.settings.queue_time_ms - self._sent_ms + await now_ms())


class LeavesTheLastBatch(BatchingSender):
    """What has not made a whole batch when the producer closes is not sent."""

    async def _finish(self) -> None:
        self._batch = []


async def by_signed_java_hash(key: str, number: int) -> int:
    """The hash of a key is taken as it is: negative for half of all keys."""
    return java_remainder(string_hash(key), number)


class KeepsDeadEntries(Pool[Any]):
    """What sends to a broker stays when the broker dies, and when it comes back elsewhere."""

    async def follow(self, brokers: Iterable[tuple[int, str]]) -> None:
        """Add what is new."""
        known = [(broker, sender.address) for broker, sender in self.senders.items()]
        new = [one for one in brokers if one[0] not in self.senders]
        await super().follow([*known, *new])


# --- consumers ---------------------------------------------------------------------------


class AdvancesBeforeItPuts(BrokerFetcher):
    """The offset to fetch next moves on before the chunk is in the queue."""

    async def _put(self, place: Place, chunk: Chunk, size_bytes: int) -> None:
        place.fetched += size_bytes
        await put(place.queue, Fetched(place, chunk), self.settings.queued_chunks)


class GoesOnWhereItFetched(Fetching):
    """Whoever reads on after a rebalance begins where had been fetched, not where was read."""

    fetcher_class = AdvancesBeforeItPuts

    def _keep(self, place: Place) -> None:
        if place.at is not None and place.fetched >= 0:
            self._kept[place.partition] = Kept(place.at, place.fetched)


class TakesTooLargeForNothing(BrokerFetcher):
    """A message that is larger than what is fetched counts as no message at all."""

    def _valid_size(self, place: Place, response: FetchResponse) -> int:
        try:
            return super()._valid_size(place, response)
        except InvalidMessageSize:
            return 0


# --- the table ---------------------------------------------------------------------------


class Plant(NamedTuple):
    """A mistake that was planted, where somebody made it, and what it violates."""

    name: str
    origin: str
    violates: Property
    clients: Clients

    @property
    def about(self) -> str:
        """What it does."""
        return self.clients.about


def _producer(**parts: Any) -> type[Producer]:
    """A sound producer but for these parts."""
    return type("Planted", (Producer,), parts)


def _connector(**parts: Any) -> type[Connector]:
    """A sound consumer but for these parts."""
    return type("Planted", (Connector,), parts)


def _fetching(fetcher: type[BrokerFetcher]) -> type[Fetching]:
    return type("Planted", (Fetching,), {"fetcher_class": fetcher})


def _planted(name: str, origin: str, violates: Property, mistake: Any, **clients: Any) -> Plant:
    """A row: the sound clients but for one, described by what is wrong with it."""
    about = (mistake.__doc__ or "").partition("\n")[0]
    return Plant(name, origin, violates, SOUND._replace(name=name, about=about, **clients))


_ROWS = (
    _planted(
        "kafka-116-marker-first",
        "KAFKA-116: close put its marker into the queue and then forbade to send",
        DELIVERY,
        MarksBeforeItCloses,
        producer=ClosesFromTheInside,
    ),
    _planted(
        "kafka-138-waits-longer",
        "KAFKA-138: the time to wait for more messages was computed with the wrong sign",
        PUNCTUAL,
        WaitsLongerAndLonger,
        producer=_producer(batching_class=WaitsLongerAndLonger),
    ),
    _planted(
        "kafka-567-last-batch",
        "KAFKA-567: the last batch was not sent when the producer was closed",
        DELIVERY,
        LeavesTheLastBatch,
        producer=_producer(batching_class=LeavesTheLastBatch),
    ),
    _planted(
        "negative-hash",
        "Kafka, commit da355132: a negative hash gave a negative partition",
        DELIVERY,
        by_signed_java_hash,
        producer=_producer(partitioners={**PARTITIONERS, "java": by_signed_java_hash}),
    ),
    _planted(
        "dead-pool-entry",
        "Kafka 0.7: the entry of a dead broker was not removed from the producer's pool",
        DELIVERY,
        KeepsDeadEntries,
        producer=_producer(pool_class=KeepsDeadEntries),
    ),
    _planted(
        "kafka-154-dropped-chunk",
        "KAFKA-154: a rebalance dropped a chunk, and the offset had moved on",
        DELIVERY,
        GoesOnWhereItFetched,
        connector=_connector(fetching_class=GoesOnWhereItFetched),
    ),
    _planted(
        "kafka-160-too-large",
        "KAFKA-160, KAFKA-994: a message larger than the fetch size was fetched for ever",
        STARVATION,
        TakesTooLargeForNothing,
        connector=_connector(fetching_class=_fetching(TakesTooLargeForNothing)),
    ),
    _planted(
        "kafka-550-last-queue",
        "KAFKA-550: with a filter the last queue got everything",
        STARVATION,
        LastQueueWins,
        connector=LastQueueWins,
    ),
    _planted(
        "fetcher-ends",
        "Kafka 0.7: a fetcher that failed twice ended, and nothing started it again",
        STARVATION,
        EndsOnError,
        connector=_connector(fetching_class=_fetching(EndsOnError)),
    ),
    _planted(
        "minus-one",
        "Kafka 0.7: a look for the end of a log that failed gave -1, and that was committed",
        COMMITS,
        MinusOneForUnknown,
        connector=type(
            "Planted",
            (CommitsBesideTheMember,),
            {"fetching_class": _fetching(MinusOneForUnknown)},
        ),
    ),
    _planted(
        "prefetched-message",
        "Kafka, all versions: a message that was taken from its chunk survived a rebalance",
        DELIVERY,
        HandsOnWhatItHolds,
        connector=_connector(stream_class=HandsOnWhatItHolds),
    ),
    _planted(
        "commit-beside",
        "Kafka 0.7 and 1.1: a commit beside a rebalance landed after that of the next owner",
        MONOTONE,
        CommitsBesideTheMember,
        connector=CommitsBesideTheMember,
    ),
)

CLIENT_PLANTS = {row.name: row for row in _ROWS}
"""Every plant, by its name."""
