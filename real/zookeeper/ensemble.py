"""A real Apache ZooKeeper that needs no installation: one server, or an ensemble of three.

    with Ensemble(servers=3, settings=Settings(tick_ms=500)) as zookeeper:
        client = KazooClient(zookeeper.hosts)
        zookeeper.leader.kill()

It runs from PySpark's jars, listens on this machine alone, keeps its data in a temporary
folder, and is gone when we are, even if we are killed.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from time import monotonic, sleep

from real.jars import zookeeper_jars, zookeeper_version
from real.java import find_java
from real.moments import Moment, agreed
from real.ports import free_ports
from real.problems import EnvironmentProblem
from real.server import PATIENCE_S, Server
from real.settings import Ports, Settings, command, write_files

LOOK_S = 0.02


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
        """Prepare servers that are down. A folder that is given is kept, else removed.

        One that is not given is made `inside` another, all of which goes if this process
        is killed.
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

    # --- who is who --------------------------------------------------------------------

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where each server listens for clients."""
        return tuple(server.address for server in self.servers)

    @property
    def hosts(self) -> str:
        """All addresses, as clients of ZooKeeper write them."""
        return ",".join(self.addresses)

    def server(self, name: str) -> Server:
        """The server of this name."""
        return next(server for server in self.servers if server.name == name)

    @property
    def leader(self) -> Server | None:
        """The server that leads now, or serves alone."""
        for server in self.servers:
            if server.role in ("leader", "standalone"):
                return server
        return None

    def wait_for_leader(self, patience_s: float = PATIENCE_S) -> Server:
        """The server that leads, as soon as there is one; EnvironmentProblem if none does."""
        ends = monotonic() + patience_s
        while (leader := self.leader) is None:
            if monotonic() > ends:
                states = ", ".join(f"{server.name} is {server.state}" for server in self.servers)
                raise EnvironmentProblem(
                    f"one of {self.hosts} should lead within {patience_s:g} s, but none does "
                    f"({states}); start enough servers for a majority"
                )
            sleep(LOOK_S)
        return leader

    @property
    def moments(self) -> tuple[Moment, ...]:
        """When sessions began and ended, by the servers' own record."""
        return agreed([server.log_folder for server in self.servers])

    # --- coming and going --------------------------------------------------------------

    def start(self, *, patience_s: float = PATIENCE_S) -> None:
        """Start every server that is down and wait until all of them serve."""
        ends = monotonic() + patience_s
        try:
            for server in self.servers:
                server.start(patience_s=None)
            for server in self.servers:
                server.wait_until_it_serves(max(0.1, ends - monotonic()))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every server and remove what they have written, if the folder is ours."""
        for server in self.servers:
            server.kill()
        if self._is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)


def _places(servers: int) -> tuple[Ports, ...]:
    """Free ports for so many servers; one alone needs no others than its clients'."""
    if servers == 1:
        return (Ports(*free_ports(1)),)
    found = free_ports(3 * servers)
    return tuple(Ports(*found[at : at + 3]) for at in range(0, len(found), 3))
