"""A live world: a ZooKeeper, a process for each member, and the timeline.

One thread runs the world: it waits for the next entry of the timeline or for a report of a
member, whichever comes first. When the time to settle is over, every process is ended. The trace
is merged from what each process has written, what the world itself did, and what the servers
have logged.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.nemesis.nemesis import Nemesis
from watchkeeper.model.nemesis.world import Undo
from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.model.plan.plan import BrokerPlan, Plan
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import NOTHING, Row
from watchkeeper.real.access import Access
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.faults.faults import HANDLERS
from watchkeeper.real.faults.world import MemberTarget, ServerTarget
from watchkeeper.real.faults.world import World as FaultyWorld
from watchkeeper.real.member.job import Job
from watchkeeper.real.ports import HOST, free_ports
from watchkeeper.real.proxy.proxy import Proxy
from watchkeeper.real.proxy.valve import CountEffect, Direction
from watchkeeper.real.storage.host_crash import Cut
from watchkeeper.real.world.cluster import Cluster
from watchkeeper.real.world.jobs import Jobs
from watchkeeper.real.world.process import MemberProcess
from watchkeeper.real.world.producers import Producers
from watchkeeper.real.zookeepers.implementation import Implementation

STARTING = frozenset({"start", "restart", "move"})
"""Verbs that may need one more process."""
TIMEOUT_S = 60.0
"""How long the processes of all members may take to start."""
CHECK_US = 100_000
"""Interval of the checks for a new leader and for the abort file."""

Progress = Callable[[int, int], None]
Waits = Callable[[str], None]
"""Receives what a live run waits for before its time begins, and after its end."""


class Aborted(Exception):
    """The abort file exists."""


class World:
    """The state of a live run."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        *,
        zookeeper: Access | Implementation = Implementation.PYTHON,
        abort_file: Path | None = None,
    ) -> None:
        self.plan = plan
        self.folder = folder
        self.zookeeper = zookeeper
        self.abort_file = abort_file
        self.rows: list[Row] = []
        self.begin_ns = time.monotonic_ns()
        self.members: dict[str, MemberProcess] = {}
        self.messages: SimpleQueue[tuple[MemberProcess, dict[str, Any]]] = SimpleQueue()
        self.consumers = {member.node: (group, member) for group, member in plan.consumers()}
        self.brokers: dict[str, tuple[str, BrokerPlan]] = {}
        self.ports: dict[str, int] = {}
        """Broker -> the port that it listens on, whatever address it announces."""
        self.lives: dict[str, int] = {}
        self.skews: dict[str, int] = {}
        self.clusters: dict[str, Cluster] = {}
        self.administrators: dict[str, Cluster] = {}
        self._calendar: list[tuple[int, int, Callable[[], object]]] = []
        self._entries = 0
        self._idle: list[MemberProcess] = []
        self._on_end: dict[MemberProcess, Callable[[], object]] = {}
        self.nemesis: Nemesis[FaultyWorld] = Nemesis(self, plan, HANDLERS)
        self.producers = Producers(self)
        self.jobs = Jobs(self, folder)

    # --- time --------------------------------------------------------------------------

    def now_us(self) -> int:
        """The time of the run."""
        return (time.monotonic_ns() - self.begin_ns) // 1000

    def at(self, due_us: int, call: Callable[[], object]) -> None:
        """Call this at a time of the run."""
        self._entries += 1
        heapq.heappush(self._calendar, (due_us, self._entries, call))

    # --- running -----------------------------------------------------------------------

    def run(self, progress: Progress | None = None, waits: Waits = lambda what: None) -> None:
        """Run from the begin to the end of the time to settle."""
        for plan in self.plan.clusters:
            waits(f"the ZooKeeper of {plan.name}")
            prefix = self.plan.prefix_of(plan.name)
            cluster = self.clusters[plan.name] = Cluster(
                plan,
                prefix,
                self.folder / plan.name,
                self.now_us,
                self.write_hosting,
                self.zookeeper,
            )
            if cluster.administrator:
                self.administrators[cluster.administrator] = cluster
            ports = free_ports(len(plan.brokers))
            for broker, port in zip(plan.brokers, ports, strict=True):
                self.brokers[broker.node] = (plan.name, broker)
                self.ports[broker.node] = port
            if any(map(self.plan.brokers_against, self.plan.timeline)):
                cluster.link(
                    {broker.node: f"{HOST}:{self.ports[broker.node]}" for broker in plan.brokers}
                )
        self._make_processes(waits)
        self.begin_ns = time.monotonic_ns()
        for cluster in self.clusters.values():
            self.write(cluster.leader, EventKind.LEADER_ELECTED, {"epoch": 1, "kept": 0})
        self._schedule()
        while (end_us := self.nemesis.ends_us + self.plan.settle_us) > self.now_us():
            self._wait(end_us)
            if progress is not None:
                progress(self.now_us(), end_us)
        self.write("", EventKind.RUN_ENDED)

    def _schedule(self) -> None:
        for name in self.administrators:
            self._start(name)
        for node, (_, plan) in self.brokers.items():
            if plan.starts_us is not None:
                self.at(plan.starts_us, lambda node=node: self._start(node))  # type: ignore[misc]
        for node in self.producers.names:
            self.at(0, lambda node=node: self._start(node))  # type: ignore[misc]
        for node, (_, member) in self.consumers.items():
            if member.starts_us is not None:
                self.at(member.starts_us, lambda node=node: self._start(node))  # type: ignore[misc]
        self.nemesis.schedule()
        self.at(CHECK_US, self._check)

    def _wait(self, end_us: int) -> None:
        """Handle the next due entry or the next report of a member, whichever comes first."""
        due_us = min(self._calendar[0][0], end_us) if self._calendar else end_us
        try:
            member, message = self.messages.get(timeout=max(due_us - self.now_us(), 0) / 1e6)
        except Empty:
            while self._calendar and self._calendar[0][0] <= self.now_us():
                heapq.heappop(self._calendar)[2]()
            return
        self._handle(member, message)

    def _check(self) -> None:
        """Check for the abort file and for new leaders."""
        if self.abort_file is not None and self.abort_file.exists():
            raise Aborted
        self._check_leaders()
        self.at(self.now_us() + CHECK_US, self._check)

    def _check_leaders(self) -> None:
        for cluster in self.clusters.values():
            leader = cluster.service.leader
            if leader is not None and leader.name != cluster.leader:
                self.write(leader.name, EventKind.LEADER_ELECTED, {"epoch": 0, "kept": 0})
            if leader is None and cluster.leader:
                self.write(cluster.leader, EventKind.LEADER_LOST)
            cluster.leader = "" if leader is None else leader.name
            if cluster.plan.layout == "0.8":
                cluster.leaders.poll()
            if cluster.plan.controller is not None:
                cluster.controller.poll()

    # --- processes ---------------------------------------------------------------------

    def cluster_of(self, name: str) -> Cluster:
        """The cluster of a member."""
        if name in self.consumers:
            return self.clusters[self.consumers[name][0].cluster]
        if (sends_to := self.producers.cluster_of(name)) is not None:
            return self.clusters[sends_to]
        if name in self.administrators:
            return self.administrators[name]
        return self.clusters[self.brokers[name][0]]

    def running(self, name: str) -> MemberProcess | None:
        """The process of a member, if it runs."""
        member = self.members.get(name)
        return member if member is not None and member.is_alive else None

    def start(self, name: str, *, new_id: bool = False) -> bool:
        """Start a process, with each of its members that does not run already; False without."""
        members = self.plan.members_of(name)
        started = [self._start(member, new_id=new_id) for member in members]
        return any(started)

    def _start(self, name: str, *, new_id: bool = False) -> bool:
        if self.running(name) is not None:
            return False
        self.lives[name] = self.lives.get(name, 0) + 1
        job = self.jobs.of(name, new_id=new_id)
        if name in self.brokers and job.role is None:
            self._open(name)
        self._run(job)
        self.producers.has_started(name)
        return True

    def _open(self, name: str) -> None:
        """A broker serves what is on its disk."""
        cluster, plan = self.brokers[name]
        self.clusters[cluster].data.open(plan, f"{HOST}:{self.ports[name]}")

    def _run(self, job: Job) -> None:
        shared = self.plan.process_of(job.node)
        process = self._process_for(shared)
        self.members[job.node] = process
        # From here on the run is not quiescent, although the process needs time to start.
        is_alone = shared == job.node
        about = job.about if is_alone else {**job.about, "process": shared}
        self.write(job.node, EventKind.STARTED, about, group=job.group)
        process.begin(job if is_alone else replace(job, shares_process=True))

    def _process_for(self, shared: str) -> MemberProcess:
        """A process that waits for its job, or the one in which another member runs already."""
        for name in self.plan.members_of(shared):
            member = self.members.get(name)
            if member is not None and any(mate.is_alive for mate in member.family):
                return MemberProcess(self.folder / "errors", self._enqueue, member.host)
        return self._idle.pop() if self._idle else self._make_process()

    def _make_process(self) -> MemberProcess:
        return MemberProcess(self.folder / "errors", self._enqueue)

    def _make_processes(self, waits: Waits) -> None:
        """Start every process that will be needed, and wait until they are ready."""
        again = sum(action.verb.name in STARTING for action in self.plan.timeline)
        members = len(self.consumers) + len(self.brokers) + len(self.producers.names)
        number = members + len(self.administrators) + again
        self._idle = [self._make_process() for _ in range(number)]
        for at, process in enumerate(self._idle):
            waits(f"the start of {number - at} of {number} processes")
            process.is_ready.wait(TIMEOUT_S)

    def _enqueue(self, member: MemberProcess, message: dict[str, Any]) -> None:
        self.messages.put((member, message))

    def _handle(self, member: MemberProcess, message: dict[str, Any]) -> None:
        if "step" in message:
            self.nemesis.reach(member.node, message["step"], message["purpose"])
            member.go()
        elif "gone" in message:
            self._gone(member, message["gone"])
        elif "flows" in message:
            self.producers.flows(message["flows"])
        elif "fails" in message and not member.was_killed:
            self._fail(member, message["fails"])
        elif member.is_alive:
            self._handle_broker(member, message)

    def _handle_broker(self, member: MemberProcess, message: dict[str, Any]) -> None:
        """Handle a report of a broker that stores messages."""
        name = member.node
        if "serves" in message:
            for topic in message["without"]:
                self.cluster_of(name).deleted.get(name, {}).pop(topic, None)
            self._open(name)
        elif "deleted" in message:
            self.cluster_of(name).deleted.get(name, {}).pop(message["deleted"], None)
        elif "topic" in message:
            data = self.cluster_of(name).data
            data.appear(name, self.brokers[name][1], message["topic"], message["partitions"])

    def _gone(self, member: MemberProcess, code: int) -> None:
        """A process has ended; one that crashed could not write that itself."""
        if self.members.get(member.node) is member and code and not member.was_killed:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            detail = {"why": f"its process ended with {how}", "failed": True}
            self.write(member.node, EventKind.ENDED, detail, group=member.group)
            raise EnvironmentProblem(
                f"the process of {member.node} ended with {how}, which no fault has caused; "
                f"its last line was: {self._last_error()}"
            )
        self._close_data_plane(member)
        self._run_on_end(member)

    def _last_error(self) -> str:
        """The last line that any member wrote to its standard error."""
        errors = self.folder / "errors"
        lines = errors.read_text(errors="replace").strip() if errors.exists() else ""
        return lines.rpartition("\n")[2] or "(none)"

    def kill(self, member: MemberProcess) -> None:
        """Kill a process, with all members in it, and write their ends into the trace."""
        self._end(member, [mate for mate in member.family if mate.is_alive], "killed")

    def _fail(self, member: MemberProcess, why: str) -> None:
        """End the process of a member that has reported a failure; it may have ended before."""
        mates = [mate for mate in member.family if mate.is_alive and mate is not member]
        self._end(member, [member, *mates], why)

    def _end(self, member: MemberProcess, ended: Iterable[MemberProcess], why: str) -> None:
        """Kill the process of a member, and write the ends of these members into the trace."""
        member.kill()
        for mate in ended:
            self._write_last_metrics(mate.node)
            detail = {"why": why, "failed": True}
            self.write(mate.node, EventKind.ENDED, detail, group=mate.group)
            self._on_end.pop(mate, None)
            self._close_data_plane(mate)

    def _write_last_metrics(self, name: str) -> None:
        """Write the last metrics of a killed broker into the trace."""
        hosts = self.cluster_of(name).hosts if name in self.brokers else None
        seen = hosts.last_metrics(name) if hosts is not None else None
        if seen is not None:
            self.write(name, EventKind.HOST_METRICS, seen)

    def _close_data_plane(self, member: MemberProcess) -> None:
        if self.members.get(member.node) is member:
            for cluster in self.clusters.values():
                cluster.data.close(member.node)

    def _run_on_end(self, member: MemberProcess) -> None:
        call = self._on_end.pop(member, None)
        if call is not None:
            call()

    # --- what the timeline may touch: watchkeeper.model.nemesis.world ------------------

    def later(self, effect: FaultEffect, delay_us: int, undo: Undo) -> None:
        """Undo an action of the timeline after a delay."""
        self.nemesis.later(effect, delay_us, undo)

    def process(self, name: str) -> MemberTarget | None:
        """Return a process, or that of a member, as faults affect it; None if it does not run."""
        for each in self.plan.members_of(name):
            member = self.running(each)
            if member is not None:
                return MemberTarget(self, each, member)
        return None

    def registrations_of(self, name: str, session: int) -> Iterable[str]:
        """Return the registrations of a member's session."""
        group = self.plan.group_of().get(name, "")
        return self.cluster_of(name).by_hand.registrations_of(session, group)

    def members_of(self, name: str) -> tuple[str, ...]:
        """Return the members that run in a process; for the name of a member, that member."""
        return self.plan.members_of(name)

    def server(self, name: str) -> ServerTarget | None:
        """Return a server of a ZooKeeper that was started; None for the name of a member."""
        servers = (server for cluster in self.clusters.values() for server in cluster.servers)
        return next((server for server in servers if server.name == name), None)

    def kill_process(self, name: str) -> None:
        """Kill the process of a member that runs."""
        self.kill(self.members[name])

    def order(self, name: str, order: Command) -> bool:
        """Put an order into the inbox of a process; False if it, or its program, is gone."""
        return self.members[name].deliver(order)

    def abandon(self, name: str) -> bool:
        """End the program of a process that runs; its client keeps the session alive."""
        return self.members[name].abandon()

    def when_ended(self, name: str, call: Callable[[], object]) -> None:
        """Call this once a process that runs now has ended by itself."""
        self._on_end[self.members[name]] = call

    def readdress(self, broker: str, host: str, port: int | None) -> None:
        """Give a broker another host, and another port unless that is None.

        Another machine is another port of this one: nothing listens at the old one any
        more. What the broker has on its disk moves with it.
        """
        cluster, plan = self.brokers[broker]
        self.brokers[broker] = (cluster, replace(plan, host=host, port=port or plan.port))
        (self.ports[broker],) = free_ports(1)

    def produce(self, cluster: str, topic: str, load: Load, producers: str | None) -> Undo:
        """Send messages to a topic from now on: by these producers, or by the first."""
        data = self.clusters[cluster].data
        if self.clusters[cluster].hosts is None:
            data.produce(topic, load)
            return partial(data.cease, topic, load)
        number = self.producers.produce(topic, load, producers, cluster)
        return partial(self.producers.cease, number)

    def proxy_of(self, name: str) -> Proxy:
        """Return the proxy between a member and its ZooKeeper."""
        return self.cluster_of(name).proxy

    def brokers_against(self, action: Action) -> tuple[str, ...]:
        """Return the brokers from which an action cuts a broker off."""
        return self.plan.brokers_against(action)

    def cut_brokers(
        self,
        name: str,
        others: Iterable[str],
        count_effect: CountEffect,
        directions: Iterable[Direction],
    ) -> Undo:
        """Hold up what passes between a broker and others; return the call that ends that."""
        links = self.cluster_of(name).links
        assert links is not None, "a plan that cuts brokers off has links"
        return links.cut(name, others, count_effect, directions=directions).end

    def access_of(self, name: str) -> Access:
        """Return how to reach the ZooKeeper of a member without the proxy."""
        return self.cluster_of(name).service.access

    def cut_back(self, name: str) -> tuple[Cut, ...] | None:
        """Cut the files of a broker back to the last fsync; None if it stores none."""
        hosts = self.cluster_of(name).hosts
        return None if hosts is None or name not in self.brokers else hosts.cut_back(name)

    def skew(self, name: str, by_ms: int) -> bool:
        """Let a clock be wrong from now on; whether a process runs that reads it."""
        sent = []
        for each in self.plan.members_of(name):
            self.skews[each] = by_ms
            member = self.running(each)
            sent.append(member is not None and member.send(skew_ms=by_ms))
        return any(sent)

    # --- the trace ---------------------------------------------------------------------

    def write(
        self,
        node: str,
        kind: str,
        detail: Mapping[str, Any] = NOTHING,
        *,
        group: str = "",
        topic: str = "",
        partition: str = "",
    ) -> None:
        """Write an event of the world into the trace."""
        self.rows.append((self.now_us(), node, kind, 0, group, topic, partition, 0, detail))

    def write_hosting(self, node: str, does: str, partition: Partition) -> None:
        """A broker begins or ceases to serve a partition."""
        name = partition.name
        self.write(node, EventKind.HOSTING, {"does": does}, topic=partition.topic, partition=name)

    def end(self) -> None:
        """End every process."""
        for member in (*self.members.values(), *self._idle):
            member.close()

    def stop(self) -> None:
        """End every process and every service."""
        self.end()
        for cluster in self.clusters.values():
            cluster.stop()
