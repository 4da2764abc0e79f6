"""The stores of a simulated run in which applications keep results with their places.

They outlive every consumer, and what is stored is stored: results and place in one step. A
store in segments is for one process at a time, as its folder is.
"""

from __future__ import annotations

from collections.abc import Collection

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.result_store import ReadPosition, StoreResult

Key = tuple[str, Partition]


class Results:
    """What all members have stored."""

    def __init__(self) -> None:
        self.places: dict[Key, int] = {}
        self.holders: dict[Key, MemberResults] = {}
        """Who has the segments of a partition."""


class MemberResults:
    """The results of a group, as one process has them."""

    def __init__(self, results: Results, group: str, *, is_alone: bool) -> None:
        """`is_alone` where results are for one process at a time."""
        self.results = results
        self.group = group
        self.is_alone = is_alone

    def has(self, partition: Partition) -> bool:
        """Whether this process may store results of a partition."""
        return not self.is_alone or self.results.holders.get((self.group, partition)) is self

    def take(self, partition: Partition) -> bool:
        """Have them from now on; False as long as another process has them."""
        return self.results.holders.setdefault((self.group, partition), self) is self

    def keep_only(self, partitions: Collection[Partition]) -> None:
        """Let go of all others."""
        holders = self.results.holders
        for key in [key for key, holder in holders.items() if holder is self]:
            if key[1] not in partitions:
                del holders[key]

    def position_of(self, effect: ReadPosition) -> int | None:
        """Where a group stands in a partition, by its results."""
        if not self.has(effect.partition):
            return None
        return self.results.places.get((effect.group, effect.partition))

    def store(self, effect: StoreResult) -> bool:
        """Store a result with its place, unless another member has come further."""
        key, places = (effect.group, effect.partition), self.results.places
        if not self.has(effect.partition) or places.get(key) != effect.expected:
            return False
        places[key] = effect.position
        return True
