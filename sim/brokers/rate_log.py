"""The messages of a cluster: how many each partition holds, and who serves them.

In this slice a log is a rate. Messages are written at so many a second, and the end of a
log follows from the time; nothing is stored. Which broker serves a partition is the truth
of the world, not what the registry says: in the 0.7 layout the broker in the partition's
name, in the 0.8 layout the leader that the registry names.
"""

from __future__ import annotations

from collections.abc import Iterable

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.plan.plan import BrokerPlan
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload, Layout
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.zookeeper.ensemble import Ensemble

PER_RATE_US = 1_000_000_000
"""The microseconds in the thousand seconds that rates are given for."""


class Log:
    """One partition: its end moves with time."""

    __slots__ = ("base", "rate_per_1000_s", "since_us", "size_bytes")

    def __init__(self) -> None:
        self.base = 0
        """The end when the rate was set, at `since_us`."""
        self.since_us = 0
        self.rate_per_1000_s = 0
        self.size_bytes = 0

    def end(self, now_us: int) -> int:
        """The offset of the next message to be written."""
        return self.base + self.rate_per_1000_s * (now_us - self.since_us) // PER_RATE_US

    def set_rate(self, rate_per_1000_s: int, now_us: int) -> None:
        """Write at another rate from now on."""
        self.base = self.end(now_us)
        self.since_us = now_us
        self.rate_per_1000_s = rate_per_1000_s


class Logs:
    """All partitions of one cluster."""

    def __init__(self, kernel: Kernel, ensemble: Ensemble, layout: Layout) -> None:
        self.kernel = kernel
        self.ensemble = ensemble
        self.layout = layout
        self.logs: dict[Partition, Log] = {}
        self.loads: dict[str, list[Load]] = {}
        self._serving: dict[Node, tuple[BrokerPlan, dict[Partition, None]]] = {}
        self._at: dict[str, list[tuple[Node, dict[Partition, None]]]] = {}
        """Address -> who listens there."""
        self._leaders: dict[Partition, tuple[object, int]] = {}
        self.changes = 0
        """How often it changed who serves what, or at which rate it is written."""

    # --- brokers -----------------------------------------------------------------------

    def open_broker(self, node: Node, plan: BrokerPlan, on_disk: Iterable[Partition]) -> None:
        """A broker's process begins to serve what is on its disk."""
        partitions: dict[Partition, None] = {}
        self._serving[node] = (plan, partitions)
        self._at.setdefault(f"{plan.host}:{plan.port}", []).append((node, partitions))
        for partition in on_disk:
            self._host(node, partition)
        self._spread_all(partitions)

    def add(self, broker: str, partitions: list[Partition]) -> None:
        """Let a broker that is up serve more partitions."""
        node = self._node_of(broker)
        if node is not None:
            new = [
                partition for partition in partitions if partition not in self._serving[node][1]
            ]
            for partition in new:
                self._host(node, partition)
            self._spread_all(new)

    def _node_of(self, broker: str) -> Node | None:
        return next((node for node in self._serving if node.name == broker), None)

    def _host(self, node: Node, partition: Partition) -> None:
        self.logs.setdefault(partition, Log())
        self._serving[node][1][partition] = None
        self._write(node, partition, "begins")

    def remove(self, broker: str, partition: Partition) -> None:
        """Delete a partition from the disk of a broker that is up."""
        node = self._node_of(broker)
        if node is not None and partition in self._serving[node][1]:
            del self._serving[node][1][partition]
            self._write(node, partition, "ceases")
            self._spread(partition.topic)

    def close_broker(self, node: Node) -> int:
        """A broker's process is gone; how many partitions it served."""
        if node not in self._serving:
            return 0
        plan, partitions = self._serving.pop(node)
        self._at[f"{plan.host}:{plan.port}"].remove((node, partitions))
        for partition in partitions:
            self._write(node, partition, "ceases")
        self._spread_all(partitions)
        return len(partitions)

    def _write(self, node: Node, partition: Partition, does: str) -> None:
        self.kernel.write(
            node.name,
            EventKind.HOSTING,
            {"does": does},
            topic=partition.topic,
            partition=partition.name,
        )

    # --- messages ----------------------------------------------------------------------

    def produce(self, topic: str, load: Load) -> None:
        """Write to a topic from now on, on top of what is written already."""
        self.loads.setdefault(topic, []).append(load)
        self._spread(topic)

    def cease(self, topic: str, load: Load) -> None:
        """Cease what `produce` began."""
        self.loads[topic].remove(load)
        self._spread(topic)

    def _spread_all(self, partitions: Iterable[Partition]) -> None:
        """Spread anew what is written to the topics of these partitions."""
        for topic in dict.fromkeys(partition.topic for partition in partitions):
            self._spread(topic)

    def _spread(self, topic: str) -> None:
        """Producers write to all partitions alike whose broker is up."""
        self.changes += 1
        self.ensemble.network.wake_fetchers()
        now = self.kernel.now_us
        up = self.partitions_up(topic)
        loads = self.loads.get(topic, [])
        rate = sum(load.rate_per_1000_s for load in loads)
        if up:
            for load in loads:
                load.flows()
        for partition, log in self.logs.items():
            if partition.topic == topic:
                log.set_rate(rate // len(up) if partition in up else 0, now)
                log.size_bytes = max((load.size_bytes for load in loads), default=0)

    def partitions_up(self, topic: str) -> dict[Partition, None]:
        """Return the partitions of a topic that a broker serves."""
        return {
            partition: None
            for _, partitions in self._serving.values()
            for partition in partitions
            if partition.topic == topic
        }

    def end(self, partition: Partition) -> int:
        """The end of a partition's log."""
        log = self.logs.get(partition)
        return log.end(self.kernel.now_us) if log is not None else 0

    # --- finding the broker ------------------------------------------------------------

    def broker_for(self, partition: Partition, address: str) -> Node | None:
        """The process that would answer a fetch: at this address, or leading (0.8)."""
        if self.layout == "0.8":
            leader = self.leader_of(partition)
            return next((n for n, (p, _) in self._serving.items() if p.broker_id == leader), None)
        for node, partitions in self._at.get(address, ()):
            if partition in partitions:
                return node
        return None

    def leader_of(self, partition: Partition) -> int:
        """The broker id that leads a partition in the registry; -1 without one."""
        path = paths.partition_state(partition)
        znode = self.ensemble.committed.nodes.get(path)
        if znode is None:
            return -1
        known = self._leaders.get(partition)
        if known is not None and known[0] is znode:
            return known[1]
        try:
            leader = PartitionState.decode(path, znode.data).leader
        except BadPayload:
            leader = -1
        self._leaders[partition] = (znode, leader)
        return leader
