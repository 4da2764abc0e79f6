"""The data plane of a cluster, kept by whoever runs the world: who hosts what, and how fast.

The same rules as in the simulation: producers write to all partitions alike whose broker
is up, and a log goes on where it stood when its broker comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from model.asks import Partition
from model.hosting import disks_of, partitions_on
from model.load import Load
from model.payloads import TopicAssignment
from model.plan import BrokerPlan, ClusterPlan
from model.registry import partition_07
from real.cluster import ClusterFile, ClusterState, LogState

Say = Callable[[str, str, Partition], None]
"""Called with a broker's node, `begins` or `ceases`, and the partition."""


class Up(NamedTuple):
    """A broker that is up: its id, the address that it announces, and what it serves."""

    broker_id: int
    address: str
    partitions: dict[Partition, None]


class DataPlane:
    """What is served, and what is written to it."""

    def __init__(
        self, plan: ClusterPlan, path: Path, now_us: Callable[[], int], say: Say
    ) -> None:
        self.plan = plan
        self.file = ClusterFile(path)
        self.now_us = now_us
        self.say = say
        self.disks = disks_of(plan)
        """What outlives the processes of brokers."""
        self.homes = {topic.name: TopicAssignment(topic.replicas) for topic in plan.topics}
        """0.8: topic -> which brokers hold which partition."""
        self.leaders: dict[str, int] = {}
        """0.8: partition -> who leads it, by the registry."""
        self._loads: dict[str, list[Load]] = {}
        self._up: dict[str, Up] = {}
        self._logs: dict[Partition, LogState] = {}
        self._listening: dict[str, str] = {}
        """Address that is or was announced -> where its broker listens on this machine."""
        self._write()

    # --- brokers -----------------------------------------------------------------------

    def partitions_of(self, broker_id: int) -> list[Partition]:
        """The partitions that a broker has on its disk."""
        return partitions_on(broker_id, self.plan.layout, self.disks, self.homes)

    def open(self, plan: BrokerPlan, listens_at: str) -> None:
        """A broker is up and serves what is on its disk."""
        address = f"{plan.host}:{plan.port}"
        if all(up.address != address for up in self._up.values()):
            self._listening[address] = listens_at
        self._up[plan.node] = Up(plan.broker_id, address, {})
        self.add(plan.node, self.partitions_of(plan.broker_id))

    def close(self, node: str) -> None:
        """A broker's process is gone."""
        if node in self._up:
            for partition in self._up.pop(node).partitions:
                self.say(node, "ceases", partition)
            self._spread()

    def appear(self, node: str, plan: BrokerPlan, topic: str, count: int) -> None:
        """Messages of a topic have come that this broker may not have had."""
        counts = self.disks.setdefault(plan.broker_id, {})
        if topic not in counts and node in self._up:
            counts[topic] = count
            self.add(node, [partition_07(topic, plan.broker_id, at) for at in range(count)])

    def add(self, node: str, partitions: Iterable[Partition]) -> None:
        """A broker that is up serves more partitions."""
        serving = self._up[node].partitions
        for partition in partitions:
            if partition not in serving:
                serving[partition] = None
                self._logs.setdefault(partition, LogState())
                self.say(node, "begins", partition)
        self._spread()

    def remove(self, node: str, topic: str) -> None:
        """A topic is deleted from the disk of a broker that is up."""
        serving = self._up[node].partitions
        for partition in [one for one in serving if one.topic == topic]:
            del serving[partition]
            self.say(node, "ceases", partition)
        self._spread()

    def lead(self, leaders: dict[str, int]) -> None:
        """0.8: who leads which partition now, by the registry."""
        if leaders != self.leaders:
            self.leaders = leaders
            self._write()

    # --- messages ----------------------------------------------------------------------

    def produce(self, topic: str, load: Load) -> None:
        """Write to a topic from now on, on top of what is written already."""
        self._loads.setdefault(topic, []).append(load)
        self._spread()

    def cease(self, topic: str, load: Load) -> None:
        """Cease what `produce` began."""
        self._loads[topic].remove(load)
        self._spread()

    def _spread(self) -> None:
        """Producers write to all partitions alike whose broker is up."""
        now = self.now_us()
        served = {partition for up in self._up.values() for partition in up.partitions}
        number = Counter(partition.topic for partition in served)
        for topic, loads in self._loads.items():
            for load in loads if number[topic] else ():
                load.flows()
        for partition, log in self._logs.items():
            loads = self._loads.get(partition.topic, [])
            rate = sum(load.rate_per_1000_s for load in loads)
            each = rate // number[partition.topic] if partition in served else 0
            size = max((load.size_bytes for load in loads), default=0)
            self._logs[partition] = log.at_rate(each, size, now)
        self._write()

    def _write(self) -> None:
        up = self._up.items()
        self.file.write(
            ClusterState(
                logs={str(partition): log for partition, log in self._logs.items()},
                hosts={node: [*map(str, one.partitions)] for node, one in up},
                leaders=self.leaders,
                addresses={one.broker_id: one.address for _, one in reversed(up)},
                listening=self._listening,
            )
        )
