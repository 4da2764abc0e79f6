"""Measures a real ZooKeeper: processes of members ask it, and what they write down is read.

Everything that is written stands below a znode of this measurement's own, which goes with
it whatever happens but a SIGKILL. The asker and the watcher are processes, as members are;
the sessions that are left to expire are threads of this one.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from model.measured import Measured, NoMeasurement, Samples, measured, merged
from model.measuring import ASKER, OBSERVER, SLEEPER, WATCHER, Procedure, Sizes
from model.program import Program
from model.trace import Row
from real.client import Client
from real.diary import Notes
from real.job import Job
from real.problems import EnvironmentProblem
from real.process import MemberProcess
from real.scratch import own_znode, undisturbed
from real.silent import Guest, Hear

NAME = "watchkeeper-calibration"
TIMEOUT_MS = 10_000
SHORT_MS = 1_000
"""The session timeout that the sleepers ask for; the server may grant no less than two ticks."""
PATIENCE_S = 120.0
READY_WITHIN_S = 30.0
LOOK_S = 0.1

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Place:
    """A ZooKeeper that is measured."""

    addresses: tuple[str, ...]
    chroot: str
    """Below which everything stands; empty for the root."""
    options: Mapping[str, Any]
    """What kazoo needs to come in: `auth_data`, `use_ssl`, `ca`."""
    tick_ms: int | None
    """None where it is not known."""
    knows_phase: bool
    """Whether ticks are counted on this machine's own clock: the servers run here."""


@dataclass(frozen=True)
class Me:
    """Whoever runs a program here."""

    node: str


def calibrate(place: Place, operator: KazooClient, sizes: Sizes, tell: Tell) -> Measured:
    """Measure; `operator` is a client of kazoo's that is connected below the place's chroot.

    Raises EnvironmentProblem or NoMeasurement, in a sentence.
    """
    with own_znode(operator, NAME) as name, tempfile.TemporaryDirectory() as folder:
        run = _Run(place, f"{place.chroot}/{name}", Path(folder), tell)
        try:
            return run.measure(sizes)
        finally:
            with undisturbed():
                run.stop()


def version_of(operator: KazooClient) -> str:
    """The version of the server, if it tells."""
    try:
        return ".".join(map(str, operator.server_version()))
    except (KazooException, OSError, ValueError):
        return "unknown"


class _Run:
    """One measurement."""

    def __init__(self, place: Place, chroot: str, folder: Path, tell: Tell) -> None:
        self.place = place
        self.chroot = chroot
        self.folder = folder
        self.tell = tell
        self.begin_ns = time.monotonic_ns()
        self.heard: SimpleQueue[tuple[MemberProcess, dict[str, Any]]] = SimpleQueue()
        self.members: list[MemberProcess] = []
        self.guests: list[Guest] = []

    def stop(self) -> None:
        """Leave no process, thread and session."""
        for member in self.members:
            member.close()
        for guest in self.guests:
            guest.fall_silent()
        for guest in self.guests:
            if guest.thread.ident is not None:
                guest.thread.join(READY_WITHIN_S)

    def measure(self, sizes: Sizes) -> Measured:
        """Measure all of it."""
        askers = len(self.place.addresses)
        self.members = [self._make() for _ in range(askers + 1)]
        for member in self.members:
            if not member.is_ready.wait(READY_WITHIN_S) or not member.is_alive:
                raise EnvironmentProblem(f"a process could not be started: {self._errors()}")
        parts = [self._expiry(sizes)]
        share = sizes.shared_by(askers)
        for number, address in enumerate(self.place.addresses):
            self.tell(f"asking {address}")
            parts.append(self._ask(share, number, address))
        samples = merged(parts)
        timeout_us = self._timeout_us()
        tick_us = 1000 * (self.place.tick_ms or timeout_us // 2000)
        return measured(
            samples,
            sizes,
            servers=askers,
            tick_us=tick_us,
            timeout_us=timeout_us,
            phase_us=-(self.begin_ns // 1000) % tick_us if self.place.knows_phase else None,
        )

    # --- asking ------------------------------------------------------------------------

    def _make(self) -> MemberProcess:
        return MemberProcess(self.folder / "errors", lambda *heard: self.heard.put(heard))

    def _errors(self) -> str:
        said = (self.folder / "errors").read_text(errors="replace").strip()
        return said.rpartition("\n")[2] or "it said nothing"

    def _ask(self, sizes: Sizes, number: int, address: str) -> Samples:
        """Let one server be asked; the first of them has its watches fired as well."""
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
        program = Program(procedure.turn, Me(name), None)
        member.begin(
            Job(
                name,
                "",
                program,
                address,
                self.chroot,
                TIMEOUT_MS,
                str(self._diary(name)),
                str(self.folder / "cluster.json"),
                self.begin_ns,
                {},
                kazoo=tuple(self.place.options.items()),
            )
        )
        return member

    def _diary(self, name: str) -> Path:
        return self.folder / f"{name.replace('/', '-')}.jsonl"

    def _rows(self, name: str) -> list[Row]:
        lines = self._diary(name).read_bytes().splitlines()
        return [msgspec.json.decode(line) for line in lines]

    def _wait_for(self, members: list[MemberProcess]) -> None:
        """Wait until these are gone."""
        ends = time.monotonic() + PATIENCE_S
        left = list(members)
        try:
            while left:
                try:
                    member, message = self.heard.get(timeout=LOOK_S)
                except Empty:
                    if time.monotonic() > ends:
                        raise NoMeasurement(
                            f"{left[0].node} was not done within {PATIENCE_S:g} s; is the "
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
        """Let sessions fall silent throughout a tick, and see when they end."""
        self.tell(f"{sizes.sessions} sessions fall silent")
        procedure = Procedure(sizes)
        rows: list[Row] = []
        watching = self._guest(f"{OBSERVER}/0", procedure, rows)
        watching.thread.start()
        self._until(rows, OBSERVER, "exists", sizes.sessions)
        silent = [self._guest(f"{SLEEPER}/{at}", procedure, rows) for at in range(sizes.sessions)]
        apart_s = (self.place.tick_ms or 2000) / 1000 / sizes.sessions
        for guest in silent:
            began = time.monotonic()
            node = guest.thread.name
            guest.thread.start()
            self._until(rows, node, "create", 1)
            guest.fall_silent()
            time.sleep(max(apart_s - (time.monotonic() - began), 0))
        self.tell("waiting until these sessions have expired")
        watching.thread.join(PATIENCE_S)
        if watching.thread.is_alive():
            raise NoMeasurement(f"not all sessions have expired within {PATIENCE_S:g} s")
        return Samples(rows)

    def _guest(self, node: str, procedure: Procedure, rows: list[Row]) -> Guest:
        program = Program(procedure.turn, Me(node), None)

        def connect(hear: Hear) -> Client:
            hosts = ",".join(self.place.addresses)
            return Client(hosts, self.chroot, SHORT_MS, hear, self.place.options)

        guest = Guest(program, Notes(node, "", self.begin_ns, rows.append), connect)
        self.guests.append(guest)
        return guest

    def _until(self, rows: list[Row], node: str, word: str, number: int) -> None:
        """Wait until a program has so many answers of this kind."""
        ends = time.monotonic() + READY_WITHIN_S
        while (
            sum(
                row[2] == "answers" and row[1].startswith(node) and row[8]["op"] == word
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
        """What the server has granted the sleepers."""
        return self.guests[-1].driver.client.granted_ms * 1000
