"""The hosts of a cluster whose brokers store messages, and the processes on them."""

from __future__ import annotations

from collections.abc import Callable, Collection

from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import BrokerPlan, ClusterPlan, balancer
from watchkeeper.model.registry.paths import partition_07
from watchkeeper.sim.brokers.broker import Announced, Broker, BrokerHost
from watchkeeper.sim.brokers.rate_log import Logs
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.rpc import Calls
from watchkeeper.sim.storage.filesystem import FileSystem


class Hosts:
    """What stays of a cluster's brokers while their processes come and go."""

    def __init__(
        self,
        plan: ClusterPlan,
        calls: Calls,
        logs: Logs,
        disks: dict[int, dict[str, int]],
        deleted: dict[str, dict[str, None]],
    ) -> None:
        assert plan.storage is not None, "there are hosts where brokers store messages"
        self.plan = plan
        self.storage = plan.storage
        self.calls = calls
        self.logs = logs
        self.disks = disks
        self.deleted = deleted
        self.by_node: dict[str, BrokerHost] = {}

    def host_of(self, node: str) -> BrokerHost:
        """The machine of a broker."""
        if node not in self.by_node:
            self.by_node[node] = BrokerHost(node, self.storage, self.calls)
        return self.by_node[node]

    def start(
        self,
        node: Node,
        plan: BrokerPlan,
        ready: Callable[[], object],
        failed: Callable[[str], object],
    ) -> None:
        """Start a broker's process; it is ready when its logs are open and it listens."""
        settings = self.storage.settings_with(self.disks.get(plan.broker_id, {}))
        announced = Announced(plan.broker_id, f"{plan.host}:{plan.port}", settings)
        broker = Broker(node, self.host_of(plan.node), announced)
        broker.deleted = self.deleted.setdefault(plan.node, {})
        broker.on_ready = ready
        broker.on_failed = failed
        broker.on_topic = lambda topic: self._appeared(node, plan.broker_id, topic)
        self.calls.deal_out(balancer(self.plan.name), announced.address)
        broker.start()

    def _appeared(self, node: Node, broker_id: int, topic: str) -> None:
        """Messages of a topic have come that this broker did not have."""
        counts = self.disks.setdefault(broker_id, {})
        if topic not in counts:
            counts[topic] = self.storage.settings.of(topic).partitions
            new = [partition_07(topic, broker_id, index) for index in range(counts[topic])]
            self.logs.add(node.name, new)

    # --- topics ------------------------------------------------------------------------

    def grow(self, node: str, topics: Collection[str]) -> None:
        """Tell a broker's process how many partitions these topics have now."""
        broker = self.host_of(node).broker
        if broker is not None:
            counts = self.disks.get(broker.announced.broker_id, {})
            for topic in sorted(topics):
                broker.logs.set_partitions(topic, counts.get(topic))

    def delete(self, node: str, topic: str) -> None:
        """Let a broker's process delete the logs of a topic."""
        broker = self.host_of(node).broker
        if broker is not None:
            broker.delete_topic(topic)

    def files_of(self, node: str) -> FileSystem:
        """The file system of a broker's host."""
        return self.host_of(node).storage.files

    # --- the end of a process ----------------------------------------------------------

    def close(self, node: str, then: Callable[[], None]) -> None:
        """Let a broker that is to end close its logs first."""
        broker = self.host_of(node).broker
        if broker is None:
            then()
        else:
            broker.close(then)

    def end(self, node: str, *, effect: FaultEffect | None = None) -> None:
        """A broker's process is gone; with an `effect` its host is lost as well."""
        host = self.host_of(node)
        if host.broker is not None:
            host.broker.end(is_host_lost=effect is not None)
        if effect is not None:
            lost = host.lose_power()
            effect.add("bytes lost", sum(loss.lost_bytes for loss in lost))
            effect.add("files torn", sum(1 for loss in lost if loss.zero_bytes))
