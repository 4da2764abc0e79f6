"""An embedded ZooKeeper, Apache's or the one in Python: it starts and ends with a live run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kazoo.client import KazooClient

from watchkeeper.real.access import Access
from watchkeeper.real.client.plain_client import client_of
from watchkeeper.real.proxy.tap import Tap
from watchkeeper.real.trace.write_events import CommittedEvent
from watchkeeper.real.zookeeper.settings import Settings
from watchkeeper.real.zookeepers.committed import committed_by
from watchkeeper.real.zookeepers.ensemble import Server
from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of, faults_of

ROOT = "/watchkeeper"


class EmbeddedZooKeeper:
    """An ensemble of this run, and the operator's connection to it."""

    root = ROOT
    """The znode below which the run creates everything."""
    tls = None

    def __init__(
        self, implementation: Implementation, servers: int, tick_ms: int, name: str, folder: Path
    ) -> None:
        """`folder` is removed with the servers if this process is killed."""
        settings = Settings(tick_ms=tick_ms)
        self.ensemble = ensemble_of(
            implementation, servers, settings=settings, name=name, inside=folder, has_record=True
        )
        self.faults = faults_of(self.ensemble)
        self.tap = Tap()
        self.access = Access(self.ensemble.hosts)
        self.addresses = self.ensemble.addresses
        self.operator = client_of(self.access, timeout=20 * tick_ms / 1000)

    @property
    def servers(self) -> Sequence[Server]:
        """The servers of the ensemble."""
        return self.ensemble.servers

    @property
    def leader(self) -> Server | None:
        """The current leader."""
        return self.ensemble.leader

    @property
    def server_of(self) -> dict[str, str]:
        """Address -> the name of its server."""
        return {server.address: server.name for server in self.servers}

    def start(self) -> KazooClient:
        """Start the servers and return a connection for the world."""
        self.ensemble.start()
        try:
            self.operator.start()
            self.operator.ensure_path(self.root)
            self.ensemble.wait_for_leader()
        except BaseException:
            self.stop()
            raise
        return self.operator

    def committed(self, begin_ns: int) -> Iterator[CommittedEvent]:
        """The logged writes and session events, in order."""
        return committed_by(self.ensemble, self.root, begin_ns)

    def stop(self) -> None:
        """End every server and remove its data."""
        self.operator.stop()
        self.operator.close()
        self.ensemble.stop()
