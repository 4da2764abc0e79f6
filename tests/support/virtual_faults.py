"""The faults of a timeline in virtual time, as members of a live run meet them there.

The actions of every world are those of `model.nemesis.actions`. What a live run does in a proxy
or to processes, the network and the ensemble of the virtual world do here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient

from watchkeeper.model.actor.operations import Delete, SetData
from watchkeeper.model.ensemble.control import ControlError
from watchkeeper.model.ensemble.server import Server
from watchkeeper.model.nemesis import actions
from watchkeeper.model.nemesis.nemesis import Handler
from watchkeeper.model.nemesis.world import OPERATOR, ServerRole, Undo
from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.model.registry.paths import CONTROLLER
from watchkeeper.model.registry.payloads import Controller
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.world.data_plane import DataPlane, OnHosting
from watchkeeper.real.world.hosts import Hosts
from watchkeeper.real.world.leaders import Leaders
from watchkeeper.real.world.operator import Operator
from watchkeeper.real.world.world import CHECK_US
from watchkeeper.virtual.threads.thread import start_main
from watchkeeper.virtual.world.world import World
from watchkeeper.virtual.zookeeper.service import ZooKeeperService

if TYPE_CHECKING:
    from tests.support.virtual_members import Members

Change = Delete | SetData
NS_A_US = 1_000
POLL_S = CHECK_US / 1e6
ROLES: Mapping[str, ServerRole] = {
    "leader": "leader",
    "standalone": "leader",
    "follower": "follower",
}


class ServerTarget:
    """A server of an ensemble, as faults affect it."""

    def __init__(
        self, world: World, service: ZooKeeperService, prefix: str, server: Server
    ) -> None:
        self._world = world
        self._service = service
        self._server = server
        self.name = f"{prefix}zookeeper/{server.number}"

    @property
    def role(self) -> ServerRole:
        """Its role in the ensemble now."""
        return ROLES.get(self._server.state, "none")

    @property
    def is_up(self) -> bool:
        """Whether its process exists, paused or not."""
        return self._server.is_running

    def kill(self, effect: FaultEffect) -> None:
        """Kill it, unless it is down."""
        if self.is_up:
            self._do("kill", effect, server=self._server.number)

    def start(self, effect: FaultEffect) -> None:
        """Start it again, unless it is up."""
        if not self.is_up:
            self._do("start", effect, server=self._server.number)

    def pause(self, effect: FaultEffect, for_us: int) -> Undo | None:
        """Let it stand still, unless it is down or does already."""
        if not self.is_up or self._server.is_paused:
            return None
        return self._do("pause", effect, server=self._server.number)

    def cut_off(self, effect: FaultEffect) -> Undo:
        """Cut it off from the other servers, and return the call that heals that."""
        return self._do("cut", effect, servers=[self._server.number])

    def fall_behind(self, effect: FaultEffect, by_s: float) -> Undo:
        """From now on, learn of what is committed later; return the call that ends that."""
        return self._do("lag", effect, server=self._server.number, by_s=by_s)

    def _do(self, verb: str, effect: FaultEffect, **arguments: Any) -> Undo:
        return strike(self._world, self._service, verb, effect, **arguments)


def strike(
    world: World, service: ZooKeeperService, verb: str, effect: FaultEffect, **arguments: Any
) -> Undo:
    """Carry out a verb of an ensemble's control; its effects count at the end of the run."""
    control = service.control
    try:
        number = control.do(verb, arguments)
    except ControlError as error:
        effect.missed = str(error)
        return lambda: None

    def count() -> None:
        for what, times in control.effects(number).items():
            effect.add(what, times)

    world.at_end(count)
    return lambda: control.end(number)


