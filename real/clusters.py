"""A cluster of a live run: its ZooKeeper, the proxy in front of it, and its data plane."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from kazoo.client import KazooClient

from model.plan import ClusterPlan
from real.dataplane import DataPlane, Say
from real.ensemble import Ensemble
from real.leaders import Leaders
from real.proxy import Proxy
from real.settings import Settings

ROOT = "/watchkeeper"
"""Everything that a run creates stands below this znode."""


class Cluster:
    """One cluster at run time."""

    def __init__(
        self,
        plan: ClusterPlan,
        prefix: str,
        folder: Path,
        now_us: Callable[[], int],
        say_hosting: Say,
    ) -> None:
        self.plan = plan
        self.prefix = prefix
        tick_ms = plan.zookeeper.tick_us // 1000
        self.ensemble = Ensemble(
            plan.zookeeper.servers,
            settings=Settings(tick_ms=tick_ms),
            name=f"{self.prefix}zookeeper",
        )
        self.ensemble.start()
        logger = logging.getLogger("watchkeeper.kazoo")
        logger.setLevel(logging.CRITICAL)
        timeout_s = 20 * tick_ms / 1000
        self.operator = KazooClient(self.ensemble.hosts, timeout=timeout_s, logger=logger)
        self.operator.start()
        self.operator.ensure_path(ROOT)
        self.leader = self.ensemble.wait_for_leader().name
        self.proxy = Proxy([server.address for server in self.ensemble.servers])
        self.proxy.start()
        folder.mkdir()
        self.data = DataPlane(plan, folder / "cluster.json", now_us, say_hosting)
        self.leaders = Leaders(self.operator, ROOT, self.data)

    def stop(self) -> None:
        """End every server, and leave nothing."""
        self.operator.stop()
        self.operator.close()
        self.proxy.stop()
        self.ensemble.stop()
