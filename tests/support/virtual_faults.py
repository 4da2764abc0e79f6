"""The faults of a timeline in virtual time, as members of a live run meet them there.

The verbs are those of a live run, `real.faults`. What that does in its proxy and to its servers,
the network and the ensemble of the virtual world do here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.operations import Delete, SetData
from watchkeeper.model.ensemble.server import Server
from watchkeeper.model.nemesis.nemesis import Handler
from watchkeeper.model.nemesis.world import OPERATOR, ServerRole, Undo
from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.model.registry.paths import CONTROLLER, partition_state
from watchkeeper.model.registry.payloads import NO_LEADER, Controller, PartitionState
from watchkeeper.model.wire.connect import SessionKey
from watchkeeper.real.faults import faults
from watchkeeper.real.proxy.proxy import ActiveFault
from watchkeeper.real.proxy.valve import Direction
from watchkeeper.real.world.data_plane import DataPlane, OnHosting
from watchkeeper.real.world.hosts import hosts_of
from watchkeeper.real.world.leaders import Leaders
from watchkeeper.real.world.operator import Operator
from watchkeeper.real.world.world import CHECK_US
from watchkeeper.real.zookeepers.ensemble import CountEffect
from watchkeeper.virtual.threads.lock import NS
from watchkeeper.virtual.threads.thread import start_main
from watchkeeper.virtual.world.world import World
from watchkeeper.virtual.zookeeper.service import ZooKeeperService

if TYPE_CHECKING:
    from tests.support.virtual_members import Members

Change = Delete | SetData
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
        if self.role == "leader":
            effect.missed = "it leads, and a leader has applied all that is committed"
            return lambda: None
        return self._do("lag", effect, server=self._server.number, by_s=by_s)

    def _do(self, verb: str, effect: FaultEffect, **arguments: Any) -> Undo:
        return strike(self._world, self._service, verb, effect.add, **arguments)


def strike(
    world: World, service: ZooKeeperService, verb: str, count: CountEffect, **arguments: Any
) -> Undo:
    """Carry out a verb of an ensemble's control; its effects count at the end of the run."""
    control = service.control
    number = control.do(verb, arguments)

    def count_all() -> None:
        for what, times in control.effects(number).items():
            count(what, times)

    world.at_end(count_all)
    return lambda: control.end(number)


class VirtualCluster:
    """A cluster of a plan, with the hand of an operator on its znodes."""

    def __init__(
        self,
        plan: ClusterPlan,
        prefix: str,
        members: Members,
        zookeeper: ZooKeeperService,
        folder: Path,
        on_hosting: OnHosting,
    ) -> None:
        world = members.world
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
        self.hosts = hosts_of(plan, home, self.disks, self.deleted)
        self.proxy = VirtualProxy(members, zookeeper)
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

    def leader_of(self, partition: Partition) -> int | None:
        """0.8: the broker id that leads a partition, as the leader of the ensemble has it."""
        path = partition_state(partition)
        data = self.znodes.get(path)
        leader = NO_LEADER if data is None else PartitionState.decode(path, data).leader
        return None if leader == NO_LEADER else leader

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


# --- what lies between members and their ZooKeeper -------------------------------------


class VirtualProxy:
    """What a live run does in its proxy, done to the network and the ensemble."""

    def __init__(self, members: Members, zookeeper: ZooKeeperService) -> None:
        self._members = members
        self._world = members.world
        self._zookeeper = zookeeper

    def hosts_of(self, name: str) -> str:
        """Where a member connects to: the servers themselves."""
        return self._zookeeper.hosts

    def session_of(self, name: str) -> SessionKey | None:
        """The session of a member; None without one."""
        session = self._members.session_of(name)
        return SessionKey(session, b"") if session else None

    def strand(self, name: str, count: CountEffect) -> None:
        """Let nothing pass to or from the machine of a member any more."""
        own = self._members.address_of(name)
        assert own is not None, "it runs"
        others = [process.address for process in self._world.scheduler.processes]
        for other in (*self._members.server_addresses, *others):
            self._world.network.cut(own, other)
        count("connections left open", 1)

    def cut(
        self, name: str, count: CountEffect, *, directions: Iterable[Direction] = ("to", "from")
    ) -> ActiveFault:
        """Hold up what passes between a member and the servers, seen from the member."""
        network, own = self._world.network, self._members.address_of(name)
        assert own is not None, "it runs"
        for server in self._zookeeper.addresses:
            for direction in directions:
                ends = (own, server) if direction == "to" else (server, own)
                network.cut(*ends, one_way=True)
                count("links cut", 1)
        return ActiveFault(lambda: self._heal(own))

    def _heal(self, own: str) -> None:
        for server in self._zookeeper.addresses:
            self._world.network.heal(own, server)

    def delay(self, name: str, count: CountEffect, *, by_s: float) -> ActiveFault:
        """Add a latency to everything that passes between a member and the servers."""
        own = self._members.address_of(name)
        assert own is not None, "it runs"
        count("links slowed", len(self._zookeeper.addresses))
        self._slow(own, int(by_s * NS))
        return ActiveFault(lambda: self._slow(own, 0))

    def _slow(self, own: str, by_ns: int) -> None:
        for server in self._zookeeper.addresses:
            self._world.network.delay(own, server, by_ns)

    def disconnect(self, name: str, count: CountEffect, *, for_s: float = 0.0) -> None:
        """Break a connection, and refuse another one for a while."""
        self._strike("disconnect", name, count, for_s=for_s)

    def lose_reply(self, name: str, count: CountEffect) -> None:
        """Lose the reply to the next request, with the connection."""
        self._strike("drop_next_reply", name, count)

    def lose_request(
        self, name: str, count: CountEffect, *, lands_after_s: float | None = None
    ) -> None:
        """Lose the next request with the connection; it may take effect later."""
        late = {} if lands_after_s is None else {"lands_after_s": lands_after_s}
        self._strike("lose_next_request", name, count, **late)

    def expire(self, name: str, count: CountEffect) -> None:
        """Let the ensemble end the session of a member."""
        self._strike("expire", name, count)

    def _strike(self, verb: str, name: str, count: CountEffect, **arguments: Any) -> None:
        session = self._members.session_of(name)
        if session:
            strike(self._world, self._zookeeper, verb, count, session=session, **arguments)


def expire(members: Members, action: Action, effect: FaultEffect) -> None:
    """Let the ensemble end a session; with `unknown`, its client hears nothing of it.

    A live run ends it from a second connection, for which it would have to wait.
    """
    proxy = members.proxy_of(action.target)
    if members.session_of(action.target) and action.option("unknown"):
        cut = proxy.cut(action.target, effect.add, directions=("from",))
        members.later(effect, action.for_us, cut.end)
    proxy.expire(action.target, effect.add)


HANDLERS: Mapping[str, Handler[Any]] = {**faults.HANDLERS, "expire": expire}
"""The verbs of a live run."""
