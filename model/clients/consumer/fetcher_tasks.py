"""The task that fetches from one broker, round after round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from watchkeeper.model.actor.rpc import CallError
from watchkeeper.model.actor.tasks import put, take
from watchkeeper.model.clients.consumer.chunks import Chunk
from watchkeeper.model.clients.consumer.positions import FetchedChunk, FetchPosition
from watchkeeper.model.clients.consumer.simple import SimpleConsumer
from watchkeeper.model.log.format.entries import valid_size
from watchkeeper.model.log.format.errors import NO_ERROR, LogError, OffsetOutOfRange, error_of
from watchkeeper.model.log.format.requests import EARLIEST, LATEST, FetchRequest, FetchResponse

if TYPE_CHECKING:
    from watchkeeper.model.clients.consumer.fetcher import Fetcher


class BrokerFetcher:
    """Fetches all partitions that a consumer has at one address."""

    def __init__(self, fetcher: Fetcher, address: str) -> None:
        self.fetcher = fetcher
        self.settings = fetcher.me.settings
        self.address = address
        self.wake_queue = f"something new at {address}"
        """The queue that ends its pause."""
        self.is_over = False
        self.failures = 0
        """The number of rounds in a row without an answer of the broker."""
        self._consumers: dict[str, SimpleConsumer] = {}

    async def run(self) -> None:
        """Fetch for as long as there are positions at this address."""
        while positions := self.fetcher.positions_at(self.address):
            read = await self._try_round(positions)
            if self.is_over:
                break
            if not read:
                await take(self.wake_queue, timeout_ms=self.settings.fetch_backoff_ms)
        self.is_over = True
        for consumer in self._consumers.values():
            await consumer.close()

    async def _try_round(self, positions: Sequence[FetchPosition]) -> int:
        """Run a round; return its bytes of whole messages, 0 if a broker did not answer."""
        try:
            read = sum(
                [
                    await self._round(address, some)
                    for address, some in self._by_address(positions)
                ]
            )
        except CallError as error:
            self.failures += 1
            self.fetcher.listener.on_failure(error.address, self.failures)
            self._on_failure()
            return 0
        self.failures = 0
        return read

    def _on_failure(self) -> None:
        """Handle a failed round or partition: by default, retry after the pause."""

    def _by_address(
        self, positions: Sequence[FetchPosition]
    ) -> list[tuple[SimpleConsumer, list[FetchPosition]]]:
        """Group positions by broker; one without an address belongs to its present leader."""
        found: dict[str, list[FetchPosition]] = {}
        for position in positions:
            address = position.address or self.fetcher.find_leader(position.partition)
            if address:
                found.setdefault(address, []).append(position)
        return [(self._consumer(address), group) for address, group in found.items()]

    def _consumer(self, address: str) -> SimpleConsumer:
        if address not in self._consumers:
            timeout_ms = self.settings.socket_timeout_ms
            self._consumers[address] = SimpleConsumer(address, timeout_ms=timeout_ms)
        return self._consumers[address]

    async def _round(self, consumer: SimpleConsumer, positions: Sequence[FetchPosition]) -> int:
        """Fetch these positions from one broker; return the bytes of whole messages."""
        ready = [position for position in positions if await self._has_offset(consumer, position)]
        if not ready:
            return 0
        requests = [
            FetchRequest(
                position.partition.topic,
                position.index,
                position.fetch_offset,
                self.settings.fetch_bytes,
            )
            for position in ready
        ]
        responses = await consumer.multifetch(requests)
        read = 0
        for position, response in zip(ready, responses, strict=True):
            # A rebalance may have stopped the position while the request was under way.
            if not position.is_stopped:
                read += await self._enqueue_response(consumer, position, response)
        return read

    # --- responses -----------------------------------------------------------------------

    async def _enqueue_response(
        self, consumer: SimpleConsumer, position: FetchPosition, response: FetchResponse
    ) -> int:
        """Queue the fetched chunk for its stream; return its bytes of whole messages."""
        if response.error_code == OffsetOutOfRange.code:
            await self._reset(consumer, position, "out of range")
            return 0
        try:
            size_bytes = self._valid_size(position, response)
        except LogError as error:
            position.is_failed = True
            await put(position.queue, FetchedChunk(position, error), self.settings.queued_chunks)
            self._on_failure()
            return 0
        if size_bytes:
            chunk = Chunk(position.partition, response.messages, position.fetch_offset)
            await self._put(position, chunk, size_bytes)
        return size_bytes

    def _valid_size(self, position: FetchPosition, response: FetchResponse) -> int:
        """Return the bytes of whole messages; raise a `LogError` if the first is incomplete.

        Without that error a message larger than `fetch.size` would be requested for ever,
        and the stream would stall without a reason (KAFKA-160, KAFKA-994).
        """
        if response.error_code != NO_ERROR:
            raise error_of(response.error_code)(f"{position.partition} at {self.address}")
        return valid_size(response.messages)

    async def _put(self, position: FetchPosition, chunk: Chunk, size_bytes: int) -> None:
        """Queue a chunk, and only then advance the fetch offset (KAFKA-154)."""
        await put(position.queue, FetchedChunk(position, chunk), self.settings.queued_chunks)
        position.fetch_offset += size_bytes

    # --- the first offset ----------------------------------------------------------------

    async def _has_offset(self, consumer: SimpleConsumer, position: FetchPosition) -> bool:
        """Whether the position has an offset; without a committed one, request it first."""
        if position.fetch_offset >= 0:
            return True
        await self._reset(consumer, position, "no offset")
        return position.fetch_offset >= 0 and not position.is_stopped

    async def _reset(self, consumer: SimpleConsumer, position: FetchPosition, why: str) -> None:
        """Move to the beginning or the end of the log, as `autooffset.reset` says.

        If the broker answers with an error, the next round tries again.
        """
        earliest = self.settings.auto_offset_reset == "smallest"
        try:
            [offset] = await consumer.offsets_before(
                position.partition.topic, position.index, EARLIEST if earliest else LATEST, 1
            )
        except LogError:
            return
        if not position.is_stopped:
            position.reset_to(offset)
            self.fetcher.listener.on_reset(position, offset, why)
            await self._after_reset(position, offset)

    async def _after_reset(self, position: FetchPosition, offset: int) -> None:
        """Handle a reset: by default the next commit of the member includes it."""
