"""The fetcher of a consumer: a task for each broker, and queues to the streams.

Theory of operation
  A task requests all its partitions of one broker in one multifetch. Each chunk goes into the
  queue of the stream that owns the partition: one chunk for each partition and round, so that
  a partition waits for at most one chunk of each other partition of its stream. A queue has a
  limit in chunks. When it is full the task waits, and so does all that it fetches. After a
  round without data it pauses for the fetch back-off.

  A `FetchPosition` has two offsets. The fetch offset advances once a chunk is in the queue,
  never before: a chunk that does not get there is fetched again. The consumed offset, which is
  the one to commit, advances when a message is delivered. A stopped position is dead: its
  messages are dropped wherever they are found, in a response, a queue or a stream. So stopping
  never waits, neither for a broker that does not answer nor for an application that does not
  read. A new position of the partition begins at the consumed offset of the old one.

`fetch_exactly`, `known_positions` and `forget` answer the effects of these names. A driver
runs the first one in place of the program that yields the effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from watchkeeper.model.actor.effects import Fetch, Partition, Positions
from watchkeeper.model.actor.tasks import Drain, Start, put
from watchkeeper.model.clients.consumer.fetcher_tasks import BrokerFetcher
from watchkeeper.model.clients.consumer.positions import FetchListener, FetchPosition
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.group.variants import OffsetMeaning

QueueFor = Callable[[str, int], str]
"""The queue of a stream, by topic and number of the stream."""
FindLeader = Callable[[Partition], str]
"""The address of the leader of a partition; empty without a leader."""


class SavedPosition(NamedTuple):
    """The offsets of a partition when the member stopped to fetch it."""

    last_offset: int
    consumed_offset: int


class Fetcher:
    """The partitions that one consumer fetches, their positions, and the fetching tasks."""

    broker_fetcher_class: type[BrokerFetcher] = BrokerFetcher

    def __init__(
        self, me: Consumer, listener: FetchListener, queue_for: QueueFor, find_leader: FindLeader
    ) -> None:
        self.me = me
        self.listener = listener
        self.queue_for = queue_for
        self.find_leader = find_leader
        self.positions: dict[Partition, FetchPosition] = {}
        self._saved: dict[Partition, SavedPosition] = {}
        self._fetchers: dict[str, BrokerFetcher] = {}

    # --- effects of the program ----------------------------------------------------------

    async def fetch_exactly(self, fetches: Iterable[Fetch]) -> None:
        """Fetch exactly these partitions. After this call no other one is delivered."""
        requested = {fetch.partition: fetch for fetch in fetches}
        stopped = [
            position
            for position in self.positions.values()
            if not self._is_unchanged(position, requested)
        ]
        for position in stopped:
            self._stop_position(position)
        await self._clear(stopped)
        for partition, fetch in requested.items():
            if partition not in self.positions:
                self._begin(fetch)
        await self._run_fetchers()

    def known_positions(self) -> Positions:
        """Return the offsets to commit, without positions whose offset is still unknown.

        Some variants commit the offset of the last consumed message, and take it to be the
        next offset less one. An offset in bytes less one is no offset of a message, so these
        variants receive the last delivered offset plus one.
        """
        is_next = self.me.variant.offset_means is OffsetMeaning.NEXT
        here = (
            (position.partition, position.last_offset, position.consumed_offset)
            for position in self.positions.values()
        )
        gone = (
            (partition, saved.last_offset, saved.consumed_offset)
            for partition, saved in self._saved.items()
        )
        return tuple(
            (partition, consumed if is_next else at + 1)
            for partition, at, consumed in (*here, *gone)
            if at is not None and consumed is not None
        )

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget saved positions (None: all); the partitions being fetched are not affected."""
        for partition in list(self._saved) if partitions is None else partitions:
            self._saved.pop(partition, None)

    def drop_broker(self, address: str) -> None:
        """Stop all positions of one broker, without an effect of the program."""
        for position in [
            position for position in self.positions.values() if position.address == address
        ]:
            self._stop_position(position)

    def stop(self) -> None:
        """Stop all positions: the process or its program has ended."""
        for position in list(self.positions.values()):
            self._stop_position(position)

    # --- positions -----------------------------------------------------------------------

    def _is_unchanged(
        self, position: FetchPosition, requested: Mapping[Partition, Fetch]
    ) -> bool:
        """Whether a position can stay; a failed one is replaced, which may succeed."""
        fetch = requested.get(position.partition)
        return (
            fetch is not None
            and (fetch.address, fetch.stream) == (position.address, position.stream)
            and not position.is_failed
        )

    def _stop_position(self, position: FetchPosition) -> None:
        position.is_stopped = True
        del self.positions[position.partition]
        self._save(position)
        self.listener.on_fetching(position, "ceases")

    def _save(self, position: FetchPosition) -> None:
        """Save the offset to resume at: after the last delivery, whatever was fetched."""
        if position.last_offset is not None and position.consumed_offset is not None:
            self._saved[position.partition] = SavedPosition(
                position.last_offset, position.consumed_offset
            )

    async def _clear(self, stopped: Iterable[FetchPosition]) -> None:
        """Empty the queues that no remaining position uses.

        A fetching task may wait for room in such a queue, and no stream reads it any more. In
        the other queues the streams skip the chunks of stopped positions.
        """
        busy = {position.queue: None for position in self.positions.values()}
        for queue in dict.fromkeys(position.queue for position in stopped):
            if queue not in busy:
                await Drain(queue)

    def _begin(self, fetch: Fetch) -> None:
        partition = fetch.partition
        queue = self.queue_for(partition.topic, fetch.stream)
        saved = self._saved.pop(partition, None)
        begin = fetch.start if saved is None else saved.consumed_offset
        position = FetchPosition(partition, fetch.address, fetch.stream, queue, begin)
        if saved is not None:
            position.last_offset = saved.last_offset
        self.positions[partition] = position
        self.listener.on_fetching(position, "begins")

    # --- tasks ---------------------------------------------------------------------------

    async def _run_fetchers(self) -> None:
        """Start a task for each broker, or wake it."""
        for address in self._addresses():
            fetcher = self._fetchers.get(address)
            if fetcher is None or fetcher.is_over:
                fetcher = self._fetchers[address] = self.broker_fetcher_class(self, address)
                await Start(f"fetches from {address}", fetcher.run)
            else:
                await put(fetcher.wake_queue, True, 1, timeout_ms=0)

    def _addresses(self) -> list[str]:
        """The addresses from which there is something to fetch."""
        return list(dict.fromkeys(position.address for position in self.positions.values()))

    def positions_at(self, address: str) -> list[FetchPosition]:
        """Return the positions to fetch from an address, without failed ones."""
        return [
            position
            for position in self.positions.values()
            if position.address == address and not position.is_failed
        ]
