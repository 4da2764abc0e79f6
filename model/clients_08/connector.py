"""The high-level consumer of 0.8: its fetcher speaks the protocol of 0.8 with the leaders.

Kafka 0.8.2.2: ZookeeperConsumerConnector, ConsumerFetcherThread. A leader holds a fetch back for
`fetch.wait.max.ms` while there is nothing new. The messages of a compressed set are delivered
from the offset on that was requested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from watchkeeper.model.actor.rpc import Call, CallError, HangUp
from watchkeeper.model.actor.tasks import put
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.fetcher_tasks import BrokerFetcher
from watchkeeper.model.clients.consumer.positions import (
    FetchedChunk,
    FetchListener,
    FetchPosition,
)
from watchkeeper.model.clients.consumer.replicated_fetcher import ReplicatedFetcher
from watchkeeper.model.clients_08.errors import RefusedByBroker
from watchkeeper.model.clients_08.keyed_chunk import KeyedChunk
from watchkeeper.model.clients_08.registered_leaders import RegisteredLeaders
from watchkeeper.model.clients_08.simple import SimpleConsumer08
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.log.format.errors import InvalidFetchSize, LogError
from watchkeeper.model.log.format.message_08 import offset_after
from watchkeeper.model.log.format.requests import EARLIEST, LATEST
from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.wire_08.by_topic import flat, grouped
from watchkeeper.model.wire_08.client_request import ClientRequest
from watchkeeper.model.wire_08.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
)

WAIT_MS = 100
"""`fetch.wait.max.ms`."""
MIN_BYTES = 1
"""`fetch.min.bytes`."""


class WireLeaderFetcher(BrokerFetcher):
    """Fetches all partitions of a consumer that one broker leads, in the protocol of 0.8."""

    fetcher: WireFetcher

    async def run(self) -> None:
        """Fetch for as long as there are positions at this address."""
        await super().run()
        await HangUp(self.address)

    async def _try_round(self, positions: Sequence[FetchPosition]) -> int:
        """Fetch once; return the number of bytes that came."""
        try:
            ready = [each for each in positions if await self._has_place(each)]
            parts = await self._fetched(ready) if ready else {}
        except (CallError, LogError):
            self.failures += 1
            self.fetcher.listener.on_failure(self.address, self.failures)
            await HangUp(self.address)
            await self.fetcher.lose_leader([each for each in positions if not each.is_stopped])
            return 0
        self.failures = 0
        read = 0
        for position in ready:
            part = parts.get((position.partition.topic, position.index))
            # A rebalance may have stopped the position while the request was under way.
            if part is not None and not position.is_stopped:
                read += await self._take(position, part)
        return read

    async def _fetched(
        self, positions: Sequence[FetchPosition]
    ) -> Mapping[tuple[str, int], PartitionFetched]:
        wanted = sorted(
            (each.partition.topic, each.index, each.fetch_offset) for each in positions
        )
        topics = grouped(
            (topic, PartitionFetch(number, offset, self.settings.fetch_bytes))
            for topic, number, offset in wanted
        )
        request = ClientRequest(FetchRequest(WAIT_MS, MIN_BYTES, topics), self.fetcher.client_id)
        response: FetchResponse = await Call(
            self.address, request, self.settings.socket_timeout_ms + WAIT_MS
        )
        return {(topic, part.partition): part for topic, part in flat(response.topics)}

    async def _take(self, position: FetchPosition, part: PartitionFetched) -> int:
        if part.error_code == PartitionError.OFFSET_OUT_OF_RANGE:
            await self._move(position, "out of range")
        elif part.error_code != PartitionError.NONE:
            await self.fetcher.lose_leader([position])
        elif part.messages:
            return await self._enqueue(position, part.messages)
        return 0

    async def _enqueue(self, position: FetchPosition, messages: bytes) -> int:
        """Queue what came for its stream, and only then advance the fetch offset."""
        after = offset_after(messages)
        bound = self.settings.queued_chunks
        if after is None:
            position.is_failed = True
            where = f"{position.partition} at {self.address}"
            await put(position.queue, FetchedChunk(position, InvalidFetchSize(where)), bound)
            return 0
        chunk = KeyedChunk(position.partition, messages, position.fetch_offset)
        await put(position.queue, FetchedChunk(position, chunk), bound)
        position.fetch_offset = max(after, position.fetch_offset)
        return len(messages)

    # --- the first offset ----------------------------------------------------------------

    async def _has_place(self, position: FetchPosition) -> bool:
        """Whether the position has an offset; without a committed one, request it first."""
        if position.fetch_offset < 0:
            await self._move(position, "no offset")
        return position.fetch_offset >= 0 and not position.is_stopped

    async def _move(self, position: FetchPosition, why: str) -> None:
        """Move to the beginning or the end of the log, as `auto.offset.reset` says."""
        earliest = self.settings.auto_offset_reset == "smallest"
        timeout_ms = self.settings.socket_timeout_ms
        broker = SimpleConsumer08(self.address, timeout_ms=timeout_ms)
        where = position.partition.topic, position.index
        try:
            [offset] = await broker.offsets_before(*where, EARLIEST if earliest else LATEST, 1)
        except RefusedByBroker:
            if not position.is_stopped:
                await self.fetcher.lose_leader([position])
            return
        if not position.is_stopped:
            position.reset_to(offset)
            self.fetcher.listener.on_reset(position, offset, why)


class WireFetcher(ReplicatedFetcher):
    """The partitions that one consumer fetches from brokers of 0.8."""

    broker_fetcher_class = WireLeaderFetcher

    @property
    def client_id(self) -> str:
        """The name of the client in its requests: the group, as `client.id` is by default."""
        return self.me.group


class Connector08(Connector):
    """A consumer of brokers that speak the protocol of 0.8."""

    def __init__(self, me: Consumer, listener: FetchListener) -> None:
        super().__init__(me, listener)
        leaders = RegisteredLeaders(me.group, me.settings.socket_timeout_ms)
        self.fetcher = WireFetcher(me, listener, self.queue_for, leaders)
