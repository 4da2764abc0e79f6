"""The stores in which the members of a live run keep results with their places.

They are the stores that a program of one's own has: a database in a file, which every member
opens, or segments, of which each partition has a folder. A process has a folder until it lets
go of it or is gone, since the kernel keeps its lock; so has one that stands still.

What a member makes of messages is who they are, so that the files can be held against the
trace. Each step is brought to the disk before it is said to be stored: a segment a step.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from model.asks import Partition
from model.clients.chunks import Handed
from model.clients.results import PlaceOf, StoreResult
from real.problems import EnvironmentProblem
from real.segment_results import SegmentResults
from real.sqlite_results import SqliteResults

DATABASE = "results.db"
SEGMENTS = "segments"


def identity(handed: Handed) -> tuple[bytes, ...]:
    """What is made of messages: who they are, if they say so."""
    return (msgspec.json.encode(handed.lot),) if handed.lot is not None else ()


class InDatabase:
    """One database for all; any member may store, and whoever is out of date is refused."""

    def __init__(self, folder: Path, group: str) -> None:
        self.results = SqliteResults(folder / DATABASE)
        self.group = group

    def has(self, partition: Partition) -> bool:
        """Whether this member may store results of a partition."""
        return True

    def take(self, partition: Partition) -> bool:
        """Have them from now on; False as long as another process has them."""
        return True

    def keep_only(self, partitions: Collection[Partition]) -> None:
        """Let go of all others."""

    def place_of(self, ask: PlaceOf) -> int | None:
        """Where the group stands."""
        return self.results.place_of(ask)

    def store(self, ask: StoreResult) -> bool:
        """Store both, or neither."""
        return self.results.store(ask)


class InSegments:
    """A folder for each partition, for one process at a time."""

    def __init__(self, folder: Path, group: str) -> None:
        self.home = folder / SEGMENTS / group
        self._held: dict[Partition, SegmentResults] = {}

    def has(self, partition: Partition) -> bool:
        """Whether this member may store results of a partition."""
        return partition in self._held

    def take(self, partition: Partition) -> bool:
        """Have them from now on; False as long as another process has them."""
        folder = self.home / partition.topic / partition.name
        try:
            self._held[partition] = SegmentResults(folder, together=1)
        except EnvironmentProblem:
            return False
        return True

    def keep_only(self, partitions: Collection[Partition]) -> None:
        """Let go of all others."""
        for one in [one for one in self._held if one not in partitions]:
            self._held.pop(one).close()

    def place_of(self, ask: PlaceOf) -> int | None:
        """Where the group stands; None where this member has no results."""
        held = self._held.get(ask.partition)
        return held.place_of(ask) if held is not None else None

    def store(self, ask: StoreResult) -> bool:
        """Store both, or neither; nothing where this member has no results."""
        held = self._held.get(ask.partition)
        return held is not None and held.store(ask)


STORES: dict[str, type[InDatabase | InSegments]] = {
    "database": InDatabase,
    "segments": InSegments,
}
"""What a scenario calls a store -> what a member has of it."""