class VirtualCluster:
    """A cluster of a plan, with the hand of an operator on its znodes."""

    def __init__(
        self,
        plan: ClusterPlan,
        prefix: str,
        world: World,
        zookeeper: ZooKeeperService,
        folder: Path,
        on_hosting: OnHosting,
    ) -> None:
        self.plan = plan
        self.prefix = prefix
        self.administrator = plan.administrator(prefix)
        self.zookeeper = zookeeper
        self._world = world
        home = folder / plan.name
        home.mkdir()
        self.data = DataPlane(plan, home / "cluster.json", lambda: world.now_us, on_hosting)
        self.disks = self.data.disks
        self.homes = self.data.homes
        self.deleted: dict[str, dict[str, None]] = {}
        """Broker -> the deleted topics that are still on its disk."""
        self.hosts = None if plan.storage is None else Hosts(plan, home, self.disks, self.deleted)
        self.proxy = SimpleNamespace(hosts_of=lambda node: zookeeper.hosts)
        self.service = SimpleNamespace(root="", access=SimpleNamespace(to_show=()))
        """What jobs need to know: members connect to the servers themselves."""
        self.servers = [
            ServerTarget(world, zookeeper, prefix, server)
            for server in zookeeper.ensemble.servers
        ]
        self._orders: SimpleQueue[tuple[Change, Callable[[str], object]]] = SimpleQueue()

    @property
    def znodes(self) -> dict[str, bytes]:
        """Path -> data of every znode, as the leader has them now."""
        nodes = self.zookeeper.ensemble.head.nodes
        return {path: node.data or b"" for path, node in nodes.items()}

    @property
    def controller_id(self) -> int | None:
        """0.8: the broker id in `/controller`; None if no broker is the controller."""
        data = self.znodes.get(CONTROLLER)
        return None if data is None else Controller.broker_in(CONTROLLER, data)

    def begin(self) -> None:
        """Let the operator come, as the process that runs a live world is one."""
        process = self._world.scheduler.add_process(OPERATOR)
        self.zookeeper.record.name(process.address, OPERATOR)
        start_main(self._world.scheduler, process, self._operate_all)

    def _operate_all(self) -> None:
        client = KazooClient(hosts=self.zookeeper.hosts)
        client.start()
        if self.plan.layout == "0.8":
            Thread(target=self._follow_leaders, args=[client], daemon=True).start()
        operator = Operator(client, "")
        while True:
            operator.operate(*self._orders.get())

    def _follow_leaders(self, client: KazooClient) -> None:
        """0.8: let the brokers' data plane know who leads, as the registry says."""
        leaders = Leaders(client, "", self.data)
        while True:
            leaders.poll()
            time.sleep(POLL_S)

    def operate(self, operation: Change, done: Callable[[str], object]) -> None:
        """Change a znode from the operator's session; calls back with what prevents it."""
        self._orders.put((operation, done))

    def undo_of(self, path: str) -> Change:
        """The write that brings a znode back to its state of now: its data, or its absence."""
        data = self.znodes.get(path)
        return Delete(path) if data is None else SetData(path, data)

    def serve(self, broker: str, partitions: list[Any]) -> None:
        """Let a broker that is up serve more partitions."""
        self.data.add(broker, partitions)

    def remove(self, broker: str, topic: str) -> None:
        """Let a broker that is up serve nothing of a topic any more."""
        self.data.remove(broker, topic)


# --- machines --------------------------------------------------------------------------


def crash_host(members: Members, action: Action, effect: FaultEffect) -> None:
    """Lose a machine: nothing ends its connections, and its files are cut back."""
    target, own = members.process(action.target), members.address_of(action.target)
    if target is None or own is None:
        return
    world = members.world
    others = [process.address for process in world.scheduler.processes]
    for other in (*members.server_addresses, *others):
        world.network.cut(own, other)
    effect.add("connections left open")
    target.kill(effect)
    hosts = members.cluster_of(action.target).hosts if action.target in members.brokers else None
    if hosts is not None:
        cuts = hosts.cut_back(action.target)
        lost_bytes = sum(cut.before_bytes - cut.after_bytes for cut in cuts)
        files = {cut.path: [cut.before_bytes, cut.after_bytes] for cut in cuts}
        detail = {"bytes": lost_bytes, "files": files}
        members.write(action.target, EventKind.HOST_LOSS_EMULATED, detail)
        effect.add("bytes cut back to the last fsync", lost_bytes)


# --- sessions and connections ----------------------------------------------------------


