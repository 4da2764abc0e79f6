"""The lanes of a space-time diagram: who has one, in which order, and in what state it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from model.trace import Trace
from reports.intervals import last_event
from reports.labels import natural
from reports.ownership import consumers
from reports.sessions import UP, process_states, server_states
from reports.spans import Span

LaneKind = Literal["consumer", "server", "process"]


@dataclass(frozen=True, slots=True)
class Lane:
    """The line of one process, or of one ZooKeeper server."""

    name: str
    kind: LaneKind
    states: tuple[Span, ...]


def lanes(trace: Trace) -> list[Lane]:
    """Consumers on one side, brokers and others on the other, the servers in between.

    So what a consumer and its server say to each other crosses as few lanes as can be. The
    side with fewer lanes is on the left: whatever is said is said to a server, and where
    there are many consumers the servers must not be far off to the right of them.
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
    names = {str(event.detail.get("at", "")) for event in trace.of_kind("connected", "fires")}
    own = ("leads", "leader lost", "server", "session opened", "session moved")
    names.update(event.node for event in trace.of_kind(*own))
    return sorted(names.difference(processes, {""}), key=natural)


def _whole(states: Sequence[Span], trace: Trace) -> tuple[Span, ...]:
    """The states of a server, which was up before anything was said of it."""
    last = last_event(trace)
    if last is None:
        return tuple(states)
    if not states:
        return (Span(UP, 0, last.t_us, 0, last.seq),)
    first = states[0]
    before = Span(UP, 0, first.start_us, 0, first.first_seq)
    return (before, *states) if first.start_us else tuple(states)
