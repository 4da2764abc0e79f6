"""The groups that `live.py` compares: variants of ours, and kazoo's recipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.support.group_join import Cost, Group, Held, Row
from bench.support.recipe_member import Task
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from watchkeeper.model.actor.events import LEAVE
from watchkeeper.model.actor.program import Program
from watchkeeper.model.broker.administrator import Administrator, administrator
from watchkeeper.model.group.assignment import sort_partitions
from watchkeeper.model.group.variants import FetchErrors
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.programs import broker_program, consumer_program
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.member.job import Job
from watchkeeper.real.ports import HOST, free_ports
from watchkeeper.real.world.data_plane import DataPlane
from watchkeeper.real.world.process import MemberProcess
from watchkeeper.scenarios import from_text

TOPIC = "clicks"
GROUP = "billing"
BROKERS = 4
SESSION_TIMEOUT_MS = 6000
PATIENCE_S = 60.0


def plan_of(variant: str, layout: str, members: int, partitions: int) -> Plan:
    """Return the plan of a group with one more member, which starts only on request."""
    fields = {
        "name": "join",
        "about": "One more member joins a group.",
        "clusters": {
            "main": {
                "layout": layout,
                "brokers": BROKERS,
                "topics": {TOPIC: {"partitions_per_broker": partitions // BROKERS}},
            }
        },
        "groups": {
            GROUP: {
                "consumers": members + 1,
                "streams": {TOPIC: 1},
                "config": {"zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS},
            }
        },
        "timeline": [],
        "settle": "1s",
    }
    return from_text("join.yaml", json.dumps(fields)).plan(variant)


class OurProcess(MemberProcess):
    """A process of ours."""

    def leave(self) -> None:
        """Make it leave its group and end."""
        self.deliver(LEAVE)


class Ours(Group):
    """A variant of ours: members, brokers and, for 0.8, an administrator, as live runs have."""

    rests = frozenset({EventKind.WAITING})

    def __init__(
        self,
        name: str,
        operator: KazooClient,
        plan: Plan,
        folder: Path,
        begin_ns: int,
        fetch_every_s: float,
    ) -> None:
        self.cluster = plan.clusters[0]
        super().__init__(name, operator, sum(n for _, n in self.cluster.topics[0].by_broker))
        self.plans = {plan.node: plan for _, plan in plan.consumers()}
        self.folder = folder
        self.begin_ns = begin_ns
        self.fetch_every_s = fetch_every_s
        self.chroot = f"/{name}"
        self.others: list[OurProcess] = []
        self._started = 0
        folder.mkdir()
        operator.ensure_path(self.chroot)
        self.data = DataPlane(self.cluster, folder / "cluster", lambda: 0, lambda *_: None)
        self.owned = [
            f"{self.chroot}{paths.owner(GROUP, partition)}"
            for partition in sort_partitions(self._all_partitions(), self.cluster.layout)
        ]

    def _all_partitions(self) -> list[Any]:
        found = [self.data.partitions_of(plan.broker_id) for plan in self.cluster.brokers]
        return [partition for some in found for partition in some]

    def _start(self, process: OurProcess, node: str, program: Program, **more: Any) -> Path:
        self._started += 1
        trace_path = self.folder / f"{node.replace('/', '-')}.{self._started}.jsonl"
        hosts = ",".join(f"{host}:{port}" for host, port in self.operator.hosts)
        job = Job(
            node,
            GROUP if node in self.plans else "",
            program,
            hosts,
            self.chroot,
            SESSION_TIMEOUT_MS,
            str(trace_path),
            str(self.data.file.path),
            self.begin_ns,
            {},
            **more,
        )
        process.begin(job)
        return trace_path

    def form(self, nodes: list[str]) -> None:
        """Start brokers, the administrator, and then the members."""
        for plan, port in zip(self.cluster.brokers, free_ports(BROKERS), strict=True):
            on_disk = self.data.disks.get(plan.broker_id, {})
            self.data.open(plan, f"{HOST}:{port}")
            program = broker_program(self.cluster, plan, on_disk)
            self._start_other(plan.node, program, port=port)
        if self.cluster.layout == "0.8":
            homes = self.data.homes[TOPIC]
            self.data.lead(
                {f"{TOPIC}/{partition}": brokers[0] for partition, brokers in homes.replicas}
            )
            topics = tuple(sorted(self.data.homes.items()))
            program = administrator(Administrator("administrator", topics))
            self._start_other("administrator", program)
        super().form(nodes)

    def _start_other(self, node: str, program: Program, **more: Any) -> None:
        process = self.prepare()
        self.others.append(process)
        self._start(process, node, program, **more)

    def prepare(self) -> OurProcess:
        """Start a process, and wait until it is ready."""
        process = OurProcess(self.folder / "errors", lambda *_: None)
        process.is_ready.wait(PATIENCE_S)
        return process

    def start(self, node: str, prepared: OurProcess) -> Path:
        """Make the process this member; return the path of its trace."""
        plan = self.plans[node]
        program = consumer_program(self.cluster, GROUP, plan, life=1, new_id=False)
        return self._start(
            prepared,
            node,
            program,
            fetch_every_s=self.fetch_every_s,
            ends_on_error=plan.variant.fetch_errors is FetchErrors.END_FETCHER,
        )

    def read_registry(self) -> Held:
        """Return the owners; a claim is one znode, so no partition has two."""
        requests = [(path, self.operator.exists_async(path)) for path in self.owned]
        seen = [(path, result.get()) for path, result in requests]
        return {path: stat.ephemeralOwner for path, stat in seen if stat is not None}

    def registers(self, row: Row) -> bool:
        """Whether this row is the request that registers a member."""
        return row.kind == EventKind.REQUEST and row.detail["purpose"] == "register"

    def cost(self, newcomer: str) -> Cost:
        """Return the cost of a join by the rows of all members."""
        rows = {node: trace.rows for node, trace in self.traces.items()}
        requests = [
            row for some in rows.values() for row in some if row.kind == EventKind.REQUEST
        ]
        operations = sum(operations_of(row) for row in requests)
        return Cost(operations, *critical_path(rows, newcomer))

    def close(self) -> None:
        """End every process."""
        super().close()
        for other in self.others:
            other.close()


def operations_of(row: Row) -> int:
    """Return the number of requests in a row: a batch has several."""
    return int(row.detail["number"]) if row.detail["op"] == "pipelined" else 1


def critical_path(rows: Mapping[str, list[Row]], newcomer: str) -> tuple[int, float]:
    """Return the round trips and the seconds of sleep on the critical path to rest.

    The path goes back along the requests of the member that came to rest last. Where that member
    was idle, a notification woke it: of a claim that went away, so the path continues at the
    member with the last release before that; or of the newcomer, where the path begins.
    """
    node = max(rows, key=lambda name: rows[name][-1].at_us if rows[name] else -1)
    at = len(rows[node])
    trips, slept_ms = 0, 0
    while at > 0:
        at -= 1
        row = rows[node][at]
        slept_ms += row.detail["ms"] if row.kind == EventKind.SLEEPING else 0
        if row.kind == EventKind.REQUEST:
            trips += 1
            if node == newcomer and row.detail["purpose"] == "register":
                break
        if row.kind == EventKind.WOKEN:
            notified = _last_before(rows[node][:at], EventKind.NOTIFIED)
            if notified is not None:
                node, at = _cause(rows, node, newcomer, notified)
    return trips, slept_ms / 1000


def _last_before(rows: list[Row], kind: str) -> Row | None:
    return next((row for row in reversed(rows) if row.kind == kind), None)


def _cause(
    rows: Mapping[str, list[Row]], woken: str, newcomer: str, notified: Row
) -> tuple[str, int]:
    """Return the member that caused a notification, and the row number after its request."""
    purpose = "release" if notified.detail["what"] == "deleted" else "register"
    causes = [
        (row.at_us, node, at + 1)
        for node, some in rows.items()
        if node != woken and (purpose == "release" or node == newcomer)
        for at, row in enumerate(some)
        if row.kind == EventKind.REQUEST
        and row.detail["purpose"] == purpose
        and row.at_us < notified.at_us
    ]
    _, node, at = max(causes, default=(0, newcomer, 0))
    return node, at


# --- kazoo's recipe --------------------------------------------------------------------


class RecipeProcess:
    """The process of a member of kazoo's recipe."""

    def __init__(self, errors: Path) -> None:
        script = Path(__file__).with_name("recipe_member.py").resolve()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with errors.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=environment,
                text=True,
            )

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Wait until its imports are done."""
        assert self._process.stdout is not None, "it was started with a pipe"
        self._process.stdout.readline()

    def send(self, line: str) -> None:
        """Send it its task, or an order."""
        assert self._process.stdin is not None, "it was started with a pipe"
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def leave(self) -> None:
        """Make it leave its group and end."""
        self.send("leave")

    def close(self) -> None:
        """Kill it if it still runs, and release its resources."""
        if self.is_alive:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Recipe(Group):
    """kazoo's SetPartitioner."""

    rests = frozenset({"acquired"})

    def __init__(
        self,
        name: str,
        operator: KazooClient,
        partitions: list[str],
        folder: Path,
        begin_ns: int,
        settle_s: float,
    ) -> None:
        super().__init__(name, operator, len(partitions))
        self.names = partitions
        self.folder = folder
        self.begin_ns = begin_ns
        self.settle_s = settle_s
        self.path = f"/{name}"
        self._before: dict[str, int] = {}
        self._started = 0
        folder.mkdir()

    def prepare(self) -> RecipeProcess:
        """Start a process, and wait until it is ready."""
        process = RecipeProcess(self.folder / "errors")
        process.wait()
        return process

    def start(self, node: str, prepared: RecipeProcess) -> Path:
        """Make the process this member; return the path of its trace."""
        self._started += 1
        self._before = {
            name: trace.last.detail["requests"]
            for name, trace in self.traces.items()
            if trace.last
        }
        trace_path = self.folder / f"{node.replace('/', '-')}.{self._started}.jsonl"
        hosts = ",".join(f"{host}:{port}" for host, port in self.operator.hosts)
        task = Task(
            node.replace("/", "-"),
            hosts,
            self.path,
            self.names,
            self.settle_s,
            SESSION_TIMEOUT_MS,
            str(trace_path),
            self.begin_ns,
        )
        prepared.send(json.dumps(task._asdict()))
        return trace_path

    def read_registry(self) -> Held:
        """Return the owners; a lock is held by the only member in its queue."""
        folders = [f"{self.path}/locks/{name}" for name in self.names]
        requests = [(path, self.operator.get_children_async(path)) for path in folders]
        lines = [(path, self._line(result)) for path, result in requests]
        alone = [(path, f"{path}/{line[0]}") for path, line in lines if len(line) == 1]
        looked = [(path, self.operator.exists_async(lock)) for path, lock in alone]
        seen = [(path, result.get()) for path, result in looked]
        return {path: stat.ephemeralOwner for path, stat in seen if stat is not None}

    def _line(self, result: Any) -> list[str]:
        try:
            names: list[str] = result.get()
        except NoNodeError:
            return []
        return names

    def registers(self, row: Row) -> bool:
        """Whether this row is the request that registers a member."""
        return row.kind == "registers"

    def cost(self, newcomer: str) -> Cost:
        """Return the requests that the members have counted; each sends one at a time."""
        before = dict(self._before)
        rows = self.traces[newcomer].rows
        before[newcomer] = next(row.detail["requests"] for row in rows if row.kind == "registers")
        counts = [
            trace.last.detail["requests"] - before[node]
            for node, trace in self.traces.items()
            if trace.last is not None
        ]
        return Cost(sum(counts), max(counts))
