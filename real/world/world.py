"""A live world: a real ZooKeeper, a process for each member, and the timeline.

One thread runs the world: it waits for the next entry of the timeline or for something a
member has to say, whichever comes first. When the time to settle is over, everybody is
ended, and the trace is put together from what each process has written, what the world
itself did, and what the servers have logged.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from model.asks import Partition
from model.plan import BrokerPlan, Plan
from model.trace import NOTHING, Row
from real.access import Access
from real.clusters import Cluster
from real.job import Job
from real.jobs import Jobs
from real.nemesis import Nemesis
from real.ports import HOST, free_ports
from real.problems import EnvironmentProblem
from real.process import MemberProcess
from real.producers import Producers

STARTING = frozenset({"start", "restart", "move"})
"""Verbs that may need one process more."""
PATIENCE_S = 60.0
"""How long the processes of members may take to start, all together."""
LOOK_US = 100_000
"""How often the world looks who leads, and whether it is to end."""

Tell = Callable[[int, int], None]


class Aborted(Exception):
    """The abort file is there."""


class World:
    """Everything there is in a live run."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        *,
        access: Access | None = None,
        abort_file: Path | None = None,
    ) -> None:
        self.plan = plan
        self.folder = folder
        self.access = access
        self.abort_file = abort_file
        self.rows: list[Row] = []
        self.begin_ns = time.monotonic_ns()
        self.members: dict[str, MemberProcess] = {}
        self.heard: SimpleQueue[tuple[MemberProcess, dict[str, Any]]] = SimpleQueue()
        self.consumers = {member.node: (group, member) for group, member in plan.consumers()}
        self.brokers: dict[str, tuple[str, BrokerPlan]] = {}
        self.ports: dict[str, int] = {}
        """Broker -> where it really listens, whatever address it announces."""
        self.lives: dict[str, int] = {}
        self.skews: dict[str, int] = {}
        self.clusters: dict[str, Cluster] = {}
        self._calendar: list[tuple[int, int, Callable[[], None]]] = []
        self._entries = 0
        self._idle: list[MemberProcess] = []
        self._successions: dict[MemberProcess, Callable[[], None]] = {}
        self.nemesis = Nemesis(self)
        self.producers = Producers(self)
        self.jobs = Jobs(self, folder)

    # --- time --------------------------------------------------------------------------

    def now_us(self) -> int:
        """The moment of the run."""
        return (time.monotonic_ns() - self.begin_ns) // 1000

    def at(self, due_us: int, call: Callable[[], None]) -> None:
        """Do something at that moment."""
        self._entries += 1
        heapq.heappush(self._calendar, (due_us, self._entries, call))

    # --- running -----------------------------------------------------------------------

    def run(self, tell: Tell | None = None) -> None:
        """Run from the beginning to the end of the time to settle."""
        for plan in self.plan.clusters:
            prefix = f"{plan.name}:" if len(self.plan.clusters) > 1 else ""
            cluster = self.clusters[plan.name] = Cluster(
                plan,
                prefix,
                self.folder / plan.name,
                self.now_us,
                self.say_hosting,
                self.access,
            )
            ports = free_ports(len(plan.brokers))
            for one, port in zip(plan.brokers, ports, strict=True):
                self.brokers[one.node] = (plan.name, one)
                self.ports[one.node] = port
        self._make_processes()
        self.begin_ns = time.monotonic_ns()
        for cluster in self.clusters.values():
            self.write(cluster.leader, "leads", {"epoch": 1, "kept": 0})
        self._schedule()
        while (end_us := self.nemesis.ends_us + self.plan.settle_us) > self.now_us():
            self._wait(end_us)
            if tell is not None:
                tell(self.now_us(), end_us)
        self.write("", "run ends")

    def _schedule(self) -> None:
        for cluster in self.clusters.values():
            if cluster.plan.layout == "0.8":
                self._run(self.jobs.administrator(cluster))
        for node, (_, plan) in self.brokers.items():
            if plan.starts_us is not None:
                self.at(plan.starts_us, lambda node=node: self._start(node))  # type: ignore[misc]
        for node in self.producers.plans:
            self.at(0, lambda node=node: self._start(node))  # type: ignore[misc]
        for node, (_, member) in self.consumers.items():
            if member.starts_us is not None:
                self.at(member.starts_us, lambda node=node: self._start(node))  # type: ignore[misc]
        self.nemesis.schedule()
        self.at(LOOK_US, self._look)

    def _wait(self, end_us: int) -> None:
        """Wait for what is due or for what a member says, whichever is first, and do it."""
        due_us = min(self._calendar[0][0], end_us) if self._calendar else end_us
        try:
            member, message = self.heard.get(timeout=max(due_us - self.now_us(), 0) / 1e6)
        except Empty:
            while self._calendar and self._calendar[0][0] <= self.now_us():
                heapq.heappop(self._calendar)[2]()
            return
        self._hear(member, message)

    def _look(self) -> None:
        """Look whether the run is to end, and who leads."""
        if self.abort_file is not None and self.abort_file.exists():
            raise Aborted
        self._look_who_leads()
        self.at(self.now_us() + LOOK_US, self._look)

    def _look_who_leads(self) -> None:
        for cluster in self.clusters.values():
            leader = cluster.service.leader
            if leader is not None and leader.name != cluster.leader:
                self.write(leader.name, "leads", {"epoch": 0, "kept": 0})
            if leader is None and cluster.leader:
                self.write(cluster.leader, "leader lost")
            cluster.leader = "" if leader is None else leader.name
            if cluster.plan.layout == "0.8":
                cluster.leaders.look()

    # --- processes ---------------------------------------------------------------------

    def cluster_of(self, name: str) -> Cluster:
        """The cluster that a member talks to."""
        if name in self.consumers:
            return self.clusters[self.consumers[name][0].cluster]
        if name in self.producers.plans:
            return self.clusters[self.producers.plans[name].cluster]
        return self.clusters[self.brokers[name][0]]

    def running(self, name: str) -> MemberProcess | None:
        """The process of a member, if it has one."""
        member = self.members.get(name)
        return member if member is not None and member.is_alive else None

    def _start(self, name: str) -> None:
        self.start(name)

    def start(self, name: str, *, new_id: bool = False) -> bool:
        """Start the process of a consumer or a broker, unless it runs already."""
        if self.running(name) is not None:
            return False
        self.lives[name] = self.lives.get(name, 0) + 1
        job = self.jobs.of(name, new_id=new_id)
        if name in self.brokers and job.part is None:
            self._open(name)
        self._run(job)
        self.producers.has_started(name)
        return True

    def _open(self, name: str) -> None:
        """A broker serves what is on its disk."""
        cluster, plan = self.brokers[name]
        self.clusters[cluster].data.open(plan, f"{HOST}:{self.ports[name]}")

    def _run(self, job: Job) -> None:
        process = self._idle.pop() if self._idle else self._make_process()
        self.members[job.node] = process
        # From now on nobody is at rest, though the process takes a while to begin.
        self.write(job.node, "starts", job.about, group=job.group)
        process.begin(job)

    def _make_process(self) -> MemberProcess:
        return MemberProcess(self.folder / "errors", self._put)

    def _make_processes(self) -> None:
        """Make every process that will be needed, and wait until they are there."""
        again = sum(action.verb.name in STARTING for action in self.plan.timeline)
        administrators = sum(cluster.plan.layout == "0.8" for cluster in self.clusters.values())
        members = len(self.consumers) + len(self.brokers) + len(self.producers.plans)
        number = members + administrators + again
        self._idle = [self._make_process() for _ in range(number)]
        for process in self._idle:
            process.is_ready.wait(PATIENCE_S)

    def _put(self, member: MemberProcess, message: dict[str, Any]) -> None:
        self.heard.put((member, message))

    def _hear(self, member: MemberProcess, message: dict[str, Any]) -> None:
        if "step" in message:
            self.nemesis.at_step(member, message["step"], message["purpose"])
        elif "gone" in message:
            self._gone(member, message["gone"])
        elif "flows" in message:
            self.producers.flows(message["flows"])
        elif "fails" in message and not member.was_killed:
            self.kill(member, message["fails"])
        elif member.is_alive:
            self._hear_broker(member, message)

    def _hear_broker(self, member: MemberProcess, message: dict[str, Any]) -> None:
        """A broker that stores messages has something to say."""
        name = member.node
        if "serves" in message:
            self._open(name)
        elif "topic" in message:
            data = self.cluster_of(name).data
            data.appear(name, self.brokers[name][1], message["topic"], message["partitions"])

    def _gone(self, member: MemberProcess, code: int) -> None:
        """A process is there no longer; one that died by itself could not say so."""
        if self.members.get(member.node) is member and code and not member.was_killed:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            detail = {"why": f"its process ended with {how}", "failed": True}
            self.write(member.node, "ends", detail, group=member.group)
            raise EnvironmentProblem(
                f"the process of {member.node} ended with {how}, which no fault has asked for; "
                f"its last line was: {self._last_error()}"
            )
        self._bury(member)
        self._succeed(member)

    def _last_error(self) -> str:
        """The last line that any member wrote to its standard error."""
        errors = self.folder / "errors"
        lines = errors.read_text(errors="replace").strip() if errors.exists() else ""
        return lines.rpartition("\n")[2] or "(none)"

    def kill(self, member: MemberProcess, why: str = "killed") -> None:
        """Kill a process."""
        member.kill()
        self._tell_last(member.node)
        detail = {"why": why, "failed": True}
        self.write(member.node, "ends", detail, group=member.group)
        self._successions.pop(member, None)
        self._bury(member)

    def _tell_last(self, name: str) -> None:
        """Tell for a broker that was killed how its files stood."""
        sites = self.cluster_of(name).sites if name in self.brokers else None
        seen = sites.last_seen(name) if sites is not None else None
        if seen is not None:
            self.write(name, "gauges", seen)

    def _bury(self, member: MemberProcess) -> None:
        if self.members.get(member.node) is member:
            for cluster in self.clusters.values():
                cluster.data.close(member.node)

    def after(self, member: MemberProcess, call: Callable[[], None]) -> None:
        """Do something when a process has ended by itself."""
        self._successions[member] = call

    def _succeed(self, member: MemberProcess) -> None:
        call = self._successions.pop(member, None)
        if call is not None:
            call()

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
        """Write an event of the world's own into the trace."""
        self.rows.append((self.now_us(), node, kind, 0, group, topic, partition, 0, detail))

    def say_hosting(self, node: str, does: str, partition: Partition) -> None:
        """A broker begins or ceases to serve a partition."""
        name = partition.name
        self.write(node, "hosting", {"does": does}, topic=partition.topic, partition=name)

    def end(self) -> None:
        """End every process."""
        for member in (*self.members.values(), *self._idle):
            member.close()

    def stop(self) -> None:
        """End everything."""
        self.end()
        for cluster in self.clusters.values():
            cluster.stop()
