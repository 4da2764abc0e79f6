"""A cluster of a live run: its ZooKeeper, the proxy in front of it, and its data plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kazoo.exceptions import KazooException

from model.asks import Partition
from model.payloads import PartitionState
from model.plan import ClusterPlan
from model.registry import BadPayload, partition_state
from model.trace import Row
from real.access import Access
from real.dataplane import DataPlane, Say
from real.embedded import Embedded
from real.existing import Existing
from real.proxy import Proxy
from real.tap import Place


class Cluster:
    """One cluster at run time."""

    def __init__(
        self,
        plan: ClusterPlan,
        prefix: str,
        folder: Path,
        now_us: Callable[[], int],
        say_hosting: Say,
        access: Access | None = None,
    ) -> None:
        """Start a ZooKeeper, or go to the one that runs at `access`."""
        self.plan = plan
        self.prefix = prefix
        self.service = _service(plan, f"{prefix}zookeeper", access)
        self.operator = self.service.start()
        leader = self.service.leader
        self.leader = "" if leader is None else leader.name
        self.proxy = Proxy(self.service.addresses, tls=self.service.tls, tap=self.service.tap)
        self.proxy.start()
        folder.mkdir()
        self.data = DataPlane(plan, folder / "cluster.json", now_us, say_hosting)

    def events(self, begin_ns: int, group_of: Mapping[str, str]) -> Iterator[Row]:
        """What the servers have told members of watches that fired."""
        service = self.service
        return service.tap.rows(service.root, begin_ns, group_of, service.server_of)

    def places(self, begin_ns: int) -> Iterator[Place]:
        """Which server let which member in, and when."""
        return self.service.tap.places(begin_ns, self.service.server_of)

    def stop(self) -> None:
        """End what is ours, and leave nothing."""
        self.proxy.stop()
        self.service.stop()


def _service(plan: ClusterPlan, name: str, access: Access | None) -> Embedded | Existing:
    if access is not None:
        return Existing(access, name)
    return Embedded(plan.zookeeper.servers, plan.zookeeper.tick_us // 1000, name)


def leaders_of(cluster: Cluster) -> dict[str, int]:
    """0.8: who leads each partition, by the registry; what cannot be read is left out."""
    leaders: dict[str, int] = {}
    for topic, homes in cluster.data.homes.items():
        for index in homes:
            partition = Partition(topic, str(index))
            path = partition_state(partition)
            try:
                data, _ = cluster.operator.get(f"{cluster.service.root}{path}")
                leaders[str(partition)] = PartitionState.decode(path, data).leader
            except (KazooException, BadPayload):
                continue
    return leaders
