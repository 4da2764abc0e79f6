"""Brokers of this project that replicate and elect a controller, on a ZooKeeper that runs."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from bench.interop_clients.broker import COMMAND, HOME
from bench.interop_clients.kafka_cluster import connected
from bench.interop_clients.tools.topic_state import until, until_whole
from kazoo.client import KazooClient

from watchkeeper.real.zookeepers.ensemble import Ensemble

SCENARIO = """name: own-controller
about: Brokers of this project, for tools of Kafka.
clusters:
  main:
    brokers: 3
    layout: "0.8"
    leaders: controller
    unclean_leader_election: false
    replication: {leader_rebalance: never}
    topics: {first: {partitions: 1, replicas: 3}}
timeline: []
settle: 1h
"""
END_S = 60.0


class OwnCluster:
    """A live run, which is interrupted at the end."""

    def __init__(self, folder: Path, ensemble: Ensemble, variant: str) -> None:
        self._folder = folder
        self._ensemble = ensemble
        self._chroot = f"/own-{variant}"
        self._variant = variant
        self._process: subprocess.Popen[bytes] | None = None
        self.zookeeper = ""
        """HOSTS/chroot of the cluster, once it has started."""

    def start(self) -> None:
        """Start the run, and wait until its controller has elected a leader."""
        self._folder.mkdir()
        scenario, log = self._folder / "own.yaml", self._folder / "run.log"
        scenario.write_text(SCENARIO)
        hosts = self._ensemble.hosts
        where = ("--world", "live", "--zookeeper", f"{hosts}{self._chroot}")
        options = ("--variant", self._variant, "--no-pictures", "--out", str(self._folder))
        with connected(hosts) as client:
            client.ensure_path(self._chroot)
            with log.open("wb") as said:
                self._process = subprocess.Popen(
                    [*COMMAND, "run", str(scenario), *where, *options],
                    stdout=said,
                    stderr=said,
                    env={**os.environ, "PYTHONPATH": str(HOME)},
                )
            until(lambda: self._roots(client), bool, "the run")
            [root] = self._roots(client)
        self.zookeeper = f"{hosts}{self._chroot}/{root}"
        with connected(self.zookeeper) as client:
            until_whole(client, "first", 1)

    def _roots(self, client: KazooClient) -> list[str]:
        """The znodes of live runs in the chroot."""
        if self._process is None or self._process.poll() is not None:
            raise AssertionError(f"the run has ended: {(self._folder / 'run.log').read_text()}")
        found: list[str] = client.get_children(self._chroot)
        return found

    def end(self) -> None:
        """Interrupt the run, and wait until its processes have ended."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(END_S)
            self._process = None
