"""What a client of 0.8 knows of who leads which partition, and how it finds out.

Any broker answers for all partitions, with what it remembers: it may be out of date.
Kafka 0.8.2.2: TopicMetadataRequest, `metadata.broker.list`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.rpc import Call, CallError
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.requests import DescribeTopic, TopicMetadata

TIMEOUT_MS = 10_000
"""How long a broker may take to answer."""


@dataclass(slots=True)
class LeaderTable:
    """The leaders that one client knows."""

    brokers: Sequence[str]
    """The addresses of some brokers."""
    _leaders: dict[Partition, int] = field(default_factory=dict)
    _addresses: dict[int, str] = field(default_factory=dict)
    _next: int = 0

    def knows(self, partition: Partition) -> bool:
        """Whether a broker has said who leads a partition, or that none does."""
        return partition in self._leaders

    def address_of(self, partition: Partition) -> str:
        """Return the address of the leader; empty if none is known."""
        return self._addresses.get(self._leaders.get(partition, NO_LEADER), "")

    def partitions_of(self, topic: str) -> list[Partition]:
        """Return the partitions of a topic that a broker has named, in their order."""
        known = (partition for partition in self._leaders if partition.topic == topic)
        return sorted(known, key=lambda partition: int(partition.name))

    def forget(self, partition: Partition) -> None:
        """Do not believe any more what was said of a partition."""
        self._leaders.pop(partition, None)

    async def refresh(self, topic: str) -> None:
        """Ask the next broker that answers who leads the partitions of a topic."""
        for _ in self.brokers:
            address = self.brokers[self._next % len(self.brokers)]
            self._next += 1
            try:
                found: TopicMetadata = await Call(address, DescribeTopic(topic), TIMEOUT_MS)
            except CallError:
                continue
            self._leaders.update(found.leaders)
            self._addresses.update(found.alive)
            return
