"""What a controller knows of its cluster: a frozen value that lives for one reign.

Its maps have no order; every walk over them is sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from immutables import Map

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.controller.states import PartitionStatus, ReplicaStatus
from watchkeeper.model.registry.payloads import PartitionState, TopicAssignment


class Replica(NamedTuple):
    """A replica of a partition."""

    partition: Partition
    broker: int


class Leadership(NamedTuple):
    """The state of a partition as it was read or written last, and its znode's version."""

    state: PartitionState
    version: int


def place_of(partition: Partition) -> tuple[str, int]:
    """Return the place of a partition in the order of a controller's work."""
    return partition.topic, int(partition.name)


@dataclass(frozen=True, slots=True)
class Context:
    """The cluster, as a controller knows it."""

    epoch: int
    """With which it signs the states that it writes."""
    fence: int
    """The version of `/controller_epoch` that belongs to the epoch."""
    live: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()
    assignment: Map[Partition, tuple[int, ...]] = field(default_factory=Map)
    leadership: Map[Partition, Leadership] = field(default_factory=Map)
    partitions: Map[Partition, PartitionStatus] = field(default_factory=Map)
    replicas: Map[Replica, ReplicaStatus] = field(default_factory=Map)

    def assigned(self) -> list[Partition]:
        """Return every partition that has replicas, in order."""
        return sorted(self.assignment, key=place_of)

    def known(self) -> list[Partition]:
        """Return every partition that has a state in memory, in order."""
        return sorted(self.partitions, key=place_of)

    def with_status(self, *statuses: PartitionStatus) -> list[Partition]:
        """Return the partitions in these states, in order."""
        return [one for one in self.known() if self.partitions[one] in statuses]

    def led_by(self, brokers: Iterable[int]) -> list[Partition]:
        """Return the partitions whose known leader is one of these brokers, in order."""
        leaders = tuple(brokers)
        led = [key for key, known in self.leadership.items() if known.state.leader in leaders]
        return sorted(led, key=place_of)

    def replicas_on(self, brokers: Iterable[int]) -> list[Replica]:
        """Return the assigned replicas on these brokers, in order."""
        homes = tuple(brokers)
        return [
            replica for replica in self.replicas_of(self.assigned()) if replica.broker in homes
        ]

    def replicas_of(self, partitions: Iterable[Partition]) -> list[Replica]:
        """Return the replicas of these partitions, in order."""
        return [
            Replica(partition, broker)
            for partition in partitions
            for broker in self.assignment.get(partition, ())
        ]

    def with_assignment(self, topic: str, assignment: TopicAssignment) -> Context:
        """Return a context that knows the replicas of a topic's new partitions too.

        Other replicas of a known partition are ignored, as in 0.8.2.2.
        """
        added = {
            partition: replicas
            for partition, replicas in partitions_in(topic, assignment)
            if partition not in self.assignment
        }
        return replace(self, assignment=self.assignment.update(added))


def partitions_in(
    topic: str, assignment: TopicAssignment
) -> Iterator[tuple[Partition, tuple[int, ...]]]:
    """Yield each partition of a topic with its replicas."""
    for index, replicas in assignment.replicas:
        yield Partition(topic, str(index)), replicas
