"""Which brokers live and who leads what, as one broker sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.replication.settings import AutoCreation
from watchkeeper.model.wire_08.metadata import NO_LEADER, BrokerEndpoint


@dataclass(frozen=True, slots=True)
class PartitionView:
    """Who replicates a partition, who leads it, and which replicas are in sync."""

    replicas: tuple[int, ...]
    leader: int = NO_LEADER
    isr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The brokers that are alive, and the partitions of each topic, by number."""

    brokers: Mapping[int, BrokerEndpoint] = field(default_factory=dict)
    topics: Mapping[str, Mapping[int, PartitionView]] = field(default_factory=dict)

    def error_at(self, broker: int, topic: str, partition: int) -> PartitionError:
        """Return why a broker does not answer for a partition; `NONE` if it leads it."""
        view = self.topics.get(topic, {}).get(partition)
        if view is None:
            return PartitionError.UNKNOWN_TOPIC_OR_PARTITION
        if view.leader != broker:
            return PartitionError.NOT_LEADER_FOR_PARTITION
        return PartitionError.NONE


class Cluster(Protocol):
    """Where a broker learns what it leads."""

    view: ClusterView

    async def refresh(self) -> None:
        """Bring the view up to date. A registry that cannot be read leaves it as it is."""

    async def create(self, topic: str, how: AutoCreation | None = None) -> None:
        """Create a topic that a client wants, unless it exists; None: as the settings say."""


class SingleBroker:
    """A cluster of one broker without a ZooKeeper: it leads all that it has."""

    def __init__(
        self,
        me: BrokerEndpoint,
        partitions: int,
        existing: Callable[[], Mapping[str, int]],
        made: Callable[[str, int], Awaitable[object]],
    ) -> None:
        """`existing` returns the topics on the disk with their numbers of partitions.

        `made` creates the log of a partition of a new topic, of which there are `partitions`.
        """
        self._me = me
        self._partitions = partitions
        self._existing = existing
        self._made = made
        self.view = ClusterView({me.broker: me})

    async def refresh(self) -> None:
        """Look at the logs."""
        own = PartitionView((self._me.broker,), self._me.broker, (self._me.broker,))
        self.view = ClusterView(
            self.view.brokers,
            {
                topic: dict.fromkeys(range(count), own)
                for topic, count in self._existing().items()
            },
        )

    async def create(self, topic: str, how: AutoCreation | None = None) -> None:
        """Create the logs of a topic, also those that a process did not come to create."""
        for index in range(self._partitions if how is None else how.partitions):
            if index not in self.view.topics.get(topic, {}):
                await self._made(topic, index)
        await self.refresh()
