"""The data plane of a cluster as the world keeps it: which broker serves what, at which rates.

The world's process changes it through this class. Every change is written to the data plane
file, in which the members read it (`watchkeeper.real.member.data_plane_file`). The rules are
those of the simulation: producers write evenly to all partitions whose broker is up, and a log
continues at its last end when its broker returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.nemesis.placement import disks_of, partitions_on
from watchkeeper.model.plan.plan import BrokerPlan, ClusterPlan
from watchkeeper.model.registry.paths import partition_07
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.real.member.data_plane_file import DataPlaneFile, DataPlaneState, LogState

OnHosting = Callable[[str, str, Partition], None]
"""Called with a broker's node, `begins` or `ceases`, and the partition."""


class Up(NamedTuple):
    """A running broker: its id, the address that it announces, and what it serves."""

    broker_id: int
    address: str
    partitions: dict[Partition, None]


class DataPlane:
    """The served partitions and the loads on them."""

    def __init__(
        self, plan: ClusterPlan, path: Path, now_us: Callable[[], int], on_hosting: OnHosting
    ) -> None:
        self.plan = plan
        self.file = DataPlaneFile(path)
        self.now_us = now_us
        self.on_hosting = on_hosting
        self.disks = disks_of(plan)
        """The topics on each broker's disk, which outlive its processes."""
        self.homes = {topic.name: TopicAssignment(topic.replicas) for topic in plan.topics}
        """0.8: topic -> the brokers of each partition's replicas."""
        self.leaders: dict[str, int] = {}
        """0.8: partition -> its leader, according to the registry."""
        self._loads: dict[str, list[Load]] = {}
        self._up: dict[str, Up] = {}
        self._logs: dict[Partition, LogState] = {}
        self._listening: dict[str, str] = {}
        """Announced address, present or past -> the address on this machine."""
        self._links: dict[str, dict[str, str]] = {}
        self._write()

    def link(self, routes: dict[str, dict[str, str]]) -> None:
        """Let brokers reach one another over these links."""
        self._links = routes
        self._write()

    # --- brokers -----------------------------------------------------------------------

    def partitions_of(self, broker_id: int) -> list[Partition]:
        """The partitions on a broker's disk."""
        return partitions_on(broker_id, self.plan.layout, self.disks, self.homes)

    def open(self, plan: BrokerPlan, listens_at: str) -> None:
        """A broker has started and serves what is on its disk."""
        address = f"{plan.host}:{plan.port}"
        if all(up.address != address for up in self._up.values()):
            self._listening[address] = listens_at
        self._up[plan.node] = Up(plan.broker_id, address, {})
        self.add(plan.node, self.partitions_of(plan.broker_id))

    def close(self, node: str) -> None:
        """A broker's process has ended."""
        if node in self._up:
            for partition in self._up.pop(node).partitions:
                self.on_hosting(node, "ceases", partition)
            self._spread()

    def appear(self, node: str, plan: BrokerPlan, topic: str, count: int) -> None:
        """A broker has received messages of a topic that may be new to it."""
        counts = self.disks.setdefault(plan.broker_id, {})
        if topic not in counts and node in self._up:
            counts[topic] = count
            self.add(node, [partition_07(topic, plan.broker_id, at) for at in range(count)])

    def add(self, node: str, partitions: Iterable[Partition]) -> None:
        """A running broker serves more partitions."""
        serving = self._up[node].partitions
        for partition in partitions:
            if partition not in serving:
                serving[partition] = None
                self._logs.setdefault(partition, LogState())
                self.on_hosting(node, "begins", partition)
        self._spread()

    def remove(self, node: str, topic: str) -> None:
        """A topic was deleted from the disk of a running broker."""
        serving = self._up[node].partitions
        for partition in [partition for partition in serving if partition.topic == topic]:
            del serving[partition]
            self.on_hosting(node, "ceases", partition)
        self._spread()

    def lead(self, leaders: dict[str, int]) -> None:
        """0.8: the current leaders, according to the registry."""
        if leaders != self.leaders:
            self.leaders = leaders
            self._write()

    # --- messages ----------------------------------------------------------------------

    def produce(self, topic: str, load: Load) -> None:
        """Add a load to a topic."""
        self._loads.setdefault(topic, []).append(load)
        self._spread()

    def cease(self, topic: str, load: Load) -> None:
        """Remove a load that `produce` added."""
        self._loads[topic].remove(load)
        self._spread()

    def _spread(self) -> None:
        """Distribute the loads evenly over the partitions whose broker is up."""
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
        # Reversed: if two running brokers announce one id, the address of the first one counts.
        up = self._up.items()
        self.file.write(
            DataPlaneState(
                logs={str(partition): log for partition, log in self._logs.items()},
                hosts={node: [*map(str, broker.partitions)] for node, broker in up},
                leaders=self.leaders,
                addresses={broker.broker_id: broker.address for _, broker in reversed(up)},
                listening=self._listening,
                links=self._links,
            )
        )
