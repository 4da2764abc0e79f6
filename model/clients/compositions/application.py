"""The application of a consumer: how it processes messages, and when it commits.

    as configured     from time to time, by the member itself
    before            before a delivery is processed: at most once
    after             after it was processed: at least once
    with the result   in one transaction with the result: exactly once

The application reports the messages that it has *handled*. Between the delivery of a message
and that report it may crash.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from watchkeeper.model.actor.effects import emit, sleep
from watchkeeper.model.clients.compositions.kafka_07 import clients_of
from watchkeeper.model.clients.consumer.chunks import Delivery
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.positions import FetchListener, FetchPosition
from watchkeeper.model.clients.consumer.record_chunk import EncodedRecords
from watchkeeper.model.clients.consumer.replicated_fetcher import ReplicatedConnector
from watchkeeper.model.clients.consumer.result_store import Make, ResultWriter, no_results
from watchkeeper.model.clients.consumer.streams import Stream
from watchkeeper.model.clients.errors import ConsumerTimeout
from watchkeeper.model.clients_08.connector import Connector08, WireFetcher
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.group.variants import Variant
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.plan.plan import ConsumerFetches, Handling
from watchkeeper.model.registry.subscription import Subscription
from watchkeeper.model.trace.kinds import EventKind

MAX_RANGE_US = 100_000
"""The processing time of one delivery; longer ones would delay the reaction to a rebalance."""
MAX_RANGE = 100_000


class AccountedFetcher(WireFetcher):
    """A fetcher of 0.8 that knows whose messages it delivers."""

    chunk_of = EncodedRecords


class AccountedConnector08(Connector08):
    """A consumer of 0.8 whose messages are accounted for."""

    wire_fetcher_class = AccountedFetcher


def connector_of(
    me: Consumer,
    variant: Variant,
    listener: FetchListener,
    brokers: Sequence[str],
    fetches: ConsumerFetches,
) -> Connector:
    """Make the consumer of a version; `brokers` has some brokers of a cluster that replicates."""
    if brokers and fetches is ConsumerFetches.KAFKA_08:
        return AccountedConnector08(me, listener)
    if brokers:
        return ReplicatedConnector(me, listener, brokers)
    return clients_of(variant).connector(me, listener)


def streams_of(connector: Connector, wanted: Subscription) -> list[Stream]:
    """Create the streams of a subscription."""
    if wanted.is_filter:
        return connector.create_message_streams_by_filter(
            wanted.expression, wanted.filter_streams, wanted.pattern
        )
    by_topic = connector.create_message_streams(dict(wanted.streams))
    return [stream for of_topic in by_topic.values() for stream in of_topic]


class Application:
    """The application of one member: a task for each stream runs `handle_all`."""

    def __init__(
        self, connector: Connector, group: str, handling: Handling, make: Make = no_results
    ) -> None:
        """`make` makes the results of messages, where results are stored with positions."""
        self.connector = connector
        self.handling = handling
        self.max_messages = MAX_RANGE
        if handling.each_us:
            self.max_messages = max(1, min(MAX_RANGE_US // handling.each_us, MAX_RANGE))
        self._owed_us = 0
        """Processing time below the resolution of the clock, carried to the next delivery."""
        self._results = ResultWriter(group, make)
        self._handle: Callable[[FetchPosition, Delivery], Awaitable[None]] = {
            "as configured": self._work,
            "before": self._commit_first,
            "after": self._commit_last,
            "with the result": self._store,
        }[handling.commits]

    async def handle_all(self, stream: Stream) -> None:
        """Process deliveries until the stream ends."""
        while True:
            try:
                delivery = await stream.next(self.max_messages)
            except ConsumerTimeout as error:
                await emit(EventKind.STREAM_TIMED_OUT, why=str(error))
                continue
            except LogError as error:
                await emit(EventKind.STREAM_FAILED, why=str(error))
                continue
            if delivery is None:
                return
            assert stream.latest is not None, "a delivery has a position"
            await self._handle(stream.latest, delivery)

    async def _work(self, position: FetchPosition, delivery: Delivery) -> None:
        await self._spend_time(delivery)
        await self._report_handled(delivery)

    async def _commit_first(self, position: FetchPosition, delivery: Delivery) -> None:
        """Process a delivery only if no member can receive it again.

        That is not known after a commit that failed, nor of a position that stopped meanwhile:
        a commit covers the positions that the member has, and another may own this one.
        """
        is_done = await self.connector.commit_offsets()
        if is_done and not position.is_stopped:
            await self._work(position, delivery)

    async def _commit_last(self, position: FetchPosition, delivery: Delivery) -> None:
        """Process a delivery. If the commit fails, the next one covers its position too."""
        await self._work(position, delivery)
        await self.connector.commit_offsets()

    async def _store(self, position: FetchPosition, delivery: Delivery) -> None:
        """Process, and store the result if the group's position is still where it begins."""
        await self._spend_time(delivery)
        for stored in await self._results.take(delivery):
            await self._report_handled(stored)

    async def _spend_time(self, delivery: Delivery) -> None:
        self._owed_us += self.handling.each_us * delivery.size
        duration_ms, self._owed_us = divmod(self._owed_us, 1000)
        if duration_ms:
            await sleep(duration_ms)

    async def _report_handled(self, delivery: Delivery) -> None:
        ranges = [list(delivery.message_range)] if delivery.message_range is not None else []
        partition = delivery.partition
        await emit(
            EventKind.HANDLED, topic=partition.topic, partition=partition.name, ranges=ranges
        )
