"""A cluster of a live run: its ZooKeeper, the proxy in front of it, and its data plane."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from model.asks import Partition
from model.payloads import PartitionState
from model.plan import ClusterPlan
from model.registry import BadPayload, partition_state
from real.dataplane import DataPlane, Say
from real.ensemble import Ensemble
from real.proxy import Proxy
from real.settings import Settings

ROOT = "/watchkeeper"
"""Everything that a run creates stands below this znode."""
LEADERS_WITHIN_S = 0.5
"""How long reading the leaders may take."""


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

    def stop(self) -> None:
        """End every server, and leave nothing."""
        self.operator.stop()
        self.operator.close()
        self.proxy.stop()
        self.ensemble.stop()


def leaders_of(cluster: Cluster) -> dict[str, int] | None:
    """0.8: who leads each partition, by the registry; None while it cannot be read.

    Whoever runs the world must not wait for ZooKeeper: the timeline would stand still, and
    with it what is to start the servers again.
    """
    if not cluster.operator.connected:
        return None
    ends = monotonic() + LEADERS_WITHIN_S
    partitions = [
        Partition(topic, str(index))
        for topic, homes in cluster.data.homes.items()
        for index in homes
    ]
    asked = [cluster.operator.get_async(f"{ROOT}{partition_state(one)}") for one in partitions]
    leaders: dict[str, int] = {}
    for partition, answer in zip(partitions, asked, strict=True):
        try:
            data, _ = answer.get(timeout=max(ends - monotonic(), 0))
            leaders[str(partition)] = PartitionState.decode(
                partition_state(partition), data
            ).leader
        except (NoNodeError, BadPayload):
            continue
        except (KazooException, KazooTimeoutError):
            return None
    return leaders
