"""A cluster of a live run: its ZooKeeper, the proxy in front of it, and its data plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.operations import Delete, SetData
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.model.registry.payloads import NO_LEADER, TopicAssignment
from watchkeeper.model.trace.trace import Row
from watchkeeper.real.access import Access
from watchkeeper.real.faults.world import ServerTarget, targets_of
from watchkeeper.real.proxy.links import Links
from watchkeeper.real.proxy.proxy import Proxy
from watchkeeper.real.proxy.tap import ServerAt
from watchkeeper.real.world.data_plane import DataPlane, OnHosting
from watchkeeper.real.world.embedded import EmbeddedZooKeeper
from watchkeeper.real.world.external import ExternalZooKeeper
from watchkeeper.real.world.hosts import hosts_of
from watchkeeper.real.world.leaders import ControllerPoll, Leaders
from watchkeeper.real.world.operator import Operator
from watchkeeper.real.zookeepers.implementation import Implementation


class Cluster:
    """One cluster at run time."""

    def __init__(
        self,
        plan: ClusterPlan,
        prefix: str,
        folder: Path,
        now_us: Callable[[], int],
        write_hosting: OnHosting,
        zookeeper: Access | Implementation = Implementation.PYTHON,
    ) -> None:
        """Start a ZooKeeper of this implementation, or connect to the external one there."""
        self.plan = plan
        self.prefix = prefix
        self.administrator = plan.administrator(prefix)
        self.service = _service(plan, f"{prefix}zookeeper", zookeeper, folder.parent)
        self.operator = self.service.start()
        leader = self.service.leader
        self.leader = "" if leader is None else leader.name
        self.proxy = Proxy(self.service.addresses, tls=self.service.tls, tap=self.service.tap)
        self.proxy.start()
        folder.mkdir()
        self.data = DataPlane(plan, folder / "cluster.json", now_us, write_hosting)
        self.links: Links | None = None
        """The links between its brokers; None if no action cuts them."""
        self.leaders = Leaders(self.operator, self.service.root, self.data)
        self.controller = ControllerPoll(self.operator, self.service.root)
        self.by_hand = Operator(self.operator, self.service.root)
        self.deleted: dict[str, dict[str, None]] = {}
        """Broker -> the deleted topics that are still on its disk."""
        self.hosts = hosts_of(plan, folder, self.data.disks, self.deleted)
        """Where brokers store messages; None where a log is only a rate."""

    # --- what the timeline may touch: watchkeeper.model.nemesis.world ------------------

    @property
    def servers(self) -> list[ServerTarget]:
        """The servers of its ensemble, as faults affect them."""
        return targets_of(self.service.servers, self.service.faults)

    @property
    def controller_id(self) -> int | None:
        """The broker id in `/controller`, read now if ZooKeeper answers at once."""
        self.controller.poll()
        return self.controller.broker_id

    def leader_of(self, partition: Partition) -> int | None:
        """The broker id that leads a partition, as the registry said last."""
        self.leaders.follow(partition)
        self.leaders.poll()
        leader = self.data.leaders.get(str(partition), NO_LEADER)
        return None if leader == NO_LEADER else leader

    @property
    def disks(self) -> dict[int, dict[str, int]]:
        """0.7: broker -> topic -> partitions it has on disk."""
        return self.data.disks

    @property
    def homes(self) -> dict[str, TopicAssignment]:
        """0.8: topic -> which brokers hold which partition."""
        return self.data.homes

    def operate(self, operation: Delete | SetData, done: Callable[[str], object]) -> None:
        """Change a znode as an operator; a set creates what is not there."""
        self.by_hand.operate(operation, done)

    def undo_of(self, path: str) -> Delete | SetData:
        """The write that brings a znode back to its state of now: its data, or its absence."""
        return self.by_hand.undo_of(path)

    def serve(self, broker: str, partitions: list[Partition]) -> None:
        """Let a broker that is up serve more partitions."""
        self.data.add(broker, partitions)

    def remove(self, broker: str, topic: str) -> None:
        """Let a broker that is up serve nothing of a topic any more."""
        self.data.remove(broker, topic)

    def link(self, listening: Mapping[str, str]) -> None:
        """Let brokers, by their addresses on this machine, reach one another over links."""
        self.links = Links(listening)
        self.data.link(self.links.routes)

    # --- the run -----------------------------------------------------------------------

    def events(self, begin_ns: int, group_of: Mapping[str, str]) -> Iterator[Row]:
        """The watch events that servers have sent to members, as rows of the trace."""
        service = self.service
        return service.tap.rows(service.root, begin_ns, group_of, service.server_of)

    def servers_at(self, begin_ns: int) -> Iterator[ServerAt]:
        """Which server each member connected to, and when."""
        return self.service.tap.servers_at(begin_ns, self.service.server_of)

    def stop(self) -> None:
        """Stop the proxy and the service, and remove what the run created."""
        self.proxy.stop()
        if self.links is not None:
            self.links.stop()
        self.service.stop()


def _service(
    plan: ClusterPlan, name: str, zookeeper: Access | Implementation, folder: Path
) -> EmbeddedZooKeeper | ExternalZooKeeper:
    if isinstance(zookeeper, Access):
        return ExternalZooKeeper(zookeeper, name)
    tick_ms = plan.zookeeper.tick_us // 1000
    return EmbeddedZooKeeper(zookeeper, plan.zookeeper.servers, tick_ms, name, folder)
