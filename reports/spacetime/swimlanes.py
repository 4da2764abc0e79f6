"""The swimlanes of a space-time diagram: their owners, order and states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.facts.intervals import last_event
from watchkeeper.reports.facts.names import natural
from watchkeeper.reports.facts.sessions import UP, process_states, server_states
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.ownership.ownership import consumers

LaneKind = Literal["consumer", "server", "process"]


@dataclass(frozen=True, slots=True)
class Lane:
    """The lane of one process, or of one ZooKeeper server."""

    name: str
    kind: LaneKind
    states: tuple[Span, ...]


def lanes(trace: Trace) -> list[Lane]:
    """Consumers on one side, brokers and others on the other, servers between them.

    So messages between a consumer and its server cross few lanes. The side with fewer lanes is on
    the left: every message goes to or from a server, and with many consumers the servers must not
    be far to the right of them.
    """
    processes = process_states(trace)
    servers = server_states(trace)
    members = consumers(trace)
    others = sorted(set(processes).difference(members), key=natural)
    sides = [
        [Lane(name, "consumer", tuple(processes.get(name, ()))) for name in members],
        [Lane(name, "process", tuple(processes[name])) for name in others],
    ]
    left, right = sorted(sides, key=len)
    middle = [
        Lane(name, "server", _whole(servers.get(name, ()), trace))
        for name in server_names(trace, processes)
    ]
    return [*left, *middle, *right]


def server_names(trace: Trace, processes: Iterable[str]) -> list[str]:
    """Every server that a client was connected to, or that wrote an event itself."""
    names = {
        str(event.detail.get("at", ""))
        for event in trace.of_kind(EventKind.CONNECTED, EventKind.WATCH_FIRED)
    }
    own = (
        EventKind.LEADER_ELECTED,
        EventKind.LEADER_LOST,
        EventKind.SERVER_STATE,
        EventKind.SESSION_OPENED,
        EventKind.SESSION_MOVED,
    )
    names.update(event.node for event in trace.of_kind(*own))
    return sorted(names.difference(processes, {""}), key=natural)


def _whole(states: Sequence[Span], trace: Trace) -> tuple[Span, ...]:
    """The states of a server, which was up before its first event."""
    last = last_event(trace)
    if last is None:
        return tuple(states)
    if not states:
        return (Span(UP, 0, last.t_us, 0, last.seq),)
    first = states[0]
    before = Span(UP, 0, first.start_us, 0, first.first_seq)
    return (before, *states) if first.start_us else tuple(states)
