"""Measures a live ZooKeeper: member processes send requests, and their traces are evaluated.

Everything is written below a temporary znode, which is removed at the end unless this process is
killed. The asker and the watcher are processes, as members are; the sessions that are left to
expire are threads of this process.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from watchkeeper.model.actor.program import Program
from watchkeeper.model.calibration.latency import (
    Measured,
    NoMeasurement,
    Samples,
    measured,
    merged,
)
from watchkeeper.model.calibration.probe_program import (
    ASKER,
    OBSERVER,
    SLEEPER,
    WATCHER,
    Procedure,
    Sizes,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Row
from watchkeeper.real.client.client import Client, ClientEvent
from watchkeeper.real.client.scratch_znode import signals_ignored, temporary_znode
from watchkeeper.real.embed.member import Halt, Halted, LiveDriver
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.member.job import Job
from watchkeeper.real.trace.writer import RowWriter
from watchkeeper.real.world.process import MemberProcess

NAME = "watchkeeper-calibration"
TIMEOUT_MS = 10_000
SHORT_MS = 1_000
"""The session timeout of the sleepers; the server may grant no less than two ticks."""
TIMEOUT_S = 120.0
READY_WITHIN_S = 30.0
POLL_S = 0.1

Progress = Callable[[str], None]
OnEvent = Callable[[ClientEvent], None]


@dataclass(frozen=True)
class Target:
    """The measured ZooKeeper."""

    addresses: tuple[str, ...]
    chroot: str
    """The znode below which everything is written; empty for the root."""
    options: Mapping[str, Any]
    """kazoo's options for access: `auth_data`, `use_ssl`, `ca`."""
    tick_ms: int | None
    """The server's tick; None if unknown."""
    knows_phase: bool
    """Whether the servers run on this machine, so that the phase of their ticks is known."""


@dataclass(frozen=True)
class ProgramIdentity:
    """The identity of a program of the measurement."""

    node: str


class IdleSession:
    """A program in a thread of this process, whose session can be left to expire."""

    def __init__(
        self, program: Program, sink: RowWriter, connect: Callable[[OnEvent], Client]
    ) -> None:
        self.driver = LiveDriver(program, sink, connect)
        self.thread = threading.Thread(target=self._run, name=sink.node, daemon=True)

    def _run(self) -> None:
        try:
            self.driver.run()
        except Halted:
            return

    def fall_silent(self) -> None:
        """Disconnect like a killed process: the session lives until it expires."""
        self.driver.client.abandon()
        self.driver.queue.put(Halt())


def calibrate(
    target: Target, operator: KazooClient, sizes: Sizes, progress: Progress
) -> Measured:
    """Measure; `operator` is a kazoo client connected below the target's chroot.

    Raises EnvironmentProblem or NoMeasurement, in a sentence.
    """
    with temporary_znode(operator, NAME) as name, tempfile.TemporaryDirectory() as folder:
        run = _Run(target, f"{target.chroot}/{name}", Path(folder), progress)
        try:
            return run.measure(sizes)
        finally:
            with signals_ignored():
                run.stop()


def version_of(operator: KazooClient) -> str:
    """The version of the server; "unknown" if it does not report one."""
    try:
        return ".".join(map(str, operator.server_version()))
    except (KazooException, OSError, ValueError):
        return "unknown"


