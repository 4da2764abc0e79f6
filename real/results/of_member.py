"""The stores in which the members of a live run keep results with their positions.

They are the stores that user programs have: a database file that every member opens, or segments
with a folder for each partition. A process owns a folder until it releases it or ends, since the
kernel keeps its lock; a stopped process keeps it too.

The result of a message is its identity, so that the files can be compared with the trace. Each
step is on the disk before it is reported as stored: one segment for each step.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.chunks import Delivery
from watchkeeper.model.clients.consumer.result_store import ReadPosition, StoreResult
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.results.segments import SegmentResults
from watchkeeper.real.results.sqlite import SqliteResults

DATABASE = "results.db"
SEGMENTS = "segments"


def identity(handed: Delivery) -> tuple[bytes, ...]:
    """The result of messages: their identities, if they have any."""
    return (
        (msgspec.json.encode(handed.message_range),) if handed.message_range is not None else ()
    )


class DatabaseStore:
    """One database for all members; a store with an outdated position is refused."""

    def __init__(self, folder: Path, group: str) -> None:
        self.results = SqliteResults(folder / DATABASE)
        self.group = group

    def has(self, partition: Partition) -> bool:
        """Whether this member may store results of a partition."""
        return True

    def take(self, partition: Partition) -> bool:
        """Acquire a partition; False as long as another process owns it."""
        return True

    def keep_only(self, partitions: Collection[Partition]) -> None:
        """Release all other partitions."""

    def position_of(self, effect: ReadPosition) -> int | None:
        """The position of the group."""
        return self.results.position_of(effect)

    def store(self, effect: StoreResult) -> bool:
        """Store results and position, or neither."""
        return self.results.store(effect)


class SegmentStore:
    """A folder for each partition, owned by one process at a time."""

    def __init__(self, folder: Path, group: str) -> None:
        self.home = folder / SEGMENTS / group
        self._held: dict[Partition, SegmentResults] = {}

    def has(self, partition: Partition) -> bool:
        """Whether this member may store results of a partition."""
        return partition in self._held

    def take(self, partition: Partition) -> bool:
        """Acquire a partition; False as long as another process owns it."""
        folder = self.home / partition.topic / partition.name
        try:
            self._held[partition] = SegmentResults(folder, together=1)
        except EnvironmentProblem:
            return False
        return True

    def keep_only(self, partitions: Collection[Partition]) -> None:
        """Release all other partitions."""
        for partition in [partition for partition in self._held if partition not in partitions]:
            self._held.pop(partition).close()

    def position_of(self, effect: ReadPosition) -> int | None:
        """The position of the group; None if this member does not own the partition."""
        held = self._held.get(effect.partition)
        return held.position_of(effect) if held is not None else None

    def store(self, effect: StoreResult) -> bool:
        """Store results and position, or neither; False for a partition of another member."""
        held = self._held.get(effect.partition)
        return held is not None and held.store(effect)


STORES: dict[str, type[DatabaseStore | SegmentStore]] = {
    "database": DatabaseStore,
    "segments": SegmentStore,
}
"""Name in a scenario -> the store."""
