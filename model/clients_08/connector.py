"""The high-level consumer of 0.8: its fetcher speaks the protocol of 0.8 with the leaders.

Kafka 0.8.2.2: ZookeeperConsumerConnector, ConsumerFetcherThread. A leader holds a fetch back for
`fetch.wait.max.ms` while there is nothing new. The messages of a compressed set are delivered
from the offset on that was requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.rpc import Call, HangUp
from watchkeeper.model.clients.consumer.chunks import Messages
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.positions import FetchListener, FetchPosition
from watchkeeper.model.clients.consumer.replicated_fetcher import (
    Fetched,
    LeaderFetcher,
    ReplicatedFetcher,
)
from watchkeeper.model.clients_08.errors import RefusedByBroker
from watchkeeper.model.clients_08.keyed_chunk import KeyedChunk
from watchkeeper.model.clients_08.registered_leaders import RegisteredLeaders
from watchkeeper.model.clients_08.simple import SimpleConsumer08
from watchkeeper.model.group.state import Consumer
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

Chunks = Callable[[Partition, bytes, int], Messages]
"""Makes the messages of a fetch, by their partition, their bytes and the offset that they are
delivered from.
"""


class WireLeaderFetcher(LeaderFetcher):
    """Fetches from a broker in the protocol of 0.8."""

    fetcher: WireFetcher

    async def run(self) -> None:
        """Fetch for as long as there are positions at this address."""
        await super().run()
        await HangUp(self.address)

    async def _fetched(self, positions: Sequence[FetchPosition]) -> Iterable[Fetched]:
        ready = {
            (each.partition.topic, each.index): each
            for each in positions
            if await self._has_begun(each)
        }
        if not ready:
            return ()
        topics = grouped(
            (topic, PartitionFetch(number, each.fetch_offset, self.settings.fetch_bytes))
            for (topic, number), each in sorted(ready.items(), key=itemgetter(0))
        )
        settings = self.settings
        fetch = FetchRequest(settings.fetch_wait_ms, settings.fetch_min_bytes, topics)
        request = ClientRequest(fetch, self.fetcher.client_id)
        timeout_ms = settings.socket_timeout_ms + settings.fetch_wait_ms
        response: FetchResponse = await Call(self.address, request, timeout_ms)
        return [
            (ready[topic, part.partition], part)
            for topic, part in flat(response.topics)
            if (topic, part.partition) in ready
        ]

    async def _take(self, position: FetchPosition, part: PartitionFetched) -> int:
        if part.error_code == PartitionError.OFFSET_OUT_OF_RANGE:
            await self._begin_anew(position, "out of range")
        elif part.error_code != PartitionError.NONE:
            await self.fetcher.lose_leader([position])
        elif part.messages:
            return await self._take_messages(position, part.messages)
        return 0

    async def _take_messages(self, position: FetchPosition, messages: bytes) -> int:
        after, begin = offset_after(messages), position.fetch_offset
        if after is None:
            await self._enqueue(position, None, begin)
            return 0
        chunk = self.fetcher.chunk_of(position.partition, messages, begin)
        await self._enqueue(position, chunk, max(after, begin))
        return len(messages)

    # --- the first offset ----------------------------------------------------------------

    async def _has_begun(self, position: FetchPosition) -> bool:
        """Whether the position has an offset; without a committed one, request it first."""
        if position.fetch_offset < 0:
            await self._begin_anew(position, "no offset")
        return position.fetch_offset >= 0 and not position.is_stopped

    async def _begin_anew(self, position: FetchPosition, why: str) -> None:
        """Move to the beginning or the end of the log, as `auto.offset.reset` says."""
        time = EARLIEST if self.settings.auto_offset_reset == "smallest" else LATEST
        broker = SimpleConsumer08(self.address, timeout_ms=self.settings.socket_timeout_ms)
        try:
            [offset] = await broker.offsets_before(
                position.partition.topic, position.index, time, 1
            )
        except RefusedByBroker:
            await self.fetcher.lose_leader([position])
            return
        if not position.is_stopped:
            self._move(position, offset, why)


class WireFetcher(ReplicatedFetcher):
    """The partitions that one consumer fetches from brokers of 0.8."""

    broker_fetcher_class = WireLeaderFetcher
    chunk_of: Chunks = KeyedChunk

    @property
    def client_id(self) -> str:
        """The name of the client in its requests: the group, as `client.id` is by default."""
        return self.me.group


class Connector08(Connector):
    """A consumer of brokers that speak the protocol of 0.8."""

    wire_fetcher_class: type[WireFetcher] = WireFetcher

    def __init__(self, me: Consumer, listener: FetchListener) -> None:
        super().__init__(me, listener)
        leaders = RegisteredLeaders(me.group, me.settings.socket_timeout_ms)
        self.fetcher = self.wire_fetcher_class(me, listener, self.queue_for, leaders)
