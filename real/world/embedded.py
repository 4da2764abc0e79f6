"""The ZooKeeper of a live run that is started for it, and ended with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kazoo.client import KazooClient

from real.access import Access, client_of
from real.ensemble import Ensemble
from real.ledger import Agreed
from real.server import Server
from real.settings import Settings
from real.tap import Tap
from real.transactions import agreed_upon

ROOT = "/watchkeeper"


class Embedded:
    """An ensemble of our own, and the operator's connection to it."""

    root = ROOT
    """Everything that a run creates stands below this znode."""
    tls = None

    def __init__(self, servers: int, tick_ms: int, name: str, folder: Path) -> None:
        """`folder` is the run's; if this process is killed, it goes with the servers."""
        settings = Settings(tick_ms=tick_ms)
        self.ensemble = Ensemble(servers, settings=settings, name=name, inside=folder)
        self.tap = Tap()
        self.access = Access(self.ensemble.hosts)
        self.addresses = self.ensemble.addresses
        self.operator = client_of(self.access, timeout=20 * tick_ms / 1000)

    @property
    def servers(self) -> tuple[Server, ...]:
        """Its servers."""
        return self.ensemble.servers

    @property
    def leader(self) -> Server | None:
        """The server that leads now."""
        return self.ensemble.leader

    @property
    def server_of(self) -> dict[str, str]:
        """Address -> the server that listens there."""
        return {server.address: server.name for server in self.servers}

    def start(self) -> KazooClient:
        """Start the servers; a connection for whoever runs the world."""
        self.ensemble.start()
        try:
            self.operator.start()
            self.operator.ensure_path(self.root)
            self.ensemble.wait_for_leader()
        except BaseException:
            self.stop()
            raise
        return self.operator

    def agreed(self, begin_ns: int) -> Iterator[Agreed]:
        """What the servers have logged, in order."""
        folders = [server.log_folder for server in self.servers]
        return agreed_upon(folders, self.root, begin_ns)

    def stop(self) -> None:
        """End every server, and leave nothing."""
        self.operator.stop()
        self.operator.close()
        self.ensemble.stop()
