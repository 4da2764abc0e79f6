"""Members of a live run in virtual time: the code of `real`, in a world of `virtual`.

A plan's brokers and consumers run as they do in processes of a live run: the driver of `real`,
its kazoo client, its fetchers and their connections to brokers. The timeline strikes by the same
nemesis. So one seed gives one run, and the run is judged as one of any other world.

Left out: messages, several clusters, and the faults of servers, links and clocks; `runs_here`
says whether a plan has none of these.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.group.variants import FetchErrors
from watchkeeper.model.nemesis import actions
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.nemesis.nemesis import Handler, Nemesis
from watchkeeper.model.nemesis.world import Undo
from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.model.plan.plan import BrokerPlan, ConsumerPlan, GroupPlan, Plan
from watchkeeper.model.programs import administrator_program, broker_program, consumer_program
from watchkeeper.model.properties.judge import Judgement, judge
from watchkeeper.model.registry.paths import CONTROLLER, partition_state
from watchkeeper.model.registry.payloads import Controller, PartitionState
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import NOTHING, Header, Row, Trace
from watchkeeper.real.client.client import Client
from watchkeeper.real.member import rate_server
from watchkeeper.real.member.rate_fetcher import RateFetcher
from watchkeeper.real.member.rate_server import RateServer
from watchkeeper.real.process.driver import Driver
from watchkeeper.real.trace.writer import RowWriter
from watchkeeper.real.world.data_plane import DataPlane
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.threads.process import Process
from watchkeeper.virtual.threads.watchdog import Watchdog
from watchkeeper.virtual.world.run import prepare, quiet_kazoo
from watchkeeper.virtual.world.world import World, WorldSettings

NS_A_US = 1_000
PORT = 9092
LEADERS_NS = 20_000_000
"""How often the data plane looks who leads."""
OF_SERVICE = frozenset(
    {
        EventKind.APPLIED,
        EventKind.REFUSED,
        EventKind.WATCH_FIRED,
        EventKind.SESSION_OPENED,
        EventKind.SESSION_MOVED,
        EventKind.SESSION_EXPIRED,
        EventKind.SESSION_CLOSED,
        EventKind.SERVER_STATE,
    }
)
"""What the record of the ensemble has; the rest comes from members and the timeline."""
LATE_S = 100_000.0


@dataclass(frozen=True, slots=True)
class Ran:
    """A run and its judgement."""

    trace: Trace
    judgement: Judgement
    effects: tuple[FaultEffect, ...]


class Target:
    """The process of a member, as faults affect it."""

    def __init__(self, members: Members, name: str, process: Process) -> None:
        self._members = members
        self._name = name
        self.process = process

    def kill(self, effect: FaultEffect) -> None:
        """Let it crash."""
        self._members.kill(self._name)
        effect.add("processes killed")

    def pause(self, effect: FaultEffect, for_us: int) -> Undo | None:
        """Let it stand still."""
        scheduler = self._members.world.scheduler
        scheduler.pause(self.process)
        effect.add("processes paused")
        return lambda: scheduler.resume(self.process) if self.process.is_alive else None


class OnlyCluster:
    """The cluster of the plan."""

    prefix = ""
    servers = ()

    def __init__(
        self, plan: Plan, data: DataPlane, znodes: Callable[[], dict[str, bytes]]
    ) -> None:
        self._znodes = znodes
        (self.plan,) = plan.clusters
        self.administrator = self.plan.administrator(self.prefix)
        self._data = data
        self.disks = data.disks
        self.homes = data.homes
        self.deleted: dict[str, dict[str, None]] = {}

    @property
    def controller_id(self) -> int | None:
        """0.8: the broker id in `/controller`; None if no broker is the controller."""
        data = self._znodes().get(CONTROLLER)
        return None if data is None else Controller.broker_in(CONTROLLER, data)

    def serve(self, broker: str, partitions: list[Partition]) -> None:
        """Let a broker that is up serve more partitions."""
        self._data.add(broker, partitions)

    def remove(self, broker: str, topic: str) -> None:
        """Let a broker that is up serve nothing of a topic any more."""
        self._data.remove(broker, topic)


class Members:
    """The brokers and consumers of a plan in a virtual world, and its timeline."""

    def __init__(self, plan: Plan, world: World, folder: Path) -> None:
        self.plan = plan
        self.world = world
        self.rows: list[Row] = []
        self.data = DataPlane(
            plan.clusters[0], folder / "cluster.json", self.now_us, self._write_hosting
        )
        self.cluster = OnlyCluster(plan, self.data, lambda: world.znodes)
        self.clusters = {self.cluster.plan.name: self.cluster}
        self.consumers = {member.node: (group, member) for group, member in plan.consumers()}
        self.brokers = {broker.node: broker for broker in self.cluster.plan.brokers}
        self.groups = dict(plan.group_of())
        self.lives: dict[str, int] = {}
        self.drivers: dict[str, Driver] = {}
        self._processes: dict[str, Process] = {}
        self._on_end: dict[str, Callable[[], object]] = {}
        self.nemesis: Nemesis[Any] = Nemesis(self, plan, HANDLERS)

    def begin(self) -> None:
        """Put the starts and the timeline on the calendar."""
        if self.cluster.administrator:
            self.start(self.cluster.administrator)
            self._note_leaders()
        plans = (*self.brokers.values(), *(member for _, member in self.consumers.values()))
        for plan in plans:
            if plan.starts_us is not None:
                self.at(plan.starts_us, partial(self.start, plan.node))
        self.nemesis.schedule()
        self.at(self.nemesis.ends_us + self.plan.settle_us, self._stop_if_calm)

    def _note_leaders(self) -> None:
        """0.8: let the brokers' data plane know who leads, as the registry says."""
        nodes = self.world.zookeeper.ensemble.head.nodes
        leaders = {}
        for topic, homes in self.data.homes.items():
            for index, _ in homes.replicas:
                partition = Partition(topic, str(index))
                path = partition_state(partition)
                if path in nodes:
                    data = nodes[path].data
                    leaders[str(partition)] = PartitionState.decode(path, data).leader
        self.data.lead(leaders)
        self.world.scheduler.call_later(LEADERS_NS, self._note_leaders)

    def _stop_if_calm(self) -> None:
        end_us = self.nemesis.ends_us + self.plan.settle_us
        if end_us > self.now_us():
            self.at(end_us, self._stop_if_calm)
        else:
            self.world.scheduler.stop_requested = True

    # --- processes ---------------------------------------------------------------------

    def start(self, name: str, *, new_id: bool = False) -> bool:
        """Start a member, unless it runs."""
        if self.process(name) is not None:
            return False
        self.lives[name] = self.lives.get(name, 0) + 1
        run: Callable[[], None]
        if name in self.consumers:
            group, plan = self.consumers[name]
            about = {"variant": plan.variant.name}
            run = partial(self._consume, group, plan, new_id)
        elif name == self.cluster.administrator:
            about = {}
            run = self._administer
        else:
            broker = self.brokers[name]
            about = {"address": f"{broker.host}:{broker.port}"}
            run = partial(self._serve, broker)
        self.world.process(name, run, starts_at_s=self.world.now_s)
        # Just after its process is there, whose moment is rounded.
        self.world.scheduler.call_later(NS_A_US, partial(self._started, name, about))
        return True

    def _started(self, name: str, about: Mapping[str, str]) -> None:
        started = reversed(self.world.scheduler.processes)
        process = next(process for process in started if process.name == name)
        self._processes[name] = process
        self._write_of(name, EventKind.STARTED, about)
        if name in self.brokers:
            self.data.open(self.brokers[name], f"{process.address}:{PORT}")

    def _consume(self, group: GroupPlan, plan: ConsumerPlan, new_id: bool) -> None:
        life = self.lives[plan.node]
        program = consumer_program(self.cluster.plan, group.name, plan, life=life, new_id=new_id)
        writer = self._writer(plan.node)
        fetcher = RateFetcher(
            writer,  # type: ignore[arg-type]
            self.data.file,
            group.fetch_every_us / 1e6,
            lambda: self.drivers[plan.node].client.session,
            ends_on_error=plan.variant.fetch_errors is FetchErrors.END_FETCHER,
        )
        self._drive(
            plan.node,
            program,
            writer,
            fetcher,
            plan.settings.session_timeout_ms,
            resends_watches=plan.variant.client_resends_watches,
        )

    def _administer(self) -> None:
        name, plan = self.cluster.administrator, self.cluster.plan
        program = administrator_program(plan, name, self.data.homes)
        self._drive(name, program, self._writer(name), None, plan.session_timeout_ms)

    def _serve(self, plan: BrokerPlan) -> None:
        program = broker_program(self.cluster.plan, plan, self.data.disks.get(plan.broker_id, {}))
        writer = self._writer(plan.node)
        RateServer(PORT, program.me, self.data.file, writer.t_us)
        timeout_ms = self.cluster.plan.session_timeout_ms
        self._drive(plan.node, program, writer, None, timeout_ms, resends_watches=True)

    def _drive(
        self,
        node: str,
        program: Any,
        writer: RowWriter,
        fetcher: Any,
        timeout_ms: int,
        *,
        resends_watches: bool = False,
    ) -> None:
        driver = Driver(
            program,
            writer,
            partial(Client, self.world.hosts, "", timeout_ms, resends_watches=resends_watches),
            fetcher,
            Steps(self, node),
        )
        self.drivers[node] = driver
        driver.run()
        self.at(self.now_us(), partial(self._ended, node))

    def _ended(self, node: str) -> None:
        """A program is over, and its process with it."""
        self.world.scheduler.crash(self._processes[node])
        self.data.close(node)
        self._on_end.pop(node, lambda: None)()

    def _writer(self, node: str) -> RowWriter:
        begin_ns = time.monotonic_ns() - self.world.scheduler.now_ns
        return RowWriter(node, self.groups.get(node, ""), begin_ns, self.rows.append)

    def kill(self, name: str) -> None:
        """Let a process crash, as its machine would not."""
        self._on_end.pop(name, None)
        driver = self.drivers.get(name)
        session = 0 if driver is None else driver.client.session
        detail = {"why": "killed", "failed": True}
        self._write_of(name, EventKind.ENDED, detail, session=session)
        if driver is not None and driver.fetching is not None:
            driver.fetching.stop()
        self.world.scheduler.crash(self._processes[name])
        self.data.close(name)

    # --- watchkeeper.model.nemesis.world -----------------------------------------------

    def now_us(self) -> int:
        """The moment of the run."""
        return self.world.now_us

    def at(self, due_us: int, call: Callable[[], object]) -> None:
        """Call this at that moment, outside of all threads."""
        self.world.scheduler.call_at(due_us * NS_A_US, call)

    def write(
        self, node: str, kind: str, detail: Mapping[str, Any] = NOTHING, *, topic: str = ""
    ) -> None:
        """Write an event of the timeline."""
        self._row(node, kind, detail, topic=topic)

    def _write_of(
        self, node: str, kind: str, detail: Mapping[str, Any], *, session: int = 0
    ) -> None:
        """Write an event of the process of a member."""
        self._row(node, kind, detail, session=session, group=self.groups.get(node, ""))

    def _write_hosting(self, node: str, does: str, partition: Partition) -> None:
        detail = {"does": does}
        self._row(
            node, EventKind.HOSTING, detail, topic=partition.topic, partition=partition.name
        )

    def _row(
        self,
        node: str,
        kind: str,
        detail: Mapping[str, Any],
        *,
        session: int = 0,
        group: str = "",
        topic: str = "",
        partition: str = "",
    ) -> None:
        place = (group, topic, partition)
        self.rows.append((self.now_us(), node, kind, session, *place, 0, detail))

    def later(self, effect: FaultEffect, delay_us: int, undo: Undo) -> None:
        """Undo an action after a delay."""
        self.nemesis.later(effect, delay_us, undo)

    def cluster_of(self, name: str) -> OnlyCluster:
        """The cluster of a member."""
        return self.cluster

    def process(self, name: str) -> Target | None:
        """The process of a member; None while it does not run."""
        process = self._processes.get(name)
        if process is None or not process.is_alive:
            return None
        return Target(self, name, process)

    def order(self, name: str, order: Command) -> bool:
        """Put an order into the queue of a program."""
        self.drivers[name].queue.put(order)
        return True

    def when_ended(self, name: str, call: Callable[[], object]) -> None:
        """Call this once a process has ended by itself."""
        self._on_end[name] = call

    def produce(self, cluster: str, topic: str, load: Load, producers: str | None) -> Undo:
        """Let messages flow into a topic."""
        self.data.produce(topic, load)
        return lambda: self.data.cease(topic, load)

    def session_of(self, name: str) -> int:
        """The session of a member that runs; 0 if it has none."""
        return 0 if self.process(name) is None else self.drivers[name].client.session


