"""What a controller knows of its cluster: a frozen value that lives for one reign.

Its maps have no order; every walk over them is sorted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from immutables import Map

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.controller.state_machines.channel import Channel, Registration
from watchkeeper.model.controller.state_machines.states import PartitionStatus, ReplicaStatus
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.model.replication.registry import Leadership
from watchkeeper.model.replication.requests import DELETED, BrokerAddress, LeaderState

T = TypeVar("T")


class Replica(NamedTuple):
    """A replica of a partition."""

    partition: Partition
    broker: int


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
    registrations: Map[int, Registration] = field(default_factory=Map)
    """Of the brokers to which there is a channel; empty where no requests are sent."""
    topics: tuple[str, ...] = ()
    assignment: Map[Partition, tuple[int, ...]] = field(default_factory=Map)
    leadership: Map[Partition, Leadership] = field(default_factory=Map)
    partitions: Map[Partition, PartitionStatus] = field(default_factory=Map)
    replicas: Map[Replica, ReplicaStatus] = field(default_factory=Map)
    shutting_down: tuple[int, ...] = ()
    """Brokers that are about to leave: they are alive, and may not lead."""
    moves: Map[Partition, tuple[int, ...]] = field(default_factory=Map)
    """Partition that is being reassigned -> its target brokers."""
    deletions: tuple[str, ...] = ()
    """Topics that are to be deleted."""
    deletes: bool = True
    """Whether deletions go on; as shipped an error ends them until the next reign."""
    hidden: tuple[str, ...] = ()
    """Topics that stay, though the controller tells brokers that they are deleted."""
    takes_requests: bool = False
    """Whether it watches the requests of administrators."""

    def assigned(self) -> list[Partition]:
        """Return every partition that has replicas, in order."""
        return sorted(self.assignment, key=place_of)

    def partitions_of(self, *topics: str) -> list[Partition]:
        """Return the partitions of these topics that have replicas, in order."""
        return [one for one in self.assigned() if one.topic in topics]

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

    def addresses(self) -> tuple[BrokerAddress, ...]:
        """Return where each broker listens to which there is a channel, in order."""
        return tuple(
            BrokerAddress(broker, self.registrations[broker].address)
            for broker in sorted(self.registrations)
        )

    def channels(self) -> list[Channel]:
        """Return the channel to each broker that has one, in order."""
        known = self.registrations
        return [Channel(self.epoch, broker, known[broker]) for broker in sorted(known)]

    def said_of(self, partition: Partition) -> LeaderState | None:
        """Return what brokers learn of a partition; None if it has no known state."""
        known = self.leadership.get(partition)
        if known is None:
            return None
        replicas = self.assignment.get(partition, ())
        return LeaderState(partition, known.state, known.version, replicas)

    def hidden_states(self) -> list[LeaderState]:
        """Return what brokers learn of the partitions of hidden topics."""
        found = map(self.said_of, self.partitions_of(*self.hidden))
        return [
            said._replace(state=replace(said.state, leader=DELETED))
            for said in found
            if said is not None
        ]

    def without_partitions(self, gone: Iterable[Partition]) -> Context:
        """Return a context that has forgotten partitions."""
        lost = frozenset(gone)
        return replace(
            self,
            assignment=_without(self.assignment, lost),
            leadership=_without(self.leadership, lost),
            partitions=_without(self.partitions, lost),
            replicas=Map(
                {one: self.replicas[one] for one in self.replicas if one.partition not in lost}
            ),
        )

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


def _without(known: Map[Partition, T], lost: Collection[Partition]) -> Map[Partition, T]:
    for partition in lost:
        known = known.delete(partition) if partition in known else known
    return known
