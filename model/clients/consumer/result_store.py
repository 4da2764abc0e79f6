"""Stores for the results of an application together with its position: both or neither.

Kafka's way to process each message exactly once: the offset is stored with the result, in one
transaction. A writer names the position that it expects the group to have. If another member
has moved that position, nothing is stored, so a member that is out of date does no harm.

Messages that were compressed together share one offset: a position is before all of them or
behind all of them. Their results are stored when the last of them has arrived.

The module holds, in this order: the two effects and the store that answers them, the writer
that an application uses, a reader without a group (`store_to_end`), and a member's access to a
store that only one process at a time can open (`fetch_with_results`).

A database can be written by every member of a group; a member that is out of date is refused.
Segments cannot: their folder belongs to one process, and the next owner of a partition waits
until that process has released it or is gone. A member that hangs keeps the next owner waiting
that long, even after its session has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from watchkeeper.model.actor.effects import Fetch, Partition, sleep
from watchkeeper.model.actor.operations import Effect
from watchkeeper.model.clients.consumer.chunks import Chunk, Delivery
from watchkeeper.model.clients.consumer.fetcher import Fetcher
from watchkeeper.model.clients.consumer.simple import SimpleConsumer
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.delivery.message_id import merged
from watchkeeper.model.log.format.errors import NO_ERROR, error_of
from watchkeeper.model.log.format.requests import EARLIEST, FetchRequest

RETRY_MS = 50
"""The interval at which a member tries to acquire results that another process holds."""


# --- the store -------------------------------------------------------------------------


class ReadPosition(Effect[int | None], frozen=True):
    """Read the position of a group in a partition from its results; None without results."""

    group: str
    partition: Partition


class StoreResult(Effect[bool], frozen=True):
    """Store the results of messages and the position behind them, in one step.

    The result is False, and nothing is stored, if the group's position is not `expected`
    (None: the group has no position).
    """

    group: str
    partition: Partition
    expected: int | None
    position: int
    ranges: tuple[MessageRange, ...]
    """The messages, as far as their payloads identify them."""
    results: tuple[bytes, ...] = ()
    """The results; a simulated application has none."""


class StoredResult(NamedTuple):
    """A result in a store, and the position that was stored in the same step."""

    partition: Partition
    position: int
    body: bytes


class ResultStore(Protocol):
    """A store of results and positions. A crash never leaves one without the other."""

    def position_of(self, effect: ReadPosition) -> int | None:
        """Return the position of a group in a partition; None without results."""

    def store(self, effect: StoreResult) -> bool:
        """Store results and position, or neither; return whether they were stored."""

    def results_of(self, group: str) -> Iterator[StoredResult]:
        """Yield the results of a group; those of one partition in the order of messages."""

    def close(self) -> None:
        """Make what was stored durable, and close the files."""


# --- the writer ------------------------------------------------------------------------

Make = Callable[[Delivery], tuple[bytes, ...]]
"""Makes the results of a delivery."""


def no_results(delivery: Delivery) -> tuple[bytes, ...]:
    """Return no result: for applications that only count their messages."""
    return ()


class ResultWriter:
    """Stores the results of one application together with its positions."""

    def __init__(self, group: str, make: Make = no_results) -> None:
        self.group = group
        self.make = make
        self._incomplete: dict[Partition, list[Delivery]] = {}
        """Messages of a compressed entry whose last message has not arrived yet."""

    async def take(self, delivery: Delivery) -> tuple[Delivery, ...]:
        """Process a delivery; return the deliveries whose results were stored now."""
        entry = self._incomplete.setdefault(delivery.partition, [])
        # A rebalance may have given the end of the previous entry to another member.
        if delivery.begins_entry:
            entry.clear()
        entry.append(delivery)
        # Only the last message of a compressed entry moves the offset.
        if delivery.next_offset == delivery.offset:
            return ()
        complete = tuple(entry)
        entry.clear()
        return complete if await self.store(complete) else ()

    async def store(self, deliveries: Sequence[Delivery]) -> bool:
        """Store the results of consecutive messages of one partition.

        Return False, with nothing stored, if the group's position is not their first offset.
        """
        partition = deliveries[0].partition
        expected = await ReadPosition(self.group, partition)
        if expected is not None and expected != deliveries[0].offset:
            return False
        identified = (
            delivery.message_range
            for delivery in deliveries
            if delivery.message_range is not None
        )
        results = tuple(result for delivery in deliveries for result in self.make(delivery))
        position = deliveries[-1].next_offset
        return await StoreResult(
            self.group, partition, expected, position, tuple(merged(identified)), results
        )


# --- a reader without a group ----------------------------------------------------------


async def store_to_end(
    consumer: SimpleConsumer, writer: ResultWriter, partition: Partition, *, fetch_bytes: int
) -> int:
    """Read a partition to its present end; return the number of messages that were stored.

    For an application outside of any group: it knows its broker and its partitions, and its
    own results are its only record of progress. The messages of one fetch are stored in one
    step. Raises the `LogError` of a damaged message, or the one that the broker answers.
    """
    stored = 0
    while deliveries := await _fetched(consumer, writer.group, partition, fetch_bytes):
        if await writer.store(deliveries):
            stored += sum(delivery.size for delivery in deliveries)
    await consumer.close()
    return stored


async def _fetched(
    consumer: SimpleConsumer, group: str, partition: Partition, fetch_bytes: int
) -> list[Delivery]:
    """Fetch the messages after the group's position; an empty list at the end."""
    topic, index = partition.topic, int(partition.name.rpartition("-")[2])
    offset = await ReadPosition(group, partition)
    if offset is None:
        (offset,) = await consumer.offsets_before(topic, index, EARLIEST, 1)
    response = await consumer.fetch(FetchRequest(topic, index, offset, fetch_bytes))
    if response.error_code != NO_ERROR:
        await consumer.close()
        raise error_of(response.error_code)(f"{partition} at {offset}")
    chunk = Chunk(partition, response.messages, offset)
    deliveries = []
    await chunk.open_wrapper()
    while (delivery := chunk.next(1)) is not None:
        deliveries.append(delivery)
        await chunk.open_wrapper()
    return deliveries


