"""What the faults of a simulation may touch, beside what those of every world may."""

from __future__ import annotations

from typing import Protocol

from watchkeeper.model.nemesis.world import ServerRole, Undo
from watchkeeper.model.nemesis.world import World as AnyWorld
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.storage.filesystem import FileSystem
from watchkeeper.sim.zookeeper.ensemble import Ensemble
from watchkeeper.sim.zookeeper.network import Network
from watchkeeper.sim.zookeeper.server import Server


class World(AnyWorld, Protocol):
    """A simulated run, as far as faults need it."""

    @property
    def kernel(self) -> Kernel:
        """Its clock and its random streams."""

    @property
    def network(self) -> Network:
        """Its links."""

    def running(self, name: str) -> Node | None:
        """The process of a member; None while it does not run."""

    def kill(self, node: Node, why: str = ..., lost: FaultEffect | None = None) -> None:
        """Kill a process; `lost` is the fault that takes its machine along."""

    def with_mates(self, node: Node) -> list[Node]:
        """The running members of the process in which a member runs."""

    def ensemble_of(self, name: str) -> Ensemble:
        """The ensemble that a member uses, or that a server belongs to."""

    def brokers_but(self, name: str) -> list[str]:
        """The names of all brokers but this one."""

    def files_of(self, broker: str) -> FileSystem:
        """The file system of a broker's host."""

    def skew(self, name: str, by_us: int, effect: FaultEffect) -> None:
        """Let the clock of a machine be wrong from now on, whatever process runs there."""


class NodeTarget:
    """The process of a member, with all members in it, as faults affect it."""

    def __init__(self, world: World, node: Node) -> None:
        self.world = world
        self.node = node
        self.nodes = world.with_mates(node)

    def kill(self, effect: FaultEffect, lost: FaultEffect | None = None) -> None:
        """Kill it, unless it is gone; its session and its ephemerals are left to expire."""
        running = [node for node in self.nodes if node.is_alive]
        if not running:
            return
        effect.add("processes killed")
        for node in running:
            client = node.client
            assert client is not None, "every process has a client"
            left = client.ensemble.committed.ephemerals.get(client.session)
            effect.add("ephemerals left behind", len(left) if left is not None else 0)
        self.world.kill(running[0], lost=lost)

    def pause(self, effect: FaultEffect, for_us: int) -> Undo | None:
        """Pause it, unless it is paused already."""
        if self.node.is_paused:
            return None
        effect.add("paused ms", for_us // 1000)
        for node in self.nodes:
            node.pause()
        return self._resume

    def _resume(self) -> None:
        for node in self.nodes:
            node.resume()


class ServerTarget:
    """A server of an ensemble, as faults affect it."""

    def __init__(self, ensemble: Ensemble, server: Server) -> None:
        self.ensemble = ensemble
        self.server = server

    @property
    def name(self) -> str:
        """Its name in the scenario."""
        return self.server.name

    @property
    def role(self) -> ServerRole:
        """Its role in the ensemble now; a deposed leader has none, though it may not know."""
        if self.server is self.ensemble.leader:
            return "leader"
        return "follower" if self.server.state == "following" else "none"

    @property
    def is_up(self) -> bool:
        """Whether its process exists, paused or not."""
        return self.server.state != "down"

    def kill(self, effect: FaultEffect) -> None:
        """Kill it, unless it is down."""
        if self.server.state != "down":
            effect.add("servers killed")
            effect.add("connections broken", self.ensemble.election.kill(self.server))

    def start(self, effect: FaultEffect) -> None:
        """Start it again, unless it is up."""
        if self.server.state == "down":
            effect.add("servers started")
            self.ensemble.election.revive(self.server)

    def pause(self, effect: FaultEffect, for_us: int) -> Undo | None:
        """Pause it, unless it is down or paused already."""
        if self.server.state == "down" or self.server.is_paused:
            return None
        effect.add("paused ms", for_us // 1000)
        self.ensemble.election.pause(self.server)
        return self._resume

    def _resume(self) -> None:
        if self.server.is_paused:  # another fault may have killed it meanwhile
            self.ensemble.election.resume(self.server)


def servers_of(ensemble: Ensemble) -> list[ServerTarget]:
    """Return the servers of an ensemble, as faults affect them."""
    return [ServerTarget(ensemble, server) for server in ensemble.servers]
