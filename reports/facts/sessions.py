"""The state of each process and of each ZooKeeper server through a run.

A process is in exactly one state at a time. Where several things are true of it, the one
that tells most counts: a process that stands still is paused whatever else it is, since it
does nothing; one that runs is a *zombie* from the end of its session until it learns of it,
whether it is connected or suspended meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from model.trace import Event, Trace
from reports.intervals import last_event
from reports.spans import Span, SpanMaker

CONNECTED = "connected"
SUSPENDED = "suspended"
ZOMBIE = "session dead, process runs"
PAUSED = "paused"
PAUSED_DEAD = "paused, session dead"
NO_SESSION = "no session"
LEFT_BEHIND = "process gone, session lives on"
NOT_RUNNING = "not running"

KINDS = (
    "starts",
    "ends",
    "connected",
    "suspended",
    "expired",
    "session expired",
    "session closed",
    "fault",
    "fault ends",
)

UP = "up"
LEADING = "leading"
DOWN = "down"
SERVER_KINDS = ("server", "leads", "leader lost")


@dataclass(slots=True)
class Process:
    """What is known of a process."""

    runs: bool = False
    is_connected: bool = False
    paused_by: int | None = None
    """The entry of the timeline that makes it stand still."""
    session: int = 0
    """The session it believes to have."""
    has_dead_session: bool = False

    @property
    def state(self) -> str:
        """The one word for it."""
        if not self.runs:
            return LEFT_BEHIND if self.session and not self.has_dead_session else NOT_RUNNING
        if self.paused_by is not None:
            return PAUSED_DEAD if self.has_dead_session else PAUSED
        if self.has_dead_session:
            return ZOMBIE
        if not self.session:
            return NO_SESSION
        return CONNECTED if self.is_connected else SUSPENDED


class Processes:
    """All processes at one moment of a run, moved on by one event at a time."""

    def __init__(self) -> None:
        self.by_name: dict[str, Process] = {}
        self._dead: set[tuple[str, int]] = set()
        """Sessions that the ensemble has ended, each with its node: numbers are per ensemble."""

    def take(self, event: Event) -> str:
        """Take an event into account; the node whose state it may have changed."""
        if event.kind in ("session expired", "session closed"):
            return self._session_ends(event)
        if event.kind == "starts":
            self.by_name[event.node] = Process(runs=True)
        process = self.by_name.get(event.node)
        if process is not None:
            self._change(process, event)
        return event.node

    def _session_ends(self, event: Event) -> str:
        node = str(event.detail.get("by", ""))
        process = self.by_name.get(node)
        if event.kind == "session expired":
            self._dead.add((node, event.session))
        if process is not None and process.session == event.session:
            process.has_dead_session = event.kind == "session expired"
            process.session = event.session if process.has_dead_session else 0
        return node

    def _change(self, process: Process, event: Event) -> None:
        if event.kind == "ends":
            process.runs = False
        elif event.kind == "connected":
            process.is_connected = True
            process.session = event.session
            process.has_dead_session = (event.node, event.session) in self._dead
        elif event.kind == "suspended":
            process.is_connected = False
        elif event.kind == "expired":
            process.is_connected = process.has_dead_session = False
            process.session = 0
        elif event.detail.get("verb") == "pause":
            self._pause(process, event)

    def _pause(self, process: Process, event: Event) -> None:
        number = event.detail.get("number")
        if event.kind == "fault" and process.paused_by is None:
            process.paused_by = number
        elif event.kind == "fault ends" and process.paused_by == number:
            process.paused_by = None


def process_states(trace: Trace) -> dict[str, list[Span]]:
    """The states of every process that ever started, as spans that meet end to end."""
    processes = Processes()
    making: SpanMaker[str] = SpanMaker()
    for event in trace.of_kind(*KINDS):
        name = processes.take(event)
        if name in processes.by_name:
            making.change(name, processes.by_name[name].state, event)
    return making.end_all(last_event(trace))


def paused(trace: Trace) -> dict[str, list[Span]]:
    """When each process stood still, and therefore fetched nothing."""
    processes = Processes()
    making: SpanMaker[str] = SpanMaker()
    for event in trace.of_kind("starts", "ends", "fault", "fault ends"):
        name = processes.take(event)
        process = processes.by_name.get(name)
        if process is None:
            continue
        if process.runs and process.paused_by is not None:
            making.begin(name, PAUSED, event)
        else:
            making.end(name, event)
    return making.end_all(last_event(trace))


def without_session(trace: Trace) -> dict[str, list[Span]]:
    """When the session that a process was last connected with was not alive.

    Runs are judged by the same measure: a session that was opened and that its process has
    not heard of yet does not make its older one any more alive.
    """
    making: SpanMaker[str] = SpanMaker()
    current: dict[str, int] = {}
    ended: set[tuple[str, int]] = set()
    for event in trace.of_kind("starts", "connected", "session expired", "session closed"):
        node = event.node
        if event.kind == "connected":
            current[node] = event.session
        elif event.kind == "starts":
            current.pop(node, None)
        else:
            node = str(event.detail.get("by", ""))
            ended.add((node, event.session))
        if node in current and (node, current[node]) not in ended:
            making.end(node, event)
        else:
            making.begin(node, "no live session", event)
    return making.end_all(last_event(trace))


def server_states(trace: Trace) -> dict[str, list[Span]]:
    """The states of the ZooKeeper servers, as far as the trace tells of them."""
    making: SpanMaker[str] = SpanMaker()
    now: dict[str, str] = {}
    for event in trace.of_kind(*SERVER_KINDS):
        state = _server_state(event, now.get(event.node, UP))
        now[event.node] = state
        making.change(event.node, state, event)
    return making.end_all(last_event(trace))


def _server_state(event: Event, before: str) -> str:
    if event.kind == "leads":
        return LEADING
    if event.kind == "leader lost":  # it may have lost that by going down
        return UP if before == LEADING else before
    said = str(event.detail.get("state", UP))
    return UP if said == "resumed" else said
