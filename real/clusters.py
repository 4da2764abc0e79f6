"""A cluster of a live run: its ZooKeeper, the proxy in front of it, and its data plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from model.plan import ClusterPlan
from model.trace import Row
from real.access import Access
from real.dataplane import DataPlane, Say
from real.embedded import Embedded
from real.existing import Existing
from real.leaders import Leaders
from real.proxy import Proxy
from real.sites import Sites
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
        self.service = _service(plan, f"{prefix}zookeeper", access, folder.parent)
        self.operator = self.service.start()
        leader = self.service.leader
        self.leader = "" if leader is None else leader.name
        self.proxy = Proxy(self.service.addresses, tls=self.service.tls, tap=self.service.tap)
        self.proxy.start()
        folder.mkdir()
        self.data = DataPlane(plan, folder / "cluster.json", now_us, say_hosting)
        self.leaders = Leaders(self.operator, self.service.root, self.data)
        self.sites = Sites(plan, folder, self.data.disks) if plan.storage is not None else None
        """Where brokers store messages; None where a log is but a rate."""

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


def _service(
    plan: ClusterPlan, name: str, access: Access | None, folder: Path
) -> Embedded | Existing:
    if access is not None:
        return Existing(access, name)
    return Embedded(plan.zookeeper.servers, plan.zookeeper.tick_us // 1000, name, folder)