# --- the results of a member -----------------------------------------------------------


class MemberResults(Protocol):
    """The results of a group, as one of its members accesses them."""

    def has(self, partition: Partition) -> bool:
        """Return whether this member may store results of a partition."""

    def take(self, partition: Partition) -> bool:
        """Acquire the results of a partition; False while another process holds them."""

    def keep_only(self, partitions: Collection[Partition]) -> None:
        """Release the results of all other partitions."""

    def position_of(self, effect: ReadPosition) -> int | None:
        """Return the group's position; None where this member holds no results."""

    def store(self, effect: StoreResult) -> bool:
        """Store results and position, or neither; nothing where this member holds none."""


async def fetch_with_results(
    fetcher: Fetcher, results: MemberResults, group: str, fetches: Iterable[Fetch]
) -> None:
    """Fetch exactly these partitions, each from the position that its results have."""

    def from_results(fetch: Fetch) -> Fetch:
        position = results.position_of(ReadPosition(group, fetch.partition))
        return fetch if position is None else fetch._replace(start=position)

    requested = tuple(fetches)
    mine = [fetch for fetch in requested if results.has(fetch.partition)]
    # Release before waiting: two members that swap partitions would otherwise wait for each
    # other.
    await fetcher.fetch_exactly(map(from_results, mine))
    results.keep_only([fetch.partition for fetch in mine])
    others = [fetch for fetch in requested if fetch not in mine]
    for fetch in others:
        while not results.take(fetch.partition):
            await sleep(RETRY_MS)
    if others:
        await fetcher.fetch_exactly(map(from_results, requested))
