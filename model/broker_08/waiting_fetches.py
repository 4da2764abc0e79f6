"""Fetches that wait for messages: each is woken by the next append to one of its partitions.

Kafka 0.8.2.2: FetchRequestPurgatory, DelayedFetch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from watchkeeper.model.actor.tasks import put, take

Place = tuple[str, int]
"""Topic and partition."""


class WaitingFetches:
    """The fetches of one broker that wait, by partition."""

    def __init__(self) -> None:
        self._waiting: dict[Place, dict[str, None]] = {}
        """Partition -> the names of the queues that wake up a fetch."""
        self._unused: list[str] = []
        self._made = 0

    @contextmanager
    def waiting(self, places: Iterable[Place]) -> Iterator[str]:
        """Register a fetch of these partitions; it waits at the queue of this name."""
        own = tuple(places)
        name = self._unused.pop() if self._unused else self._new_name()
        for place in own:
            self._waiting.setdefault(place, {})[name] = None
        try:
            yield name
        finally:
            for place in own:
                self._forget(place, name)
            self._unused.append(name)

    def _new_name(self) -> str:
        self._made += 1
        return f"fetch/{self._made}"

    def _forget(self, place: Place, name: str) -> None:
        names = self._waiting.get(place)
        if names is not None:
            names.pop(name, None)
            if not names:
                del self._waiting[place]

    async def wake(self, place: Place) -> None:
        """Wake up the fetches of a partition to which something was appended."""
        for name in tuple(self._waiting.get(place, ())):
            # A queue that holds something already wakes its fetch anyway.
            await put(name, True, 1, timeout_ms=0)


async def wait_at(name: str, timeout_ms: int) -> None:
    """Wait until an append, or until the time is over.

    An item that an earlier fetch left in the queue wakes this one too early: it looks again.
    """
    await take(name, timeout_ms=timeout_ms)
