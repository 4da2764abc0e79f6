"""A stream of messages, as an application reads it: `async for delivery in stream`.

A message counts as consumed when it is delivered, before the application has processed it.
For at-least-once processing, also across a crash of the application, turn automatic commits
off and commit after processing.
"""

from __future__ import annotations

from enum import Enum

from watchkeeper.model.actor.tasks import put, take
from watchkeeper.model.clients.consumer.chunks import Delivery, Messages
from watchkeeper.model.clients.consumer.positions import (
    FetchedChunk,
    FetchListener,
    FetchPosition,
)
from watchkeeper.model.clients.errors import ConsumerTimeout
from watchkeeper.model.group.settings import ConsumerSettings
from watchkeeper.model.log.format.errors import LogError


class Marker(Enum):
    """Items of a queue other than chunks."""

    END = "end"


class Stream:
    """The messages that one task of an application reads."""

    def __init__(self, queue: str, settings: ConsumerSettings, listener: FetchListener) -> None:
        self.queue = queue
        self.settings = settings
        self.listener = listener
        self.is_over = False
        self.manual_positions = False
        """Whether the application advances positions itself, after processing; otherwise a
        message counts as consumed when it is delivered."""
        self.latest: FetchPosition | None = None
        """The position that the last delivery came from."""
        self._current: tuple[FetchPosition, Messages] | None = None

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Delivery:
        delivery = await self.next()
        if delivery is None:
            raise StopAsyncIteration
        return delivery

    async def next(self, max_messages: int = 1) -> Delivery | None:
        """Return the next message, or up to `max_messages` consecutive ones; None at the end.

        Raises `ConsumerTimeout` after `consumer.timeout.ms` without a message, and the
        `LogError` of a message that cannot be read. The stream stays usable after both.
        """
        while not self.is_over:
            if self._current is None:
                await self._take()
                continue
            position, chunk = self._current
            await chunk.open_wrapper()
            delivery = self._next_in(position, chunk, max_messages)
            if delivery is not None:
                return await self._deliver(position, delivery)
            self._current = None
        return None

    async def close(self) -> None:
        """End the stream, also for a task that waits for the next message."""
        self.is_over = True
        await put(self.queue, Marker.END, self.settings.queued_chunks, timeout_ms=0)

    async def _take(self) -> None:
        """Take the next chunk from the queue."""
        timeout_ms = self.settings.consumer_timeout_ms
        item = await take(self.queue, timeout_ms=None if timeout_ms < 0 else timeout_ms)
        if item is None:
            raise ConsumerTimeout(self.queue)
        if item is Marker.END:
            return
        assert isinstance(item, FetchedChunk), "fetchers queue fetched chunks"
        # A chunk of a stopped position belongs to the next owner, who fetches it again.
        if item.position.is_stopped:
            return
        if isinstance(item.chunk, Exception):
            raise item.chunk
        self._current = item.position, item.chunk

    def _next_in(
        self, position: FetchPosition, chunk: Messages, max_messages: int
    ) -> Delivery | None:
        """Return the next message of a chunk; None at its end, or after the position stopped."""
        if position.is_stopped:
            return None
        try:
            return chunk.next(max_messages)
        except LogError:
            position.is_failed = True
            self._current = None
            raise

    async def _deliver(self, position: FetchPosition, delivery: Delivery) -> Delivery:
        if not self.manual_positions:
            position.advance(delivery)
        self.latest = position
        self.listener.on_delivery(position, delivery)
        return delivery
