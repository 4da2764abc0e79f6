"""A live world: a real ZooKeeper, a process for each member, and the timeline.

One thread runs the world: it waits for the next entry of the timeline or for something a
member has to say, whichever comes first. When the time to settle is over, everybody is
ended, and the trace is put together from what each process has written, what the world
itself did, and what the servers have logged.
"""

from __future__ import annotations

import heapq
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from model.administrator import Administrator, administrator
from model.faults import Effect
from model.payloads import TopicAssignment
from model.plan import BrokerPlan, ConsumerPlan, GroupPlan, Plan
from model.program import Program
from model.programs import broker_program, consumer_program
from model.trace import NOTHING, Header, Row, Trace
from real.clusters import ROOT, Cluster, leaders_of
from real.member import Job
from real.merging import merged
from real.nemesis import Nemesis
from real.ports import free_ports
from real.process import MemberProcess

WORLD = "live"
PATIENCE_S = 60.0
"""How long the processes of members may take to start, all together."""
LOOK_US = 100_000
"""How often the world looks who leads."""

Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Lived:
    """What a live run has left."""

    trace: Trace
    effects: tuple[Effect, ...]
    operations: int


class World:
    """Everything there is in a live run."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.rows: list[Row] = []
        self.begin_ns = time.monotonic_ns()
        self.members: dict[str, MemberProcess] = {}
        self.heard: SimpleQueue[tuple[MemberProcess, dict[str, Any]]] = SimpleQueue()
        self.consumers = {member.node: (group, member) for group, member in plan.consumers()}
        self.brokers: dict[str, tuple[str, BrokerPlan]] = {}
        self.lives: dict[str, int] = {}
        self.skews: dict[str, int] = {}
        self.clusters: dict[str, Cluster] = {}
        self._calendar: list[tuple[int, int, Callable[[], None]]] = []
        self._entries = 0
        self._idle: list[MemberProcess] = []
        self.nemesis = Nemesis(self)

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
                plan, prefix, self.folder / plan.name, self.now_us, self.say_hosting
            )
            ports = free_ports(len(plan.brokers))
            for one, port in zip(plan.brokers, ports, strict=True):
                self.brokers[one.node] = (plan.name, replace(one, port=port))
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
                self._start_administrator(cluster)
        for node, (_, plan) in self.brokers.items():
            if plan.starts_us is not None:
                self.at(plan.starts_us, lambda node=node: self._start(node))  # type: ignore[misc]
        for node, (_, member) in self.consumers.items():
            if member.starts_us is not None:
                self.at(member.starts_us, lambda node=node: self._start(node))  # type: ignore[misc]
        self.nemesis.schedule()
        self.at(LOOK_US, self._look_who_leads)

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

    def _look_who_leads(self) -> None:
        for cluster in self.clusters.values():
            leader = cluster.ensemble.leader
            if leader is not None and leader.name != cluster.leader:
                self.write(leader.name, "leads", {"epoch": 0, "kept": 0})
            if leader is None and cluster.leader:
                self.write(cluster.leader, "leader lost")
            cluster.leader = "" if leader is None else leader.name
            if cluster.plan.layout == "0.8":
                leaders = leaders_of(cluster)
                if leaders is not None:
                    cluster.data.lead(leaders)
        self.at(self.now_us() + LOOK_US, self._look_who_leads)

    # --- processes ---------------------------------------------------------------------

    def cluster_of(self, name: str) -> Cluster:
        """The cluster that a member talks to."""
        if name in self.consumers:
            return self.clusters[self.consumers[name][0].cluster]
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
        if name in self.consumers:
            self._start_consumer(*self.consumers[name], new_id=new_id)
        else:
            self._start_broker(*self.brokers[name])
        return True

    def _start_consumer(self, group: GroupPlan, plan: ConsumerPlan, *, new_id: bool) -> None:
        cluster = self.clusters[group.cluster]
        program = consumer_program(
            cluster.plan, group.name, plan, life=self.lives[plan.node], new_id=new_id
        )
        self._run(
            replace(
                self._job(cluster, plan.node, program, plan.settings.session_timeout_ms),
                group=group.name,
                about={"variant": plan.variant.name},
                fetch_every_s=group.fetch_every_us / 1e6,
                ends_on_error=plan.variant.fetch_errors == "end the fetcher",
            )
        )

    def _start_broker(self, cluster_name: str, plan: BrokerPlan) -> None:
        cluster = self.clusters[cluster_name]
        on_disk = cluster.data.disks.get(plan.broker_id, {})
        program = broker_program(cluster.plan, plan, on_disk)
        address = f"{plan.host}:{plan.port}"
        job = self._job(cluster, plan.node, program, cluster.plan.session_timeout_ms)
        cluster.data.open(plan.broker_id, plan.node, address)
        self._run(replace(job, about={"address": address}, serves=(plan.broker_id, plan.port)))

    def _start_administrator(self, cluster: Cluster) -> None:
        name = f"{cluster.prefix}administrator"
        topics = tuple(
            (topic, TopicAssignment(tuple(sorted(homes.items()))))
            for topic, homes in sorted(cluster.data.homes.items())
        )
        program = administrator(Administrator(name, topics))
        self._run(self._job(cluster, name, program, cluster.plan.session_timeout_ms))

    def _job(self, cluster: Cluster, node: str, program: Program, timeout_ms: int) -> Job:
        return Job(
            node,
            "",
            program,
            cluster.proxy.hosts_of(node),
            ROOT,
            timeout_ms,
            str(self.folder / f"{node.replace('/', '-')}.{self.lives.get(node, 1)}.jsonl"),
            str(cluster.data.file.path),
            self.begin_ns,
            {},
            armed=self.nemesis.steps_of(node),
            skew_ms=self.skews.get(node, 0),
        )

    def _run(self, job: Job) -> None:
        process = self._idle.pop() if self._idle else self._make_process()
        self.members[job.node] = process
        self.write(
            job.node, "starts", job.about, group=job.group
        )  # it is not at rest from now on
        process.begin(job)

    def _make_process(self) -> MemberProcess:
        return MemberProcess(self.folder / "errors", self._put)

    def _make_processes(self) -> None:
        """Make every process that will be needed, and wait until they are there."""
        again = sum(action.verb.name in ("start", "restart") for action in self.plan.timeline)
        administrators = sum(cluster.plan.layout == "0.8" for cluster in self.clusters.values())
        number = len(self.consumers) + len(self.brokers) + administrators + again
        self._idle = [self._make_process() for _ in range(number)]
        for process in self._idle:
            process.is_ready.wait(PATIENCE_S)

    def _put(self, member: MemberProcess, message: dict[str, Any]) -> None:
        self.heard.put((member, message))

    def _hear(self, member: MemberProcess, message: dict[str, Any]) -> None:
        if "step" in message:
            self.nemesis.at_step(member, message["step"], message["purpose"])
        elif "gone" in message and self.members.get(member.node) is member:
            self._gone(member, message["gone"])

    def _gone(self, member: MemberProcess, code: int) -> None:
        """A process is there no longer; one that died by itself could not say so."""
        if code and not member.was_killed:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            detail = {"why": f"its process ended with {how}", "failed": True}
            self.write(member.node, "ends", detail, group=member.group)
        self._bury(member)

    def kill(self, member: MemberProcess) -> None:
        """Kill a process."""
        member.kill()
        detail = {"why": "killed", "failed": True}
        self.write(member.node, "ends", detail, group=member.group)
        self._bury(member)

    def _bury(self, member: MemberProcess) -> None:
        for cluster in self.clusters.values():
            cluster.data.close(member.node)

    # --- the trace ---------------------------------------------------------------------

    def write(
        self, node: str, kind: str, detail: Mapping[str, Any] = NOTHING, *, group: str = ""
    ) -> None:
        """Write an event of the world's own into the trace."""
        self.rows.append((self.now_us(), node, kind, 0, group, "", "", 0, detail))

    def say_hosting(self, node: str, does: str, partition: Any) -> None:
        """A broker begins or ceases to serve a partition."""
        self.rows.append(
            (
                self.now_us(),
                node,
                "hosting",
                0,
                "",
                partition.topic,
                partition.name,
                0,
                {"does": does},
            )
        )

    def end(self) -> None:
        """End every process."""
        for member in (*self.members.values(), *self._idle):
            member.close()

    def stop(self) -> None:
        """End everything."""
        self.end()
        for cluster in self.clusters.values():
            cluster.stop()


def live(
    plan: Plan,
    seed: int = 0,
    *,
    versions: Mapping[str, str] | None = None,
    tell: Tell | None = None,
    look: Callable[[World], None] | None = None,
) -> Lived:
    """Run a plan against a real ZooKeeper that is started for it.

    `look` is called at the end of the run, while everybody is still there.
    """
    folder = Path(tempfile.mkdtemp(prefix="watchkeeper-live-"))
    world = World(plan, folder)
    header = Header(plan.name, plan.variant, WORLD, seed, versions or {})
    try:
        try:
            world.run(tell)
            if look is not None:
                look(world)
        except KeyboardInterrupt:
            world.write("", "run ends")
            header = replace(header, partial=True)
        world.end()
        folders = {
            cluster.prefix: [server.log_folder for server in cluster.ensemble.servers]
            for cluster in world.clusters.values()
        }
        rows = merged(world.rows, folder, folders, ROOT, world.begin_ns)
    finally:
        world.stop()
        shutil.rmtree(folder, ignore_errors=True)
    operations = sum(row[2] == "answers" for row in rows)
    return Lived(Trace(header, rows), tuple(world.nemesis.effects), operations)
