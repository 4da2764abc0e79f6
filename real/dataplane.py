"""The data plane of a cluster, kept by whoever runs the world: who hosts what, and how fast.

The same rules as in the simulation: producers write to all partitions alike whose broker
is up, and a log goes on where it stood when its broker comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from model.asks import Partition
from model.plan import ClusterPlan
from model.registry import partition_07
from real.cluster import ClusterFile, ClusterState, LogState

Say = Callable[[str, str, Partition], None]
"""Called with a broker's node, `begins` or `ceases`, and the partition."""


class DataPlane:
    """What is served, and what is written to it."""

    def __init__(
        self, plan: ClusterPlan, path: Path, now_us: Callable[[], int], say: Say
    ) -> None:
        self.plan = plan
        self.file = ClusterFile(path)
        self.now_us = now_us
        self.say = say
        self.disks: dict[int, dict[str, int]] = {}
        """0.7: broker -> topic -> partitions it has on disk; it outlives the process."""
        for topic in plan.topics:
            for broker_id, count in topic.by_broker:
                self.disks.setdefault(broker_id, {})[topic.name] = count
        self.homes = {topic.name: dict(topic.replicas) for topic in plan.topics}
        """0.8: topic -> partition -> brokers."""
        self.loads: dict[str, list[tuple[int, int]]] = {}
        self._up: dict[int, tuple[str, str]] = {}
        """Broker that is up -> its node and its address."""
        self._logs: dict[Partition, LogState] = {}
        self._hosts: dict[int, list[Partition]] = {}
        self._leaders: dict[str, int] = {}
        self._write()

    def partitions_of(self, broker_id: int) -> list[Partition]:
        """The partitions that a broker has on its disk."""
        if self.plan.layout == "0.7":
            return [
                partition_07(topic, broker_id, index)
                for topic, count in sorted(self.disks.get(broker_id, {}).items())
                for index in range(count)
            ]
        return [
            Partition(topic, str(index))
            for topic, homes in sorted(self.homes.items())
            for index, brokers in sorted(homes.items())
            if broker_id in brokers
        ]

    def open(self, broker_id: int, node: str, address: str) -> None:
        """A broker is up and serves what is on its disk."""
        self._up[broker_id] = (node, address)
        self._hosts[broker_id] = self.partitions_of(broker_id)
        for partition in self._hosts[broker_id]:
            self._logs.setdefault(partition, LogState())
            self.say(node, "begins", partition)
        self._spread()

    def close(self, node: str) -> None:
        """A broker's process is gone."""
        for broker_id, (name, _) in list(self._up.items()):
            if name == node:
                del self._up[broker_id]
                for partition in self._hosts.pop(broker_id):
                    self.say(node, "ceases", partition)
        self._spread()

    def produce(self, topic: str, rate_per_1000_s: int, size_bytes: int) -> None:
        """Write to a topic from now on, on top of what is written already."""
        self.loads.setdefault(topic, []).append((rate_per_1000_s, size_bytes))
        self._spread()

    def cease(self, topic: str, rate_per_1000_s: int, size_bytes: int) -> None:
        """Cease what `produce` began."""
        self.loads[topic].remove((rate_per_1000_s, size_bytes))
        self._spread()

    def lead(self, leaders: dict[str, int]) -> None:
        """0.8: who leads which partition now, by the registry."""
        if leaders != self._leaders:
            self._leaders = leaders
            self._write()

    def _spread(self) -> None:
        now = self.now_us()
        up = [partition for hosted in self._hosts.values() for partition in hosted]
        for partition, log in self._logs.items():
            loads = self.loads.get(partition.topic, [])
            number = len({one for one in up if one.topic == partition.topic})
            rate = sum(rate for rate, _ in loads) // number if partition in up else 0
            size = max((size for _, size in loads), default=0)
            self._logs[partition] = log.at_rate(rate, size, now)
        self._write()

    def _write(self) -> None:
        self.file.write(
            ClusterState(
                logs={str(partition): log for partition, log in self._logs.items()},
                hosts={broker: [*map(str, hosted)] for broker, hosted in self._hosts.items()},
                leaders=self._leaders,
                addresses={broker: address for broker, (_, address) in self._up.items()},
            )
        )