def expire(members: Members, action: Action, effect: FaultEffect) -> None:
    """Let the ensemble end a session; with `unknown`, its client hears nothing of it."""
    session = members.session_of(action.target)
    if session and action.option("unknown"):
        _cut(members, action, effect, ("from",))
    _of_session(members, action.target, "expire", effect, session)


def unregister(members: Members, action: Action, effect: FaultEffect) -> None:
    """Delete the registration of a member, as an operator may do by hand."""
    session = members.session_of(action.target)
    nodes = members.cluster_of(action.target).zookeeper.ensemble.head.nodes
    own = [path for path, node in sorted(nodes.items()) if session and node.owner == session]
    actions.delete_registration(members, action.target, own, effect)


def disconnect(members: Members, action: Action, effect: FaultEffect) -> None:
    """Break a connection, and refuse another one for a while."""
    session = members.session_of(action.target)
    for_s = action.for_us / 1e6
    _of_session(members, action.target, "disconnect", effect, session, for_s=for_s)


def lose(members: Members, action: Action, effect: FaultEffect) -> None:
    """Lose the next request of a member, or its reply."""
    assert action.trigger is not None, "a loss is aimed at a step"
    name = action.trigger.node
    session = members.session_of(name)
    if action.target == "reply":
        _of_session(members, name, "drop_next_reply", effect, session)
        return
    after_us = action.option("lands_after")
    late = {} if after_us is None else {"lands_after_s": after_us / 1e6}
    _of_session(members, name, "lose_next_request", effect, session, **late)


def _of_session(
    members: Members, name: str, verb: str, effect: FaultEffect, session: int, **arguments: Any
) -> None:
    if session:
        service = members.cluster_of(name).zookeeper
        strike(members.world, service, verb, effect, session=session, **arguments)


# --- links and servers -----------------------------------------------------------------


def partition(members: Members, action: Action, effect: FaultEffect) -> None:
    """Cut a member off from ZooKeeper, in both directions or in one, or a server from others."""
    server = members.server(action.target)
    if server is not None:
        members.later(effect, action.for_us, server.cut_off(effect))
        return
    both = ("to", "from")
    _cut(members, action, effect, DIRECTIONS.get(action.option("direction"), both))


DIRECTIONS = {"to": ("to",), "from": ("from",)}
"""The directions of a cut, seen from the member."""


def _cut(
    members: Members, action: Action, effect: FaultEffect, directions: tuple[str, ...]
) -> None:
    network, own = members.world.network, members.address_of(action.target)
    if own is None:
        return
    for server in members.server_addresses:
        for direction in directions:
            ends = (own, server) if direction == "to" else (server, own)
            network.cut(*ends, one_way=True)
            effect.add("links cut")

    def heal() -> None:
        for server in members.server_addresses:
            network.heal(own, server)

    members.later(effect, action.for_us, heal)


def delay(members: Members, action: Action, effect: FaultEffect) -> None:
    """Add a latency to everything that passes between a member and ZooKeeper."""
    network, own = members.world.network, members.address_of(action.target)
    if own is None:
        return

    def slow(by_us: int) -> None:
        for server in members.server_addresses:
            network.delay(own, server, by_us * NS_A_US)

    slow(int(action.option("by")))
    effect.add("links slowed", len(members.server_addresses))
    members.later(effect, action.for_us, lambda: slow(0))


def lag(members: Members, action: Action, effect: FaultEffect) -> None:
    """Let a follower apply commits later than it should."""
    server = members.server(action.target)
    assert server is not None, "only a server falls behind"
    members.later(effect, action.for_us, server.fall_behind(effect, action.option("by") / 1e6))


def skew(members: Members, action: Action, effect: FaultEffect) -> None:
    """Set a clock wrong."""
    if members.skew(action.target, int(action.option("by")) // 1000):
        effect.add("clocks set")


HANDLERS: Mapping[str, Handler[Any]] = {
    **actions.HANDLERS,
    "crash_host": crash_host,
    "skew": skew,
    "expire": expire,
    "unregister": unregister,
    "disconnect": disconnect,
    "lose": lose,
    "partition": partition,
    "delay": delay,
    "lag": lag,
}
"""The verbs that a plan may have here."""
