"""An Apache ZooKeeper that needs no installation: one server or an ensemble.

    with Ensemble(servers=3, settings=Settings(tick_ms=500)) as zookeeper:
        client = KazooClient(zookeeper.hosts)
        zookeeper.leader.kill()

It runs from PySpark's jars, listens on the loopback only, keeps its data in a temporary
folder, and ends with this process, even if this process is killed.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from time import monotonic, sleep

from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.ports import free_ports
from watchkeeper.real.zookeeper.jars import zookeeper_jars, zookeeper_version
from watchkeeper.real.zookeeper.java import find_java
from watchkeeper.real.zookeeper.server import TIMEOUT_S, Server
from watchkeeper.real.zookeeper.session_times import SessionTime, agreed_session_times
from watchkeeper.real.zookeeper.settings import Ports, Settings, command, write_files

POLL_S = 0.02


class Ensemble:
    """The servers of one embedded ZooKeeper."""

    def __init__(
        self,
        servers: int = 1,
        *,
        settings: Settings | None = None,
        name: str = "zookeeper",
        ports: tuple[Ports, ...] = (),
        folder: Path | None = None,
        inside: Path | None = None,
    ) -> None:
        """Prepare `servers` servers (an odd number) that are down.

        A given `folder` is kept; otherwise a temporary one is made `inside` another folder and
        removed. If this process is killed, all of `inside` is removed.
        """
        if servers < 1 or servers % 2 == 0:
            raise ValueError(f"an ensemble has an odd number of servers, not {servers}")
        if ports and len(ports) != servers:
            raise ValueError(f"{servers} servers need {servers} sets of ports, not {len(ports)}")
        self.settings = settings or Settings()
        java, jars = find_java(), zookeeper_jars()
        self.version = zookeeper_version(jars)
        places = ports or _places(servers)
        self._is_temporary = folder is None
        self.folder = folder or Path(
            tempfile.mkdtemp(prefix="watchkeeper-zookeeper-", dir=inside)
        )
        self._goes = inside or self.folder
        self.servers = tuple(
            self._server(number, f"{name}/{number}", places, java, jars)
            for number in range(1, servers + 1)
        )

    def _server(
        self,
        number: int,
        name: str,
        places: tuple[Ports, ...],
        java: Path,
        jars: tuple[Path, ...],
    ) -> Server:
        home = self.folder / str(number)
        write_files(home, self.settings, number, places)
        return Server(
            name,
            home,
            places[number - 1],
            command(java, jars, home, self.settings),
            remove=self._goes if self._is_temporary else None,
        )

    def __enter__(self) -> Ensemble:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- addresses and roles -------------------------------------------------------------

    @property
    def addresses(self) -> tuple[str, ...]:
        """The client address of each server."""
        return tuple(server.address for server in self.servers)

    @property
    def hosts(self) -> str:
        """All addresses as a ZooKeeper connection string."""
        return ",".join(self.addresses)

    def server(self, name: str) -> Server:
        """Return the server with this name."""
        return next(server for server in self.servers if server.name == name)

    @property
    def leader(self) -> Server | None:
        """The server that leads now, or the only server; None if there is no leader."""
        for server in self.servers:
            if server.role in ("leader", "standalone"):
                return server
        return None

    def wait_for_leader(self, timeout_s: float = TIMEOUT_S) -> Server:
        """Return the leader once there is one; raises EnvironmentProblem after `timeout_s`."""
        ends = monotonic() + timeout_s
        while (leader := self.leader) is None:
            if monotonic() > ends:
                states = ", ".join(f"{server.name} is {server.state}" for server in self.servers)
                raise EnvironmentProblem(
                    f"one of {self.hosts} should lead within {timeout_s:g} s, but none does "
                    f"({states}); start enough servers for a majority"
                )
            sleep(POLL_S)
        return leader

    @property
    def session_times(self) -> tuple[SessionTime, ...]:
        """When sessions began and ended, read from the servers' transaction logs."""
        return agreed_session_times([server.log_folder for server in self.servers])

    # --- start and stop ------------------------------------------------------------------

    def start(self, *, timeout_s: float = TIMEOUT_S) -> None:
        """Start every server that is down and wait until all of them serve."""
        ends = monotonic() + timeout_s
        try:
            for server in self.servers:
                server.start(timeout_s=None)
            for server in self.servers:
                server.wait_until_it_serves(max(0.1, ends - monotonic()))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill every server; remove the folder if it is temporary."""
        for server in self.servers:
            server.kill()
        if self._is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)


def _places(servers: int) -> tuple[Ports, ...]:
    """Free ports for so many servers; a single server needs only a client port."""
    if servers == 1:
        return (Ports(*free_ports(1)),)
    found = free_ports(3 * servers)
    return tuple(Ports(*found[at : at + 3]) for at in range(0, len(found), 3))
