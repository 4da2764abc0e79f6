"""A stream of messages, as an application reads it: `async for handed in stream`.

A message counts as consumed when it is handed on, before the application has done anything
with it. Whoever wants each message to be handled at least once, also when the application
crashes, turns automatic commits off and commits when it has handled what it was handed.
"""

from __future__ import annotations

from enum import Enum

from model.clients.chunks import Chunk, Handed
from model.clients.errors import ConsumerTimeout
from model.clients.places import Fetched, Journal, Place
from model.log.errors import LogError
from model.settings import ConsumerSettings
from model.threads import put, take


class Marker(Enum):
    """What stands in a queue and is no chunk."""

    END = "end"


class Stream:
    """What one thread of an application reads."""

    def __init__(self, queue: str, settings: ConsumerSettings, journal: Journal) -> None:
        self.queue = queue
        self.settings = settings
        self.journal = journal
        self.is_over = False
        self.waits_for_word = False
        """Whether the application moves places on, when it is done; otherwise a message counts
        as consumed when it is handed on."""
        self.latest: Place | None = None
        """Where the last message that was handed on comes from."""
        self._current: tuple[Place, Chunk] | None = None

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Handed:
        handed = await self.next()
        if handed is None:
            raise StopAsyncIteration
        return handed

    async def next(self, at_most: int = 1) -> Handed | None:
        """The next message, or at most so many that follow one another; None at the end.

        `ConsumerTimeout` if there is none in time, and what is wrong with the next message
        if something is; either way the stream can be read on.
        """
        while not self.is_over:
            if self._current is None:
                await self._take()
                continue
            place, chunk = self._current
            handed = self._next_in(place, chunk, at_most)
            if handed is not None:
                return await self._hand_on(place, handed)
            self._current = None
        return None

    async def close(self) -> None:
        """Let the stream end, also for whoever waits for it."""
        self.is_over = True
        await put(self.queue, Marker.END, self.settings.queued_chunks, timeout_ms=0)

    async def _take(self) -> None:
        """Take the next chunk of the queue."""
        timeout_ms = self.settings.consumer_timeout_ms
        item = await take(self.queue, timeout_ms=None if timeout_ms < 0 else timeout_ms)
        if item is None:
            raise ConsumerTimeout(self.queue)
        if item is Marker.END:
            return
        assert isinstance(item, Fetched), "fetchers put in what they have fetched"
        if item.place.is_stopped:
            return
        if isinstance(item.chunk, Exception):
            raise item.chunk
        self._current = item.place, item.chunk

    def _next_in(self, place: Place, chunk: Chunk, at_most: int) -> Handed | None:
        """The next message of a chunk; None at its end, or if the partition is another's now."""
        if place.is_stopped:
            return None
        try:
            return chunk.next(at_most)
        except LogError:
            place.is_failed = True
            self._current = None
            raise

    async def _hand_on(self, place: Place, handed: Handed) -> Handed:
        if not self.waits_for_word:
            place.hand_on(handed)
        self.latest = place
        self.journal.handed_on(place, handed)
        return handed
