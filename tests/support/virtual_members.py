"""Members of a live run in virtual time: the code of `real`, in a world of `virtual`.

A plan's brokers and consumers run as they do in processes of a live run: the driver of `real`,
its kazoo client, its fetchers and their connections to brokers. The timeline strikes by the same
nemesis. So one seed gives one run, and the run is judged as one of any other world.

Left out: messages, several clusters, and processes of several members; `runs_here` says whether
a plan has none of these. `virtual_faults` has the faults.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.virtual_faults import HANDLERS, OnlyCluster, ServerTarget
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.group.variants import FetchErrors
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.nemesis.nemesis import Nemesis
from watchkeeper.model.nemesis.world import OPERATOR, Undo
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import BrokerPlan, ConsumerPlan, GroupPlan, Plan
from watchkeeper.model.programs import administrator_program, broker_program, consumer_program
from watchkeeper.model.properties.judge import Judgement, judge
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
        EventKind.LEADER_ELECTED,
        EventKind.LEADER_LOST,
    }
)
"""What the record of the ensemble has; the rest comes from members and the timeline."""
WRITES = (EventKind.APPLIED, EventKind.REFUSED)
LATE_S = 100_000.0
BY_HAND = frozenset({"unregister", "delete_znode", "write_znode"})
"""The verbs of an operator."""


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


class Members:
    """The brokers and consumers of a plan in a virtual world, and its timeline."""

    def __init__(self, plan: Plan, world: World, folder: Path) -> None:
        self.plan = plan
        self.world = world
        self.rows: list[Row] = []
        self.data = DataPlane(
            plan.clusters[0], folder / "cluster.json", self.now_us, self._write_hosting
        )
        (cluster,) = plan.clusters
        self.cluster = OnlyCluster(cluster, self.data, world)
        self.clusters = {self.cluster.plan.name: self.cluster}
        self.consumers = {member.node: (group, member) for group, member in plan.consumers()}
        self.brokers = {broker.node: broker for broker in self.cluster.plan.brokers}
        self.groups = dict(plan.group_of())
        self.lives: dict[str, int] = {}
        self.drivers: dict[str, Driver] = {}
        self._processes: dict[str, Process] = {}
        self._on_end: dict[str, Callable[[], object]] = {}
        self._abandoned: set[str] = set()
        self._skews: dict[str, int] = {}
        self.nemesis: Nemesis[Any] = Nemesis(self, plan, HANDLERS)

    def begin(self) -> None:
        """Put the starts and the timeline on the calendar."""
        is_needed = any(action.verb.name in BY_HAND for action in self.plan.timeline)
        if is_needed or self.cluster.plan.layout == "0.8":
            self.cluster.begin()
        if self.cluster.administrator:
            self.start(self.cluster.administrator)
        plans = (*self.brokers.values(), *(member for _, member in self.consumers.values()))
        for plan in plans:
            if plan.starts_us is not None:
                self.at(plan.starts_us, partial(self.start, plan.node))
        self.nemesis.schedule()
        self.at(self.nemesis.ends_us + self.plan.settle_us, self._stop_if_calm)

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
            self._skews.get(node, 0),
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
        return name not in self._abandoned

    def abandon(self, name: str) -> bool:
        """End the program of a process that runs; its client keeps the session alive."""
        if self.process(name) is None or name in self._abandoned:
            return False
        self._abandoned.add(name)
        self.drivers[name].abandon()
        return True

    def readdress(self, broker: str, host: str, port: int | None) -> None:
        """Give a broker another host, and another port unless that is None."""
        plan = self.brokers[broker]
        self.brokers[broker] = replace(plan, host=host, port=port or plan.port)

    def skew(self, name: str, by_ms: int) -> bool:
        """Let a clock be wrong from now on; whether a process runs that reads it."""
        self._skews[name] = by_ms
        if self.process(name) is None:
            return False
        self.drivers[name].skew_ms = by_ms
        return True

    def server(self, name: str) -> ServerTarget | None:
        """The server of that name; None for the name of a member."""
        return next((each for each in self.cluster.servers if each.name == name), None)

    def address_of(self, name: str) -> str | None:
        """The address of a member's machine; None while it does not run."""
        target = self.process(name)
        return None if target is None else target.process.address

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


def runs_here(plan: Plan) -> bool:
    """Whether a plan needs nothing that is left out."""
    cluster, *others = plan.clusters
    return (
        not others
        and cluster.storage is None
        and not plan.producers
        and not plan.processes
        and all(action.verb.name in HANDLERS for action in plan.timeline)
    )


def is_shown(row: Row) -> bool:
    """Whether a row of the ensemble is of the run: an operator's session is not."""
    is_of_operator = row[-1].get("by") == OPERATOR
    return row[2] in OF_SERVICE and not (is_of_operator and row[2] not in WRITES)


def without_session(row: Row) -> Row:
    """The row of a write by an operator has no session."""
    return (*row[:3], 0, *row[4:]) if row[-1].get("by") == OPERATOR else row


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
        allow=("files",),
    )
    world = World(RandomPolicy(seed), seed=seed, settings=settings)
    members = Members(plan, world, folder)
    try:
        members.begin()
        with quiet_kazoo(), brokers_on_every_address(), Watchdog(world.scheduler, limit_s=30):
            world.run()
        assert not world.deaths, world.deaths[0]
        members.write("", EventKind.RUN_ENDED)
        rows = [without_session(row) for row in world.zookeeper.record.rows if is_shown(row)]
        rows = sorted([*rows, *members.rows], key=lambda row: row[0])
        trace = Trace(Header(plan.name, plan.variant, "virtual", seed, {}), rows)
        effects = tuple(members.nemesis.effects)
        return Ran(trace, judge(plan, trace, effects), effects)
    finally:
        world.tear_down()
