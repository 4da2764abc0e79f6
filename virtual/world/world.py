"""One run: processes in virtual time, a ZooKeeper, faults, and the properties that judge it.

A test's function prepares a world: it starts processes with ordinary functions, and says what
has to hold. Then the world runs, until every process has ended and every *eventually* has come
true, or until its time is over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.properties.verdicts import Finding
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import LINE
from watchkeeper.virtual.modules.own_modules import OwnModules
from watchkeeper.virtual.network.network import Network
from watchkeeper.virtual.threads.errors import VirtualTimeError
from watchkeeper.virtual.threads.lock import NS
from watchkeeper.virtual.threads.process import Process
from watchkeeper.virtual.threads.scheduler import Scheduler
from watchkeeper.virtual.threads.task import Policy, Task, TaskState, ring_from
from watchkeeper.virtual.threads.thread import MAIN, forget_threads, start_main
from watchkeeper.virtual.world.checks import (
    Always,
    AtEnd,
    Check,
    Elements,
    Entry,
    Eventually,
    Exclusion,
    Predicate,
)
from watchkeeper.virtual.world.faults import Strike
from watchkeeper.virtual.world.nemesis import Nemesis
from watchkeeper.virtual.world.source_lines import user_line
from watchkeeper.virtual.zookeeper.service import ZooKeeperService


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """What is the same in all runs of a test."""

    until_s: float = 60.0
    """When a run ends at the latest."""
    servers: int = 1
    """How many servers the ZooKeeper has."""
    zookeeper: EnsembleSettings | None = None
    modules: tuple[str, ...] = ()
    """The modules of which each process has its own copy."""
    preempt: tuple[str, ...] = ()
    """The modules in which a thread may be preempted between any two lines."""
    allow: tuple[str, ...] = ()
    """What cannot be virtual and is permitted all the same."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a process runs."""

    name: str
    target: Callable[..., object]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class World:
    """The processes of one run, and what has to hold of them."""

    def __init__(
        self,
        policy: Policy,
        *,
        seed: int = 0,
        settings: WorldSettings | None = None,
        plan: tuple[Strike, ...] = (),
    ) -> None:
        self.settings = settings or WorldSettings()
        self.seed = seed
        self.scheduler = Scheduler(policy, seed=seed)
        self.scheduler.allowed = frozenset(self.settings.allow)
        self.chance = Random(self.scheduler.random.getrandbits(64))
        """For the test's own draws."""
        self.network = Network(self.scheduler)
        self.scheduler.network = self.network
        self.nemesis = Nemesis(self, plan)
        self.zookeeper = ZooKeeperService(
            self.scheduler,
            self.network,
            servers=self.settings.servers,
            settings=self.settings.zookeeper,
            received=self.nemesis.received,
            lines=self.scheduler.lines,
        )
        self.checks: list[Check] = []
        self.deaths: list[tuple[Task, BaseException, int]] = []
        self._at_end: list[Callable[[], object]] = []
        self._programs: dict[int, Program] = {}
        self._to_start = 0
        self._sections: dict[str, tuple[Exclusion, Exclusion]] = {}
        self._waits: list[Eventually] = []
        self._judged: list[Check] = []
        self._last_end_us = 0
        self._shared_modules: OwnModules | None = None
        """The copies that all processes share: modules that are only preempted."""
        if self.settings.modules or self.settings.preempt:
            self._shared_modules = OwnModules(self.settings.preempt, self.settings.preempt)
        self.scheduler.after_end = self._thread_ended
        self.scheduler.ended = self._process_ended

    # --- what a test says --------------------------------------------------------------

    @property
    def hosts(self) -> str:
        """The servers, as a ZooKeeper connection string."""
        return self.zookeeper.hosts

    @property
    def znodes(self) -> dict[str, bytes]:
        """Path -> data of every znode, as the leader of the servers has them now."""
        nodes = self.zookeeper.ensemble.head.nodes
        return {path: node.data or b"" for path, node in nodes.items()}

    @property
    def now_s(self) -> float:
        """Virtual seconds since the begin of the run."""
        return self.scheduler.now_ns / NS

    @property
    def now_us(self) -> int:
        """Virtual microseconds since the begin of the run."""
        return self.scheduler.now_ns // 1000

    def process(
        self,
        name: str,
        target: Callable[..., object],
        *args: Any,
        starts_at_s: float = 0.0,
        **kwargs: Any,
    ) -> None:
        """Start a process of this name, whose main thread calls `target`."""
        if not callable(target):
            raise VirtualTimeError(
                f"process {name!r} has {target!r} as its target, which cannot be called; "
                "pass the function and its arguments: world.process(name, function, ...)"
            )
        program = Program(name, target, args, kwargs)
        self._to_start += 1
        self.scheduler.call_at(int(starts_at_s * NS), lambda: self._start(program))

    def always(self, predicate: Predicate, name: str = "") -> None:
        """A predicate has to hold after each turn of each thread."""
        self.check(Always(name or _name_of(predicate), predicate))

    def eventually(self, predicate: Predicate, *, within_s: float = 30.0, name: str = "") -> None:
        """A predicate has to be true at some moment within some time after the last fault."""
        self.check(Eventually(name or _name_of(predicate), predicate, within_s))

    def finally_(self, predicate: Predicate, name: str = "") -> None:
        """A predicate has to hold at the end of the run."""
        self.check(AtEnd(name or _name_of(predicate), predicate))

    def check(self, check: Check) -> None:
        """Judge the run by a property, one of `watchkeeper.virtual.checks` or an own one."""
        self.checks.append(check)
        if isinstance(check, Eventually):
            self._waits.append(check)
        # A section with few threads in it need not be looked at: it registers itself.
        if type(check).turn not in (Check.turn, Exclusion.turn):
            self.judge_turns(check)

    def judge_turns(self, check: Check) -> None:
        """Judge the run by a property after each turn of a thread from now on."""
        if check not in self._judged:
            self._judged.append(check)
            self.scheduler.after_turn = self._after_turn

    def elements(self, name: str, left: Callable[[], Collection[Any]] | None = None) -> Elements:
        """Count the elements of a queue: none may be lost or doubled."""
        check = Elements(name, left)
        self.check(check)
        return check

    def record(self, kind: str, **detail: Any) -> None:
        """Write an event of one's own into the trace, at the process that runs."""
        self._record(kind, detail)

    def _record(self, kind: str, detail: dict[str, Any], *, session: int = 0) -> None:
        task = self.scheduler.running
        node = task.process.name if task is not None else "world"
        line = user_line() if task is not None else ""
        detail = {**detail, LINE: line} if line else detail
        self.zookeeper.record.write(node, kind, session, detail)

    @property
    def sections(self) -> dict[str, Exclusion]:
        """Name -> the strict form of mutual exclusion of a section, with who is in it."""
        return {name: strict for name, (strict, _) in self._sections.items()}

    @contextmanager
    def section(
        self, name: str, client: Any = None, *, most: int = 1, session: int | None = None
    ) -> Iterator[None]:
        """A critical section: at most `most` threads may be in it at once.

        With the client that guards it, the strict form of the property counts a thread only
        while its session lives; without, both forms are the same. `session` is the session in
        which the section was acquired, where it may have ended before the section is entered.
        """
        task = self.scheduler.running
        assert task is not None, "sections are entered by processes"
        if name not in self._sections:
            self._sections[name] = self._new_sections(name, most)
        known = None if client is None else client.client_id
        if session is None:
            session = known[0] if known else 0
        entry = Entry(task, self.now_us, client, session)
        where = {"section": name, "most": most}
        if task.name != MAIN:
            where["thread"] = task.name
        self._record(EventKind.ENTERED, where, session=session)
        for check in self._sections[name]:
            check.enter(entry, self)
        try:
            yield
        finally:
            for check in self._sections[name]:
                check.inside.remove(entry)
            if not self.scheduler.is_torn_down:
                self._record(EventKind.LEFT, where, session=session)

    def _new_sections(self, name: str, most: int) -> tuple[Exclusion, Exclusion]:
        pair = (Exclusion(name, most, is_strict=True), Exclusion(name, most, is_strict=False))
        for check in pair:
            self.check(check)
        return pair

    # --- processes ---------------------------------------------------------------------

    @property
    def has_processes(self) -> bool:
        """Whether the test has started one."""
        return bool(self._to_start or self.scheduler.processes)

    def _start(self, program: Program) -> Process:
        self._to_start -= 1
        process = self.scheduler.add_process(program.name)
        self._programs[process.pid] = program
        self.zookeeper.record.name(process.address, program.name)
        self.zookeeper.record.write(program.name, EventKind.STARTED)
        target = self._target_of(program)
        start_main(self.scheduler, process, lambda: target(*program.args, **program.kwargs))
        return process

    def _target_of(self, program: Program) -> Callable[..., object]:
        """The function that a process calls, from its own copy of the module if it has one."""
        if self._shared_modules is None:
            return program.target
        settings = self.settings
        own = OwnModules(settings.modules, settings.preempt, outer=self._shared_modules)
        return own.target_of(program.target)

    def restart(self, process: Process) -> None:
        """Start a process that has ended anew, with a new number and address."""
        self._to_start += 1
        self._start(self._programs[process.pid])

    def _process_ended(self, process: Process) -> None:
        self._last_end_us = self.now_us
        self.zookeeper.record.write(process.name, EventKind.ENDED, detail={"why": process.ending})
        self.look()

    def look(self) -> None:
        """Judge the run where no thread has a turn: at the end of a process, and at a fault."""
        for check in self._judged:
            check.turn(self)
        self._stop_if_over()

    def sessions_of(self, process: Process) -> list[int]:
        """The sessions whose connections come from a process, the oldest first."""
        return sorted(
            session
            for session, connection in self.zookeeper.ensemble.owners.items()
            if connection.host == process.address
        )

    @property
    def server_addresses(self) -> tuple[str, ...]:
        """The address of each server."""
        return self.zookeeper.addresses

    def report_fault(self, name: str, node: str, **detail: Any) -> None:
        """Write a fault, or its end if it has no `lasts`, into the trace."""
        lasts = detail.get("lasts")
        is_end = lasts is None and name not in ("crash", "clock skew")
        kind = EventKind.FAULT_ENDED if is_end else EventKind.FAULT
        self.zookeeper.record.write(node, kind, detail={"verb": name, **detail})

    # --- the run -----------------------------------------------------------------------

    def run(self) -> None:
        """Run until everything has ended, or until the time is over."""
        self.nemesis.begin()
        self.scheduler.run(int(self.settings.until_s * NS))
        self.zookeeper.record.write("", EventKind.RUN_ENDED)
        for call in self._at_end:
            call()

    def at_end(self, call: Callable[[], object]) -> None:
        """Call a function once the run is over."""
        self._at_end.append(call)

    def _after_turn(self, task: Task) -> None:
        for check in self._judged:
            check.turn(self)

    def _thread_ended(self, task: Task) -> None:
        deaths = self.scheduler.deaths
        if deaths:  # not in most runs
            for death in deaths[len(self.deaths) :]:
                self.deaths.append((*death, self.now_us))
        if not task.process.is_alive or not task.process.tasks:
            self._stop_if_over()

    def _stop_if_over(self) -> None:
        if self._to_start or any(process.is_alive for process in self.scheduler.processes):
            return
        if any(check.held_at_us is None for check in self._waits):
            return
        if all(blow.end is None for blow in self.nemesis.blows):
            self.scheduler.stop_requested = True

    @property
    def calm_since_us(self) -> int:
        """When the last fault struck or ended."""
        return self.nemesis.last_effect_us

    @property
    def is_silent(self) -> bool:
        """Whether no process of the world lives, so that nothing will come true any more."""
        return not any(process.is_alive for process in self.scheduler.processes)

    @property
    def silent_since_us(self) -> int:
        """When the last process ended, or 0."""
        return self._last_end_us

    def blocked_tasks(self, longer_than_s: float) -> list[Task]:
        """The threads that wait without a limit for so long, the longest first."""
        before_ns = self.scheduler.now_ns - int(longer_than_s * NS)
        blocked = [
            task
            for process in self.scheduler.processes
            if process.is_alive and not process.is_paused
            for task in process.tasks
            if task.state is TaskState.BLOCKED
            and not task.has_timeout
            and task.blocked_since_ns <= before_ns
        ]
        return sorted(blocked, key=lambda task: task.blocked_since_ns)

    def deadlock(self) -> list[Task]:
        """Threads that wait for each other's locks for ever; empty if there are none."""
        tasks = [each for process in self.scheduler.processes for each in process.tasks]
        alive = (task for task in tasks if task.process.is_alive)
        return next((ring for ring in map(ring_from, alive) if ring), [])

    def findings(self) -> tuple[Finding, ...]:
        """The findings of all checks."""
        return tuple(check.end(self) for check in self.checks)

    def tear_down(self) -> None:
        """Unwind every thread; to be called once, after the findings."""
        self.zookeeper.stop()
        self.scheduler.tear_down()
        forget_threads(self.scheduler)


def _name_of(predicate: Predicate) -> str:
    name = getattr(predicate, "__name__", "")
    return name.replace("_", " ") if name and name != "<lambda>" else "a predicate"
