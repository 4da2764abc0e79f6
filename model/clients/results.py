"""Where an application keeps its results together with its place: both or neither.

The pages' way to handle each message exactly once: the offset is stored with the result, in
one transaction. Whoever stores says where it believes the group stands; if somebody else has
come further meanwhile, nothing is stored. So a member that is out of date does no harm.

Messages that were compressed together have one offset, and a place lies before all of them
or behind. So what is made of them is stored when the last of them has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from model.asks import Partition
from model.clients.chunks import Handed
from model.clients.identities import merged
from model.delivery import Lot
from model.operations import Ask


class PlaceOf(Ask[int | None], frozen=True):
    """Where a group stands in a partition, by its results; None if there are none."""

    group: str
    partition: Partition


class StoreResult(Ask[bool], frozen=True):
    """Store what was made of messages together with the place behind them, in one step.

    False, and nothing is stored, if the group does not stand at `expected` (None: nowhere).
    """

    group: str
    partition: Partition
    expected: int | None
    place: int
    lots: tuple[Lot, ...]
    """The messages, as far as they say who they are."""
    results: tuple[bytes, ...] = ()
    """What was made of them; a simulated application makes nothing."""


class Kept(NamedTuple):
    """A result as a store has it, with the place that was stored in the same step."""

    partition: Partition
    place: int
    body: bytes


class ResultStore(Protocol):
    """What keeps results and places; it is never between the two, whenever it is ended."""

    def place_of(self, ask: PlaceOf) -> int | None:
        """Where a group stands."""

    def store(self, ask: StoreResult) -> bool:
        """Store both, or neither."""

    def results_of(self, group: str) -> Iterator[Kept]:
        """The results of a group; those of one partition in the order of their messages."""

    def close(self) -> None:
        """Keep what has been stored, and let go of the files."""


Make = Callable[[Handed], tuple[bytes, ...]]
"""Makes results of a message."""


def nothing(handed: Handed) -> tuple[bytes, ...]:
    """What is made where a result is only that its messages were counted."""
    return ()


class Keeping:
    """What an application does to keep its results with its places."""

    def __init__(self, group: str, make: Make = nothing) -> None:
        self.group = group
        self.make = make
        self._held: dict[Partition, list[Handed]] = {}
        """Messages of one entry, of which the last has not come yet."""

    async def take(self, handed: Handed) -> tuple[Handed, ...]:
        """Keep what a message gives; the messages of which the results were stored now."""
        held = self._held.setdefault(handed.partition, [])
        if handed.begins_entry:  # what was held is of one whose end went to another member
            held.clear()
        held.append(handed)
        if handed.next_offset == handed.offset:
            return ()
        whole = tuple(held)
        held.clear()
        return whole if await self.store(whole) else ()

    async def store(self, handed: Sequence[Handed]) -> bool:
        """Store what messages of one partition give, which follow one another."""
        partition = handed[0].partition
        expected = await PlaceOf(self.group, partition)
        if expected is not None and expected != handed[0].offset:
            return False
        lots = tuple(merged(one.lot for one in handed if one.lot is not None))
        results = tuple(result for one in handed for result in self.make(one))
        place = handed[-1].next_offset
        return await StoreResult(self.group, partition, expected, place, lots, results)
