"""The fetcher of a consumer of 0.8: it follows the leaders of its partitions.

A task for each leader fetches what is committed there, and the leader waits for something new.
A partition whose leader is not known, or is one no more, has no address; one task asks brokers
for its leader until one is known, and hands it to the task of that leader.

`RecordFetcher` fetches records in a layout of this project; `watchkeeper.model.clients_08` has
the fetcher with the requests of 0.8. Brokers that replicate answer both, simulated and live.

Kafka 0.8.2.2: ConsumerFetcherManager with its leader finder, ConsumerFetcherThread.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from watchkeeper.model.actor.effects import Fetch, Partition, sleep
from watchkeeper.model.actor.rpc import Call, CallError
from watchkeeper.model.actor.tasks import Start, put
from watchkeeper.model.clients.consumer.chunks import Messages
from watchkeeper.model.clients.consumer.connector import Connector, no_leader
from watchkeeper.model.clients.consumer.fetcher import Fetcher, QueueFor
from watchkeeper.model.clients.consumer.fetcher_tasks import BrokerFetcher
from watchkeeper.model.clients.consumer.positions import (
    FetchedChunk,
    FetchListener,
    FetchPosition,
)
from watchkeeper.model.clients.consumer.record_chunk import RecordChunk
from watchkeeper.model.clients.leader_table import LeaderTable
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.log.format.errors import InvalidFetchSize, LogError
from watchkeeper.model.replication.messages import ENTRY_BYTES, message_ranges
from watchkeeper.model.replication.requests import (
    CONSUMER,
    ErrorCode,
    FetchedPart,
    FetchedRecords,
    FetchRecords,
    Wanted,
)

WAIT_MS = 100
"""`fetch.wait.max.ms`: how long a leader waits for something new."""
BEGINNING = 0
"""The offset at which every log begins: nothing is deleted from one."""
Fetched = tuple[FetchPosition, Any]
"""A position, and what a broker has answered about it."""


class Leaders(Protocol):
    """What a consumer knows of who leads which partition."""

    async def refresh(self, topic: str) -> None:
        """Ask a broker who leads the partitions of a topic."""

    def address_of(self, partition: Partition) -> str:
        """Return the address of the leader; empty if none is known."""

    def forget(self, partition: Partition) -> None:
        """Do not believe any more what was said of a partition."""


class LeaderFetcher(BrokerFetcher):
    """Fetches all partitions of a consumer that one broker leads."""

    fetcher: ReplicatedFetcher

    @abstractmethod
    async def _fetched(self, positions: Sequence[FetchPosition]) -> Iterable[Fetched]:
        """Fetch once; return what came for each position, as `_take` takes it."""

    @abstractmethod
    async def _take(self, position: FetchPosition, part: Any) -> int:
        """Take what came for a position; return how much it was."""

    async def _try_round(self, positions: Sequence[FetchPosition]) -> int:
        """Fetch once; return how much came, 0 if the broker did not answer."""
        try:
            fetched = await self._fetched(positions)
        except (CallError, LogError):
            self.failures += 1
            self.fetcher.listener.on_failure(self.address, self.failures)
            await self.fetcher.lose_leader(positions)
            return 0
        self.failures = 0
        read = 0
        for position, part in fetched:
            # A rebalance may have stopped the position while the request was under way.
            if not position.is_stopped:
                read += await self._take(position, part)
        return read

    def _move(self, position: FetchPosition, offset: int, why: str) -> None:
        """Move a position to the beginning or the end of its log."""
        position.reset_to(offset)
        self.fetcher.listener.on_reset(position, offset, why)

    async def _enqueue(
        self, position: FetchPosition, chunk: Messages | None, next_offset: int
    ) -> None:
        """Queue what came for its stream, and only then advance the fetch offset.

        Without a chunk not one message fits into a fetch: that is an error of the stream.
        """
        bound = self.settings.queued_chunks
        if chunk is None:
            position.is_failed = True
            error = InvalidFetchSize(f"{position.partition} at {self.address}")
            await put(position.queue, FetchedChunk(position, error), bound)
            return
        await put(position.queue, FetchedChunk(position, chunk), bound)
        position.fetch_offset = next_offset


class RecordFetcher(LeaderFetcher):
    """Fetches from a simulated broker."""

    async def _fetched(self, positions: Sequence[FetchPosition]) -> Iterable[Fetched]:
        wanted = tuple(
            Wanted(position.partition, max(position.fetch_offset, BEGINNING))
            for position in positions
        )
        request = FetchRecords(CONSUMER, wanted, WAIT_MS)
        timeout_ms = self.settings.socket_timeout_ms
        fetched: FetchedRecords = await Call(self.address, request, timeout_ms)
        return zip(positions, fetched.parts, strict=True)

    async def _take(self, position: FetchPosition, part: FetchedPart) -> int:
        if part.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._move(position, self._begin_at(part), "out of range")
        elif part.error is not ErrorCode.NONE:
            await self.fetcher.lose_leader([position])
        elif position.fetch_offset < 0:
            self._move(position, self._begin_at(part), "no offset")
        elif part.records:
            return await self._take_records(position, part)
        return 0

    def _begin_at(self, part: FetchedPart) -> int:
        """The beginning or what is committed, as `auto.offset.reset` says."""
        earliest = self.settings.auto_offset_reset == "smallest"
        return BEGINNING if earliest else part.high_watermark

    async def _take_records(self, position: FetchPosition, part: FetchedPart) -> int:
        records = part.records[: self.settings.fetch_bytes // ENTRY_BYTES]
        ranges = list(message_ranges(position.partition, part.offset, records))
        chunk = RecordChunk(position.partition, ranges) if records else None
        await self._enqueue(position, chunk, position.fetch_offset + len(records))
        return len(records)


class ReplicatedFetcher(Fetcher):
    """The partitions that one consumer of 0.8 fetches."""

    broker_fetcher_class: type[BrokerFetcher] = RecordFetcher

    def __init__(
        self, me: Consumer, listener: FetchListener, queue_for: QueueFor, leaders: Leaders
    ) -> None:
        super().__init__(me, listener, queue_for, no_leader)
        self._leaders = leaders
        self._is_finding = False
        self._has_failed = False
        """Whether a leader was lost since the last question: brokers may not know yet."""

    def _is_unchanged(
        self, position: FetchPosition, requested: Mapping[Partition, Fetch]
    ) -> bool:
        """Whether a position can stay, whichever broker leads its partition now."""
        fetch = requested.get(position.partition)
        return fetch is not None and fetch.stream == position.stream and not position.is_failed

    async def lose_leader(self, positions: Sequence[FetchPosition]) -> None:
        """These partitions have another leader, or none."""
        for position in positions:
            position.address = ""
            self._leaders.forget(position.partition)
        self._has_failed = True
        await self._run_fetchers()

    def _addresses(self) -> list[str]:
        return [address for address in super()._addresses() if address]

    async def _run_fetchers(self) -> None:
        if not self._is_finding and self._without_leader():
            self._is_finding = True
            await Start("find leaders", self._find_leaders)
        await super()._run_fetchers()

    def _without_leader(self) -> list[FetchPosition]:
        return [position for position in self.positions.values() if not position.address]

    async def _find_leaders(self) -> None:
        """Ask for leaders until each partition has one; after a failure a pause is first."""
        while self._without_leader():
            if self._has_failed:
                self._has_failed = False
                await sleep(self.me.settings.fetch_backoff_ms)
            waiting = self._without_leader()
            for topic in sorted({position.partition.topic for position in waiting}):
                await self._leaders.refresh(topic)
            for position in waiting:
                position.address = self._leaders.address_of(position.partition)
            await super()._run_fetchers()
            self._has_failed = self._has_failed or bool(self._without_leader())
        self._is_finding = False


class ReplicatedConnector(Connector):
    """A consumer of 0.8, whose brokers replicate."""

    def __init__(self, me: Consumer, listener: FetchListener, brokers: Sequence[str]) -> None:
        super().__init__(me, listener)
        leaders = LeaderTable(brokers)
        self.fetcher = ReplicatedFetcher(me, listener, self.queue_for, leaders)
