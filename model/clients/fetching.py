"""The fetching side of a consumer: a thread for each broker, and queues to the streams.

Theory of operation
  A thread asks its broker for all partitions that it has there, in one request. What comes
  is put into the queue of the stream that the partition belongs to, one chunk a partition
  and round, so that no partition of a stream waits for more than one chunk of each other.
  A queue holds so many chunks; when it is full the thread waits, and with it all that it
  fetches. When a round has brought nothing it pauses.

  Where a partition stands is its *place*. The offset to fetch next moves on when a chunk is
  in the queue, never before: a chunk that does not get there is fetched again. The offset
  that is committed moves on when a message is handed on. A place that is stopped is dead:
  what is fetched of it is dropped wherever it is met, in a response, in a queue, in a
  stream. So stopping waits for nobody, even for a broker that does not answer or an
  application that does not read; and a new place begins where the old one was handed on.

`fetch_exactly`, `known_positions` and `forget` are the answers to the asks of that name. A
driver runs the first in place of the program that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from model.asks import Fetch, Partition, Positions
from model.clients.fetchers import BrokerFetcher
from model.clients.places import Journal, Place
from model.member import Consumer
from model.threads import Drain, Start, put

QueueFor = Callable[[str, int], str]
"""The queue of a topic's stream of this number."""
Find = Callable[[Partition], str]
"""Where the leader of a partition listens; empty if nobody leads it."""


class Kept(NamedTuple):
    """Where a member stood in a partition that it has stopped to fetch."""

    at: int
    consumed: int


class Fetching:
    """What one consumer fetches, how far it has come, and the threads that do it."""

    fetcher_class: type[BrokerFetcher] = BrokerFetcher

    def __init__(self, me: Consumer, journal: Journal, queue_for: QueueFor, find: Find) -> None:
        self.me = me
        self.journal = journal
        self.queue_for = queue_for
        self.find = find
        self.places: dict[Partition, Place] = {}
        self._kept: dict[Partition, Kept] = {}
        self._fetchers: dict[str, BrokerFetcher] = {}

    # --- what a program asks -------------------------------------------------------------

    async def fetch_exactly(self, fetches: Iterable[Fetch]) -> None:
        """Fetch these and no others; when this is done nothing of the others is handed on."""
        wanted = {fetch.partition: fetch for fetch in fetches}
        stopped = [one for one in self.places.values() if not self._goes_on(one, wanted)]
        for place in stopped:
            self._stop(place)
        await self._clear(stopped)
        for partition, fetch in wanted.items():
            if partition not in self.places:
                self._begin(fetch)
        await self._run_fetchers()

    def known_positions(self) -> Positions:
        """Where I stand, as far as I know; a place that only a broker knows is not known.

        A group that commits the last offset it consumed, one less than its position, is given
        positions of which that is true: in a log of bytes, the next offset less one is none.
        """
        is_next = self.me.variant.offset_means == "next"
        here = ((one.partition, one.at, one.consumed) for one in self.places.values())
        gone = ((partition, kept.at, kept.consumed) for partition, kept in self._kept.items())
        return tuple(
            (partition, consumed if is_next else at + 1)
            for partition, at, consumed in (*here, *gone)
            if at is not None and consumed is not None
        )

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget where I stood; what is fetched goes on."""
        for partition in list(self._kept) if partitions is None else partitions:
            self._kept.pop(partition, None)

    def give_up(self, address: str) -> None:
        """Fetch nothing from a broker any more, though nobody has asked for that."""
        for place in [one for one in self.places.values() if one.address == address]:
            self._stop(place)

    def end(self) -> None:
        """The process is gone, or its program is over."""
        for place in list(self.places.values()):
            self._stop(place)

    # --- places --------------------------------------------------------------------------

    def _goes_on(self, place: Place, wanted: Mapping[Partition, Fetch]) -> bool:
        """Whether a place stays as it is; one that has failed may succeed as another."""
        fetch = wanted.get(place.partition)
        return (
            fetch is not None
            and (fetch.address, fetch.stream) == (place.address, place.stream)
            and not place.is_failed
        )

    def _stop(self, place: Place) -> None:
        place.is_stopped = True
        del self.places[place.partition]
        self._keep(place)
        self.journal.fetching(place, "ceases")

    def _keep(self, place: Place) -> None:
        """Remember where to go on: after what was handed on, whatever was fetched."""
        if place.at is not None and place.consumed is not None:
            self._kept[place.partition] = Kept(place.at, place.consumed)

    async def _clear(self, stopped: Iterable[Place]) -> None:
        """Make room in the queues of which nothing goes on.

        In the others the dead chunks are passed over when they come.
        """
        busy = {place.queue: None for place in self.places.values()}
        for queue in dict.fromkeys(place.queue for place in stopped):
            if queue not in busy:
                await Drain(queue)

    def _begin(self, fetch: Fetch) -> None:
        partition = fetch.partition
        queue = self.queue_for(partition.topic, fetch.stream)
        kept = self._kept.pop(partition, None)
        begin = fetch.start if kept is None else kept.consumed
        place = Place(partition, fetch.address, fetch.stream, queue, begin)
        if kept is not None:
            place.at = kept.at
        self.places[partition] = place
        self.journal.fetching(place, "begins")

    # --- threads -------------------------------------------------------------------------

    async def _run_fetchers(self) -> None:
        """Have a thread for each broker, awake."""
        for address in dict.fromkeys(place.address for place in self.places.values()):
            fetcher = self._fetchers.get(address)
            if fetcher is None or fetcher.is_over:
                fetcher = self._fetchers[address] = self.fetcher_class(self, address)
                await Start(f"fetches from {address}", fetcher.run)
            else:
                await put(fetcher.wakes, True, 1, timeout_ms=0)

    def places_at(self, address: str) -> list[Place]:
        """What is fetched from a broker, and can be read."""
        return [
            place
            for place in self.places.values()
            if place.address == address and not place.is_failed
        ]
