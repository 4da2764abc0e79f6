"""Members of a live run in virtual time: the code of `real`, in a world of `virtual`.

A plan's brokers and consumers run as they do in processes of a live run: the driver of `real`,
its kazoo client, its fetchers and their connections to brokers. The timeline strikes by the same
nemesis. So one seed gives one run, and the run is judged as one of any other world.

Left out is what no live run can do.
`virtual_faults` has the faults.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from tests.support.virtual_faults import HANDLERS, ServerTarget, VirtualCluster, VirtualProxy
from watchkeeper.api.simulate import scenario_of
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command
from watchkeeper.model.ensemble.history import SERVICE
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.judgement.judge import Judgement, judge
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.nemesis.nemesis import Nemesis
from watchkeeper.model.nemesis.world import OPERATOR, Undo
from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.model.plan.plan import ClusterPlan, Plan
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import NOTHING, Header, Row, Trace
from watchkeeper.real.broker import server
from watchkeeper.real.member import main, rate_server
from watchkeeper.real.member.context import Channel, MemberContext
from watchkeeper.real.member.job import Job
from watchkeeper.real.proxy.valve import CountEffect, Direction
from watchkeeper.real.storage.host_crash import Cut
from watchkeeper.real.trace.merge import merged, process_rows
from watchkeeper.real.world.jobs import Jobs
from watchkeeper.real.world.producers import Producers
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.threads.process import Process
from watchkeeper.virtual.threads.thread import start_main
from watchkeeper.virtual.threads.watchdog import Watchdog
from watchkeeper.virtual.world.run import prepare, quiet_kazoo
from watchkeeper.virtual.world.world import World, WorldSettings
from watchkeeper.virtual.zookeeper.service import ZooKeeperService

NS_A_US = 1_000
PORT = 9092
END_NS = 1_000_000
"""What the end of a process takes until its parent knows of it."""
OF_SERVICE = frozenset(
    {
        EventKind.APPLIED,
        EventKind.REFUSED,
        EventKind.WATCH_FIRED,
        EventKind.SESSION_OPENED,
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

    @property
    def verdict(self) -> Verdict:
        """That of the whole run."""
        return self.judgement.verdict


class Target:
    """The process of a member, as faults affect it."""

    def __init__(self, members: Members, member: Member) -> None:
        self._members = members
        self._name = member.node
        self.process = member.host.process

    def kill(self, effect: FaultEffect) -> None:
        """Let it crash; a process that is struck in a step of its own does not return from it."""
        effect.add("processes killed")
        self._members.kill(self._name, "killed")

    def pause(self, effect: FaultEffect, for_us: int) -> Undo | None:
        """Let it stand still."""
        scheduler = self._members.world.scheduler
        scheduler.pause(self.process)
        effect.add("processes paused")
        return lambda: scheduler.resume(self.process) if self.process.is_alive else None


class Steps(Channel):
    """The channel of a member, which tells the nemesis of its steps by a call."""

    def __init__(self, members: Members, node: str) -> None:
        super().__init__(node, ())
        self._members = members

    def before(self, purpose: str) -> None:
        """A request of this purpose is about to be sent."""
        self._members.nemesis.reach(self.node, "before", purpose)

    def after(self, purpose: str) -> None:
        """Its answer has arrived."""
        self._members.nemesis.reach(self.node, "after_reply", purpose)


class VirtualContext(MemberContext):
    """What a member has, with a world of virtual time in place of the one in another process."""

    def __init__(self, job: Job, members: Members) -> None:
        super().__init__(job)
        self.channel = Steps(members, job.node)
        self._members = members

    def report(self, **message: Any) -> None:
        """Send a report to the world."""
        self._members.handle(self.job.node, message)


class Host:
    """A process of one member, or of several: what its main thread reads."""

    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self.process = process
        self.contexts: dict[str, VirtualContext] = {}
        self.orders: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def run(self, members: Members) -> None:
        """What the main thread does: begin members, and pass on the orders to them."""
        while True:
            message = self.orders.get()
            if "job" in message:
                begin_ns = time.monotonic_ns() - members.world.scheduler.now_ns
                context = VirtualContext(replace(message["job"], begin_ns=begin_ns), members)
                self.contexts[context.job.node] = context
                Thread(
                    target=main.run, args=[context], name=context.job.node, daemon=True
                ).start()
            else:
                self.contexts[message.pop("node")].channel.handle(message)


class Member:
    """A member and its process."""

    def __init__(self, job: Job, host: Host) -> None:
        self.job = job
        self.host = host
        self.is_abandoned = False
        self.is_over = False
        """Whether its program has ended, in a process that goes on with others."""
        host.orders.put({"job": job})

    @property
    def node(self) -> str:
        """The name of the member."""
        return self.job.node

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.host.process.is_alive and not self.is_over

    @property
    def session(self) -> int:
        """Its session; 0 before the first."""
        context = self.host.contexts.get(self.node)
        return 0 if context is None else context.session

    def send(self, **message: Any) -> bool:
        """Send an order."""
        self.host.orders.put({"node": self.node, **message})
        return True


class Members:
    """The processes of a plan in a virtual world, and its timeline."""

    def __init__(self, plan: Plan, world: World, folder: Path) -> None:
        self.plan = plan
        self.world = world
        self.rows: list[Row] = []
        services = list(services_of(plan, world))
        self.clusters = {
            cluster.name: VirtualCluster(
                cluster, plan.prefix_of(cluster.name), self, service, folder, self._write_hosting
            )
            for cluster, service in zip(plan.clusters, services, strict=True)
        }
        self.server_addresses = [each for service in services for each in service.addresses]
        self.administrators = {
            cluster.administrator: cluster
            for cluster in self.clusters.values()
            if cluster.administrator
        }
        self.consumers = {member.node: (group, member) for group, member in plan.consumers()}
        self.brokers = {
            broker.node: (cluster.name, broker)
            for cluster in plan.clusters
            for broker in cluster.brokers
        }
        self.ports = dict.fromkeys(self.brokers, PORT)
        self.groups = dict(plan.group_of())
        self.lives: dict[str, int] = {}
        self.skews: dict[str, int] = {}
        self.begin_ns = 0
        self.failures: list[str] = []
        """The processes that have ended with an error of their own."""
        self._members: dict[str, Member] = {}
        self._on_end: dict[Process, Callable[[], object]] = {}
        self.nemesis: Nemesis[Any] = Nemesis(self, plan, HANDLERS)
        self.producers = Producers(self)  # type: ignore[arg-type]
        self.jobs = Jobs(self, folder)  # type: ignore[arg-type]
        world_ended = world.scheduler.ended
        world.scheduler.ended = lambda process: (world_ended(process), self._gone(process))

    def begin(self) -> None:
        """Put the starts and the timeline on the calendar."""
        is_needed = any(action.verb.name in BY_HAND for action in self.plan.timeline)
        for cluster in self.clusters.values():
            if is_needed or cluster.plan.layout == "0.8":
                cluster.begin()
        for name in (*self.administrators, *self.producers.names):
            self._start(name)
        brokers = [plan for _, plan in self.brokers.values()]
        for plan in (*brokers, *(member for _, member in self.consumers.values())):
            if plan.starts_us is not None:
                self.at(plan.starts_us, partial(self._start, plan.node))
        self.nemesis.schedule()
        self.at(self.nemesis.ends_us + self.plan.settle_us, self._stop_if_calm)

    def _stop_if_calm(self) -> None:
        end_us = self.nemesis.ends_us + self.plan.settle_us
        if end_us > self.now_us():
            self.at(end_us, self._stop_if_calm)
        else:
            self.world.scheduler.stop_requested = True

    # --- processes ---------------------------------------------------------------------

    def running(self, name: str) -> Member | None:
        """A member, if it runs; for the name of a process, one of its members that runs."""
        found = (self._members.get(each) for each in self.plan.members_of(name))
        return next((each for each in found if each is not None and each.is_alive), None)

    def start(self, name: str, *, new_id: bool = False) -> bool:
        """Start a process, with each of its members that does not run."""
        started = [self._start(each, new_id=new_id) for each in self.plan.members_of(name)]
        return any(started)

    def _start(self, name: str, *, new_id: bool = False) -> bool:
        if self.running(name) is not None:
            return False
        self.lives[name] = self.lives.get(name, 0) + 1
        job = self.jobs.of(name, new_id=new_id)
        shared = self.plan.process_of(name)
        is_alone = shared == name
        mate = None if is_alone else self.running(shared)
        host = self._make_host(shared) if mate is None else mate.host
        about = job.about if is_alone else {**job.about, "process": shared}
        self._write_of(name, EventKind.STARTED, about)
        self._members[name] = Member(replace(job, shares_process=not is_alone), host)
        if name in self.brokers and job.role is None:
            self._open(name)
        self.producers.has_started(name)
        return True

    def _make_host(self, name: str) -> Host:
        scheduler = self.world.scheduler
        host = Host(name, scheduler.add_process(name))
        for cluster in self.clusters.values():
            cluster.zookeeper.record.name(host.process.address, name)
        start_main(scheduler, host.process, partial(host.run, self))
        return host

    def _open(self, name: str) -> None:
        """A broker serves what is on its disk."""
        cluster, plan = self.brokers[name]
        address = self._members[name].host.process.address
        self.clusters[cluster].data.open(plan, f"{address}:{PORT}")

    def handle(self, name: str, message: dict[str, Any]) -> None:
        """A member reports: see the live world's method of this name."""
        member, cluster = self._members[name], self.cluster_of(name)
        deleted = cluster.deleted.get(name, {})
        if "flows" in message:
            self.producers.flows(message["flows"])
        elif "fails" in message:
            self.kill(name, message["fails"])
        elif "ended" in message:
            member.is_over = member.job.shares_process
        elif "serves" in message:
            for topic in message["without"]:
                deleted.pop(topic, None)
            self._open(name)
        elif "deleted" in message:
            deleted.pop(message["deleted"], None)
        elif "topic" in message:
            plan = self.brokers[name][1]
            cluster.data.appear(name, plan, message["topic"], message["partitions"])

    def kill(self, name: str, why: str) -> None:
        """Let a process crash, with all members in it."""
        host = self._members[name].host
        self._on_end.pop(host.process, None)
        for member in self._members.values():
            if member.host is host and member.is_alive:
                detail = {"why": why, "failed": True}
                self._write_of(member.node, EventKind.ENDED, detail, session=member.session)
        self.world.scheduler.crash(host.process)

    def _gone(self, process: Process) -> None:
        """A process is over, by itself or by a crash."""
        if "os._exit" in process.ending and "(0)" not in process.ending:
            self.failures.append(f"{process.name}: {process.ending}")
        for member in self._members.values():
            if member.host.process is process:
                for cluster in self.clusters.values():
                    cluster.data.close(member.node)
        # Later than what it has written itself, which is merged by time.
        self.world.scheduler.call_later(END_NS, self._on_end.pop(process, lambda: None))

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

    def cluster_of(self, name: str) -> VirtualCluster:
        """The cluster of a member."""
        (name, *_) = self.plan.members_of(name)
        if name in self.consumers:
            return self.clusters[self.consumers[name][0].cluster]
        if (sends_to := self.producers.cluster_of(name)) is not None:
            return self.clusters[sends_to]
        if name in self.administrators:
            return self.administrators[name]
        return self.clusters[self.brokers[name][0]]

    def process(self, name: str) -> Target | None:
        """The process of a member; None while it does not run."""
        member = self.running(name)
        return None if member is None else Target(self, member)

    def order(self, name: str, order: Command) -> bool:
        """Put an order into the inbox of a process; False if no program reads it any more."""
        member = self._members[name]
        words = {"topic": order.topic, "number": order.number, "broker": order.broker}
        return not member.is_abandoned and member.send(order=order.kind.value, **words)

    def abandon(self, name: str) -> bool:
        """End the program of a process that runs; its client keeps the session alive."""
        member = self.running(name)
        if member is None or member.is_abandoned:
            return False
        member.is_abandoned = True
        return member.send(abandon=True)

    def readdress(self, broker: str, host: str, port: int | None) -> None:
        """Give a broker another host, and another port unless that is None."""
        cluster, plan = self.brokers[broker]
        self.brokers[broker] = (cluster, replace(plan, host=host, port=port or plan.port))

    def skew(self, name: str, by_ms: int) -> bool:
        """Let a clock be wrong from now on; whether a process runs that reads it."""
        sent = []
        for each in self.plan.members_of(name):
            self.skews[each] = by_ms
            member = self.running(each)
            sent.append(member is not None and member.send(skew_ms=by_ms))
        return any(sent)

    def proxy_of(self, name: str) -> VirtualProxy:
        """What lies between a member and its ZooKeeper."""
        return self.cluster_of(name).proxy

    def members_of(self, name: str) -> tuple[str, ...]:
        """The members that run in a process; for the name of a member, that member."""
        return self.plan.members_of(name)

    def registrations_of(self, name: str, session: int) -> list[str]:
        """The registrations of a member's session, and what else it has."""
        nodes = self.cluster_of(name).zookeeper.ensemble.head.nodes
        return [path for path, node in sorted(nodes.items()) if node.owner == session]

    def cut_back(self, name: str) -> tuple[Cut, ...] | None:
        """Cut the files of a broker back to the last fsync; None if it stores none."""
        hosts = self.cluster_of(name).hosts
        return None if hosts is None or name not in self.brokers else hosts.cut_back(name)

    def server(self, name: str) -> ServerTarget | None:
        """The server of that name; None for the name of a member."""
        servers = (each for cluster in self.clusters.values() for each in cluster.servers)
        return next((each for each in servers if each.name == name), None)

    def address_of(self, name: str) -> str | None:
        """The address of a member's machine; None while it does not run."""
        member = self.running(name)
        return None if member is None else member.host.process.address

    def when_ended(self, name: str, call: Callable[[], object]) -> None:
        """Call this once a process has ended by itself."""
        self._on_end[self._members[name].host.process] = call

    def produce(self, cluster: str, topic: str, load: Load, producers: str | None) -> Undo:
        """Send messages to a topic from now on: by these producers, or by the first."""
        data = self.clusters[cluster].data
        if self.clusters[cluster].hosts is None:
            data.produce(topic, load)
            return lambda: data.cease(topic, load)
        number = self.producers.produce(topic, load, producers, cluster)
        return lambda: self.producers.cease(number)

    def brokers_against(self, action: Action) -> tuple[str, ...]:
        """The brokers from which an action cuts a broker off."""
        return self.plan.brokers_against(action)

    def cut_brokers(
        self,
        name: str,
        others: Iterable[str],
        count: CountEffect,
        directions: Iterable[Direction],
    ) -> Undo:
        """Hold up what passes between a broker and others, seen from the broker."""
        network, own = self.world.network, self.address_of(name)
        addresses = [each for each in map(self.address_of, others) if each is not None]
        assert own is not None, "it runs"
        for other in addresses:
            for direction in directions:
                network.cut(*((own, other) if direction == "to" else (other, own)), one_way=True)
                count("links cut", 1)

        def heal() -> None:
            for other in addresses:
                network.heal(own, other)

        return heal

    def session_of(self, name: str) -> int:
        """The session of a member that runs; 0 if it has none."""
        member = self.running(name)
        return 0 if member is None else member.session