class _Run:
    """One measurement."""

    def __init__(self, target: Target, chroot: str, folder: Path, progress: Progress) -> None:
        self.target = target
        self.chroot = chroot
        self.folder = folder
        self.progress = progress
        self.begin_ns = time.monotonic_ns()
        self.messages: SimpleQueue[tuple[MemberProcess, dict[str, Any]]] = SimpleQueue()
        self.members: list[MemberProcess] = []
        self.idle_sessions: list[IdleSession] = []

    def stop(self) -> None:
        """End every process, thread and session."""
        for member in self.members:
            member.close()
        for idle_session in self.idle_sessions:
            idle_session.fall_silent()
        for idle_session in self.idle_sessions:
            if idle_session.thread.ident is not None:
                idle_session.thread.join(READY_WITHIN_S)

    def measure(self, sizes: Sizes) -> Measured:
        """Run all measurements."""
        askers = len(self.target.addresses)
        self.members = [self._make() for _ in range(askers + 1)]
        for member in self.members:
            if not member.is_ready.wait(READY_WITHIN_S) or not member.is_alive:
                raise EnvironmentProblem(f"a process could not be started: {self._errors()}")
        parts = [self._expiry(sizes)]
        share = sizes.shared_by(askers)
        for number, address in enumerate(self.target.addresses):
            self.progress(f"asking {address}")
            parts.append(self._ask(share, number, address))
        samples = merged(parts)
        timeout_us = self._timeout_us()
        tick_us = 1000 * (self.target.tick_ms or timeout_us // 2000)
        return measured(
            samples,
            sizes,
            servers=askers,
            tick_us=tick_us,
            timeout_us=timeout_us,
            phase_us=-(self.begin_ns // 1000) % tick_us if self.target.knows_phase else None,
        )

    # --- requests ------------------------------------------------------------------------

    def _make(self) -> MemberProcess:
        return MemberProcess(
            self.folder / "errors", lambda *messages: self.messages.put(messages)
        )

    def _errors(self) -> str:
        output = (self.folder / "errors").read_text(errors="replace").strip()
        return output.rpartition("\n")[2] or "no output"

    def _ask(self, sizes: Sizes, number: int, address: str) -> Samples:
        """Measure one server; the first one has its watches measured too."""
        is_watched = number == 0
        procedure = Procedure(sizes, is_watched)
        names = [f"{WATCHER}/{number}"] if is_watched else []
        names.append(f"{ASKER}/{number}")
        at_work = [self._begin(self.members.pop(), name, procedure, address) for name in names]
        self._wait_for(at_work)
        return Samples(row for name in names for row in self._rows(name))

    def _begin(
        self, member: MemberProcess, name: str, procedure: Procedure, address: str
    ) -> MemberProcess:
        program = Program(procedure.turn, ProgramIdentity(name), None)
        member.begin(
            Job(
                name,
                "",
                program,
                address,
                self.chroot,
                TIMEOUT_MS,
                str(self._trace_file(name)),
                str(self.folder / "cluster.json"),
                self.begin_ns,
                {},
                kazoo=tuple(self.target.options.items()),
            )
        )
        return member

    def _trace_file(self, name: str) -> Path:
        return self.folder / f"{name.replace('/', '-')}.jsonl"

    def _rows(self, name: str) -> list[Row]:
        lines = self._trace_file(name).read_bytes().splitlines()
        return [msgspec.json.decode(line) for line in lines]

    def _wait_for(self, members: list[MemberProcess]) -> None:
        """Wait until these processes have ended."""
        ends = time.monotonic() + TIMEOUT_S
        left = list(members)
        try:
            while left:
                try:
                    member, message = self.messages.get(timeout=POLL_S)
                except Empty:
                    if time.monotonic() > ends:
                        raise NoMeasurement(
                            f"{left[0].node} was not done within {TIMEOUT_S:g} s; is the "
                            "connection slow, or a server overloaded? try --quick"
                        ) from None
                    continue
                if message.get("failed"):
                    raise NoMeasurement(f"{member.node} could not go on: {message['ended']}")
                if "gone" in message:
                    left.remove(member)
                    if message["gone"]:
                        raise NoMeasurement(f"{member.node} has died: {self._errors()}")
        finally:
            for member in members:
                member.close()

    # --- expiry ------------------------------------------------------------------------

    def _expiry(self, sizes: Sizes) -> Samples:
        """Silence sessions evenly throughout a tick, and measure when they expire."""
        self.progress(f"{sizes.sessions} sessions fall silent")
        procedure = Procedure(sizes)
        rows: list[Row] = []
        watching = self._idle_session(f"{OBSERVER}/0", procedure, rows, TIMEOUT_MS)
        watching.thread.start()
        self._until(rows, OBSERVER, "exists", sizes.sessions)
        silent = [
            self._idle_session(f"{SLEEPER}/{at}", procedure, rows, SHORT_MS)
            for at in range(sizes.sessions)
        ]
        apart_s = (self.target.tick_ms or 2000) / 1000 / sizes.sessions
        for idle_session in silent:
            began = time.monotonic()
            node = idle_session.thread.name
            idle_session.thread.start()
            self._until(rows, node, "create", 1)
            idle_session.fall_silent()
            time.sleep(max(apart_s - (time.monotonic() - began), 0))
        self.progress("waiting until these sessions have expired")
        watching.thread.join(TIMEOUT_S)
        if watching.thread.is_alive():
            raise NoMeasurement(f"not all sessions have expired within {TIMEOUT_S:g} s")
        return Samples(rows)

    def _idle_session(
        self, node: str, procedure: Procedure, rows: list[Row], timeout_ms: int
    ) -> IdleSession:
        program = Program(procedure.turn, ProgramIdentity(node), None)

        def connect(on_event: OnEvent) -> Client:
            hosts = ",".join(self.target.addresses)
            return Client(hosts, self.chroot, timeout_ms, on_event, self.target.options)

        idle_session = IdleSession(
            program, RowWriter(node, "", self.begin_ns, rows.append), connect
        )
        self.idle_sessions.append(idle_session)
        return idle_session

    def _until(self, rows: list[Row], node: str, word: str, number: int) -> None:
        """Wait until a program has received this many answers of this kind."""
        ends = time.monotonic() + READY_WITHIN_S
        while (
            sum(
                row[2] == EventKind.RESPONSE and row[1].startswith(node) and row[8]["op"] == word
                for row in list(rows)
            )
            < number
        ):
            if time.monotonic() > ends:
                raise NoMeasurement(
                    f"{node} has had no session within {READY_WITHIN_S:g} s; are there limits to "
                    "the connections of one address?"
                )
            time.sleep(0.002)

    def _timeout_us(self) -> int:
        """The session timeout that the server has granted the sleepers."""
        return self.idle_sessions[-1].driver.client.granted_ms * 1000
