"""The state of each process and of each ZooKeeper server during a run.

A process is in exactly one state at a time. If several are true, the most important counts: a
paused process is paused whatever else it is, since it does nothing; a running process is a
*zombie* from the end of its session until it learns of it, connected or suspended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace, struck_by
from watchkeeper.reports.facts.intervals import last_event
from watchkeeper.reports.facts.spans import Span, SpanMaker

CONNECTED = "connected"
SUSPENDED = "suspended"
ZOMBIE = "session dead, process runs"
PAUSED = "paused"
PAUSED_DEAD = "paused, session dead"
NO_SESSION = "no session"
OUTLIVED = "program over, session lives on"
LEFT_BEHIND = "process gone, session lives on"
NOT_RUNNING = "not running"

KINDS = (
    EventKind.STARTED,
    EventKind.ENDED,
    EventKind.ABANDONED,
    EventKind.CONNECTED,
    EventKind.SUSPENDED,
    EventKind.EXPIRED,
    EventKind.SESSION_EXPIRED,
    EventKind.SESSION_CLOSED,
    EventKind.FAULT,
    EventKind.FAULT_ENDED,
)

UP = "up"
LEADING = "leading"
DOWN = "down"
SERVER_KINDS = (EventKind.SERVER_STATE, EventKind.LEADER_ELECTED, EventKind.LEADER_LOST)


@dataclass(slots=True)
class Process:
    """The known facts of a process."""

    runs: bool = False
    is_connected: bool = False
    paused_by: int | None = None
    """The timeline entry that pauses it."""
    session: int = 0
    """The session it believes to have."""
    has_dead_session: bool = False
    is_abandoned: bool = False
    """Whether its program is over; the process goes on with its client."""

    @property
    def state(self) -> str:
        """Its state, as one word."""
        if not self.runs:
            return LEFT_BEHIND if self.session and not self.has_dead_session else NOT_RUNNING
        if self.is_abandoned:
            return OUTLIVED if self.session and not self.has_dead_session else NO_SESSION
        if self.paused_by is not None:
            return PAUSED_DEAD if self.has_dead_session else PAUSED
        if self.has_dead_session:
            return ZOMBIE
        if not self.session:
            return NO_SESSION
        return CONNECTED if self.is_connected else SUSPENDED


class Processes:
    """All processes at one moment of a run, advanced event by event."""

    def __init__(self) -> None:
        self.by_name: dict[str, Process] = {}
        self._dead: set[tuple[str, int]] = set()
        """Sessions that the ensemble has ended, each with its node: numbers are per ensemble."""

    def take(self, event: Event) -> tuple[str, ...]:
        """Process an event; return the nodes whose state it may have changed."""
        if event.kind in (EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED):
            return (self._session_ends(event),)
        if event.kind == EventKind.STARTED:
            self.by_name[event.node] = Process(runs=True)
        for name in struck_by(event):
            process = self.by_name.get(name)
            if process is not None:
                self._change(process, event)
        return struck_by(event)

    def _session_ends(self, event: Event) -> str:
        node = str(event.detail.get("by", ""))
        process = self.by_name.get(node)
        if event.kind == EventKind.SESSION_EXPIRED:
            self._dead.add((node, event.session))
        if process is not None and process.session == event.session:
            process.has_dead_session = event.kind == EventKind.SESSION_EXPIRED
            process.session = event.session if process.has_dead_session else 0
        return node

    def _change(self, process: Process, event: Event) -> None:
        if event.kind == EventKind.ENDED:
            process.runs = False
        elif event.kind == EventKind.ABANDONED:
            process.is_abandoned = True
        elif event.kind == EventKind.CONNECTED:
            process.is_connected = True
            process.session = event.session
            process.has_dead_session = (event.node, event.session) in self._dead
        elif event.kind == EventKind.SUSPENDED:
            process.is_connected = False
        elif event.kind == EventKind.EXPIRED:
            process.is_connected = process.has_dead_session = False
            process.session = 0
        elif event.detail.get("verb") == "pause":
            self._pause(process, event)

    def _pause(self, process: Process, event: Event) -> None:
        number = event.detail.get("number")
        if event.kind == EventKind.FAULT and process.paused_by is None:
            process.paused_by = number
        elif event.kind == EventKind.FAULT_ENDED and process.paused_by == number:
            process.paused_by = None


def process_states(trace: Trace) -> dict[str, list[Span]]:
    """The states of every process that ever started, as spans that meet end to end."""
    processes = Processes()
    making: SpanMaker[str] = SpanMaker()
    for event in trace.of_kind(*KINDS):
        for name in processes.take(event):
            if name in processes.by_name:
                making.change(name, processes.by_name[name].state, event)
    return making.end_all(last_event(trace))


def paused(trace: Trace) -> dict[str, list[Span]]:
    """The spans in which each process was paused, and fetched nothing."""
    processes = Processes()
    making: SpanMaker[str] = SpanMaker()
    for event in trace.of_kind(
        EventKind.STARTED, EventKind.ENDED, EventKind.FAULT, EventKind.FAULT_ENDED
    ):
        for name in processes.take(event):
            process = processes.by_name.get(name)
            if process is None:
                continue
            if process.runs and process.paused_by is not None:
                making.begin(name, PAUSED, event)
            else:
                making.end(name, event)
    return making.end_all(last_event(trace))


def without_session(trace: Trace) -> dict[str, list[Span]]:
    """The spans in which the session of a process's last connection was dead.

    Runs are judged by the same rule: a newer session that its process has not learned of does not
    make the older one live.
    """
    making: SpanMaker[str] = SpanMaker()
    current: dict[str, int] = {}
    ended: set[tuple[str, int]] = set()
    for event in trace.of_kind(
        EventKind.STARTED,
        EventKind.CONNECTED,
        EventKind.SESSION_EXPIRED,
        EventKind.SESSION_CLOSED,
    ):
        node = event.node
        if event.kind == EventKind.CONNECTED:
            current[node] = event.session
        elif event.kind == EventKind.STARTED:
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
    """The states of the ZooKeeper servers, as far as the trace shows them."""
    making: SpanMaker[str] = SpanMaker()
    now: dict[str, str] = {}
    for event in trace.of_kind(*SERVER_KINDS):
        state = _server_state(event, now.get(event.node, UP))
        now[event.node] = state
        making.change(event.node, state, event)
    return making.end_all(last_event(trace))


def _server_state(event: Event, before: str) -> str:
    if event.kind == EventKind.LEADER_ELECTED:
        return LEADING
    if event.kind == EventKind.LEADER_LOST:  # it may have lost that by going down
        return UP if before == LEADING else before
    state = str(event.detail.get("state", UP))
    return UP if state == "resumed" else state


def shared_processes(trace: Trace) -> dict[str, str]:
    """Member -> the process in which it runs with others; without members that run alone."""
    return {
        event.node: str(event.detail["process"])
        for event in trace.of_kind(EventKind.STARTED)
        if "process" in event.detail
    }


def with_process(name: str, processes: Mapping[str, str]) -> str:
    """The name of a member, with the process that it shares: billing/0 (app)."""
    return f"{name} ({processes[name]})" if name in processes else name