def services_of(plan: Plan, world: World) -> Iterator[ZooKeeperService]:
    """The ZooKeeper of each cluster: the first is that of the world."""
    yield world.zookeeper
    for subnet, cluster in enumerate(plan.clusters[1:], 1):
        yield ZooKeeperService(
            world.scheduler,
            world.network,
            servers=cluster.zookeeper.servers,
            settings=settings_of(cluster),
            subnet=subnet,
        )


def settings_of(cluster: ClusterPlan) -> EnsembleSettings:
    """The settings of the ensemble of a cluster."""
    return EnsembleSettings(tick_ms=cluster.zookeeper.tick_us // 1000)


class ServiceRows:
    """What the ensembles have recorded, with the names that the trace of a run has."""

    def __init__(self, members: Members, folder: Path) -> None:
        self._member_of = {
            (members.cluster_of(row[1]).prefix, row[3]): row[1]
            for row in process_rows(folder)
            if row[2] == EventKind.CONNECTED
        }
        """Session of a cluster -> its member: a process may have several."""
        self.rows: list[Row] = []
        self.places: dict[str, list[tuple[int, str]]] = {}
        """Member -> the servers that it connected to, with the moments."""
        for cluster in members.clusters.values():
            for row in cluster.zookeeper.record.rows:
                self._take(row, cluster.prefix)

    def _take(self, row: Row, prefix: str) -> None:
        t_us, node, kind, session, group, topic, partition, zxid, detail = row
        member = self._member_of.get((prefix, session), node)
        if kind == EventKind.CONNECTED:
            self.places.setdefault(member, []).append((t_us, f"{prefix}{detail['at']}"))
        is_of_operator = detail.get("by") == OPERATOR
        if kind not in OF_SERVICE or (is_of_operator and kind not in WRITES):
            return
        node = f"{prefix}{node}" if node.startswith(SERVICE) else member
        if "by" in detail and not is_of_operator:
            detail = {**detail, "by": self._member_of.get((prefix, session), detail["by"])}
        if "at" in detail:
            detail = {**detail, "at": f"{prefix}{detail['at']}"}
        session = 0 if is_of_operator else session
        self.rows.append((t_us, node, kind, session, group, topic, partition, zxid, detail))


@contextmanager
def brokers_on_every_address() -> Iterator[None]:
    """Let brokers listen on the address of their virtual machine."""
    modules: tuple[Any, ...] = (rate_server, server)
    before = [module.HOST for module in modules]
    for module in modules:
        module.HOST = ""
    try:
        yield
    finally:
        for module, host in zip(modules, before, strict=True):
            module.HOST = host


def ran_in_virtual_time(scenario: str | Mapping[str, Any], *, seed: int = 0) -> Ran:
    """Run a scenario's live members in virtual time and judge the run."""
    with TemporaryDirectory(prefix="watchkeeper-virtual-") as folder:
        return run_members(scenario_of(scenario).plan(), seed, Path(folder))


def run_members(plan: Plan, seed: int, folder: Path) -> Ran:
    """Run a plan in virtual time and judge it."""
    prepare()
    settings = WorldSettings(
        until_s=LATE_S,
        servers=plan.clusters[0].zookeeper.servers,
        zookeeper=settings_of(plan.clusters[0]),
        allow=("files",),
    )
    world = World(RandomPolicy(seed), seed=seed, settings=settings)
    members = Members(plan, world, folder)
    try:
        members.begin()
        with quiet_kazoo(), brokers_on_every_address(), Watchdog(world.scheduler, limit_s=30):
            world.run()
        assert not world.deaths, world.deaths[0]
        assert not members.failures, members.failures
        members.write("", EventKind.RUN_ENDED)
        seen = ServiceRows(members, folder)
        rows = merged([*seen.rows, *members.rows], folder, {}, seen.places)
        # The files are real ones, and so is what the machine's pagecache did with them.
        rows = [row for row in rows if row[2] != EventKind.HOST_METRICS]
        trace = Trace(Header(plan.name, plan.variant, "virtual", seed, {}), rows)
        effects = tuple(members.nemesis.effects)
        return Ran(trace, judge(plan, trace, effects), effects)
    finally:
        for cluster in members.clusters.values():
            cluster.zookeeper.stop()
        world.tear_down()
