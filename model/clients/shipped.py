"""The clients of Kafka 0.7.2 as shipped, where they differ from those that we would ship.

Each class is one difference, with what comes of it. Together they are `kafka_07`; one by one
they are planted into sound clients, to see that a judge tells of them.
"""

from __future__ import annotations

from model.asks import sleep, tell
from model.calls import CallError
from model.clients.chunks import Handed
from model.clients.connector import Connector
from model.clients.fetchers import BrokerFetcher
from model.clients.fetching import Fetching
from model.clients.places import Place
from model.clients.simple import SimpleConsumer
from model.clients.streams import Stream
from model.errors import ZooKeeperError
from model.offsets import commit_blindly
from model.requests import Direct


class EndsOnError(BrokerFetcher):
    """A fetcher whose broker fails twice running ends, and nothing starts it again.

    Its partitions stay owned, and nobody reads them until the next rebalance.
    """

    def _failed(self) -> None:
        self.is_over = True
        self.fetching.give_up(self.address)


class MinusOneForUnknown(BrokerFetcher):
    """If a broker does not say where a log begins or ends, -1 is taken for the place."""

    async def _reset(self, consumer: SimpleConsumer, place: Place, why: str) -> None:
        """Ask where to go on; whatever goes wrong is swallowed."""
        try:
            await super()._reset(consumer, place, why)
        except CallError:
            place.at = place.consumed = -1


class WritesResets(BrokerFetcher):
    """A place that was out of range is committed by the fetcher itself, at once."""

    async def _after_reset(self, place: Place, offset: int) -> None:
        try:
            await commit_blindly(self.fetching.me, Direct(), [(place.partition, offset)])
        except ZooKeeperError as error:
            await tell("commit refused", why=str(error))


class HandsOnWhatItHolds(Stream):
    """A message is taken from its chunk first, and handed on a moment later.

    A rebalance may come between the two. The message is handed on all the same, and its
    offset is set where nobody looks any more: the next owner hands it on again.
    """

    async def _hand_on(self, place: Place, handed: Handed) -> Handed:
        await sleep(0)
        return await super()._hand_on(place, handed)


class LastQueueWins(Connector):
    """With a filter, every partition goes to the queue of the last stream (KAFKA-550)."""

    def queue_for(self, topic: str, number: int) -> str:
        """The queue of a stream; each was overwritten by the next in the table of queues."""
        wanted = self.me.subscription
        last = wanted.filter_streams - 1 if wanted.is_filter and topic else number
        return super().queue_for(topic, last)


class CommitsBesideTheMember(Connector):
    """An application that commits does so in its own thread, whatever the member does.

    It goes through the places that there were when it began, and writes where each stands. A
    place may be another's by then, who has come further.
    """

    async def commit_offsets(self, timeout_ms: int | None = None) -> bool:
        """Commit place after place; what goes wrong with one is noted and passed over."""
        is_done = True
        for place in list(self.fetching.places.values()):
            if place.consumed is None:
                continue
            try:
                await commit_blindly(self.me, Direct(), [(place.partition, place.consumed)])
            except ZooKeeperError as error:
                await tell("commit refused", why=str(error))
                is_done = False
        return is_done


class Fetcher07(EndsOnError, MinusOneForUnknown, WritesResets):
    """The thread that fetches from one broker, in 0.7.2."""


class Fetching07(Fetching):
    """The fetching side of a consumer of 0.7.2."""

    fetcher_class = Fetcher07


class Connector07(LastQueueWins, CommitsBesideTheMember):
    """A consumer of 0.7.2."""

    fetching_class = Fetching07
    stream_class = HandsOnWhatItHolds
