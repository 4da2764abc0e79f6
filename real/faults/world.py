"""What the faults of a live run may touch, beside what those of every world may."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from watchkeeper.model.nemesis.world import ServerRole, Undo
from watchkeeper.model.nemesis.world import World as AnyWorld
from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.real.access import Access
from watchkeeper.real.proxy.proxy import Proxy
from watchkeeper.real.proxy.valve import CountEffect, Direction
from watchkeeper.real.storage.host_crash import Cut
from watchkeeper.real.zookeeper.server import Role
from watchkeeper.real.zookeepers.ensemble import Server, ServerFaults

ROLE_OF: dict[Role | None, ServerRole] = {
    "leader": "leader",
    "standalone": "leader",
    "follower": "follower",
    None: "none",
}
"""What a server says of itself -> its role for a timeline."""


class Member(Protocol):
    """The process of a member, as the world that started it sees it."""

    @property
    def is_alive(self) -> bool:
        """Whether the process exists."""

    def pause(self) -> None:
        """Stop it with SIGSTOP."""

    def resume(self) -> None:
        """Continue it with SIGCONT."""


class World(AnyWorld, Protocol):
    """A live run, as far as faults need it."""

    def kill_process(self, name: str) -> None:
        """Kill the process of a member that runs."""

    def server(self, name: str) -> ServerTarget | None:
        """A server of a ZooKeeper that the run has started; None for the name of a member."""

    def proxy_of(self, name: str) -> Proxy:
        """The proxy between a member and its ZooKeeper."""

    def brokers_against(self, action: Action) -> tuple[str, ...]:
        """The brokers from which an action cuts a broker off."""

    def cut_brokers(
        self,
        name: str,
        others: Iterable[str],
        count_effect: CountEffect,
        directions: Iterable[Direction],
    ) -> Undo:
        """Hold up what passes between a broker and others; return the call that ends that."""

    def access_of(self, name: str) -> Access:
        """How to reach the ZooKeeper of a member without the proxy."""

    def registrations_of(self, name: str, session: int) -> Iterable[str]:
        """The registrations of a member's session."""

    def members_of(self, name: str) -> tuple[str, ...]:
        """The members that run in a process; for the name of a member, that member."""

    def cut_back(self, name: str) -> tuple[Cut, ...] | None:
        """Cut the files of a broker back to the last fsync; None if it stores none."""

    def skew(self, name: str, by_ms: int) -> bool:
        """Let a clock be wrong from now on; whether a process runs that reads it."""


class MemberTarget:
    """The process of a member, as faults affect it."""

    def __init__(self, world: World, name: str, member: Member) -> None:
        self.world = world
        self.name = name
        self.member = member

    def kill(self, effect: FaultEffect) -> None:
        """Kill it with SIGKILL, unless it is gone."""
        if not self.member.is_alive:
            return
        self.world.kill_process(self.name)
        effect.add("processes killed")

    def pause(self, effect: FaultEffect, for_us: int) -> Undo | None:
        """Pause it."""
        self.member.pause()
        effect.add("processes paused")
        return self.member.resume


class ServerTarget:
    """A server of a ZooKeeper that the run has started, as faults affect it."""

    def __init__(self, server: Server, faults: ServerFaults | None) -> None:
        """`faults` is None where nothing reaches what passes between servers."""
        self.server = server
        self._faults = faults

    @property
    def name(self) -> str:
        """Its name in the scenario."""
        return self.server.name

    @property
    def role(self) -> ServerRole:
        """Its role in the ensemble now, as the server itself says."""
        return ROLE_OF[self.server.role]

    @property
    def is_up(self) -> bool:
        """Whether its process exists, paused or not."""
        return self.server.state != "down"

    def kill(self, effect: FaultEffect) -> None:
        """Kill it, unless it is down."""
        if self.server.kill():
            effect.add("servers killed")

    def start(self, effect: FaultEffect) -> None:
        """Start it again, unless it is up; do not wait until it serves."""
        if self.server.state == "down":
            self.server.start(timeout_s=None)
            effect.add("servers started")

    def pause(self, effect: FaultEffect, for_us: int) -> Undo | None:
        """Pause it, unless it is down or paused already."""
        if not self.server.pause():
            return None
        effect.add("servers paused")
        return self.server.resume

    # --- what passes between servers ---------------------------------------------------

    @property
    def faults(self) -> ServerFaults:
        """The faults between servers; a plan that needs them is refused where there are none."""
        assert self._faults is not None, "no fault reaches what passes between these servers"
        return self._faults

    def cut_off(self, effect: FaultEffect) -> Undo:
        """Cut it off from the other servers, and return the call that heals that."""
        return self.faults.cut(self.name, effect.add)

    def fall_behind(self, effect: FaultEffect, by_s: float) -> Undo:
        """From now on, learn of what is committed later; return the call that ends that."""
        if self.role == "leader":
            effect.missed = "it leads, and a leader has applied all that is committed"
        return self.faults.lag(self.name, by_s, effect.add)


def targets_of(servers: Sequence[Server], faults: ServerFaults | None) -> list[ServerTarget]:
    """Return servers, as faults affect them."""
    return [ServerTarget(server, faults) for server in servers]