class Steps:
    """Tells the nemesis of the steps of a program."""

    def __init__(self, members: Members, node: str) -> None:
        self._members = members
        self._node = node

    def before(self, purpose: str) -> None:
        """A request of this purpose is about to be sent."""
        self._members.nemesis.reach(self._node, "before", purpose)

    def after(self, purpose: str) -> None:
        """Its answer has arrived."""
        self._members.nemesis.reach(self._node, "after_reply", purpose)


# --- faults of sessions and connections ------------------------------------------------


def expire(members: Members, action: Action, effect: FaultEffect) -> None:
    """Let the ensemble end a session."""
    _control(members, "expire", effect, action, session=members.session_of(action.target))


def disconnect(members: Members, action: Action, effect: FaultEffect) -> None:
    """Break a connection, and refuse another one for a while."""
    session = members.session_of(action.target)
    _control(members, "disconnect", effect, action, session=session, for_s=action.for_us / 1e6)


def lose(members: Members, action: Action, effect: FaultEffect) -> None:
    """Lose the next request of a member, or its reply."""
    assert action.trigger is not None, "a loss is aimed at a step"
    session = members.session_of(action.trigger.node)
    if action.target == "reply":
        _control(members, "drop_next_reply", effect, action, session=session)
        return
    after_us = action.option("lands_after")
    late = {} if after_us is None else {"lands_after_s": after_us / 1e6}
    _control(members, "lose_next_request", effect, action, session=session, **late)


def _control(
    members: Members, verb: str, effect: FaultEffect, action: Action, **arguments: Any
) -> None:
    if arguments["session"] == 0:
        return
    control = members.world.zookeeper.control
    number = control.do(verb, arguments)

    def count() -> None:
        for what, times in control.effects(number).items():
            effect.add(what, times)

    members.world.at_end(count)


HANDLERS: Mapping[str, Handler[Any]] = {
    **{
        verb: actions.HANDLERS[verb]
        for verb in ("start", "restart", "leave", "crash", "pause", "produce")
    },
    "expire": expire,
    "disconnect": disconnect,
    "lose": lose,
}
"""The verbs that a plan may have here."""


def runs_here(plan: Plan) -> bool:
    """Whether a plan needs nothing that is left out."""
    cluster, *others = plan.clusters
    return (
        not others
        and cluster.storage is None
        and not plan.producers
        and not plan.processes
        and all(
            action.verb.name in HANDLERS and not action.option("unknown")
            for action in plan.timeline
        )
    )


@contextmanager
def brokers_on_every_address() -> Iterator[None]:
    """Let brokers listen on the address of their virtual machine."""
    before = rate_server.HOST
    rate_server.HOST = ""
    try:
        yield
    finally:
        rate_server.HOST = before


def run_members(plan: Plan, seed: int, folder: Path) -> Ran:
    """Run a plan in virtual time and judge it."""
    prepare()
    tick_ms = plan.clusters[0].zookeeper.tick_us // 1000
    settings = WorldSettings(
        until_s=LATE_S,
        servers=plan.clusters[0].zookeeper.servers,
        zookeeper=EnsembleSettings(tick_ms=tick_ms),
    )
    world = World(RandomPolicy(seed), seed=seed, settings=settings)
    members = Members(plan, world, folder)
    try:
        members.begin()
        with quiet_kazoo(), brokers_on_every_address(), Watchdog(world.scheduler, limit_s=30):
            world.run()
        assert not world.deaths, world.deaths[0]
        members.write("", EventKind.RUN_ENDED)
        rows = [row for row in world.zookeeper.record.rows if row[2] in OF_SERVICE]
        rows = sorted([*rows, *members.rows], key=lambda row: row[0])
        trace = Trace(Header(plan.name, plan.variant, "virtual", seed, {}), rows)
        effects = tuple(members.nemesis.effects)
        return Ran(trace, judge(plan, trace, effects), effects)
    finally:
        world.tear_down()
