"""The items of a space-time diagram, as one flat list.

An item is on the lane of a process, or of a server, or on both, or spans all lanes; it has a
start and may have an end, and it names the events of the trace that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from watchkeeper.model.properties.verdicts import counted, duration
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.intervals import last_event
from watchkeeper.reports.facts.operations import (
    Asked,
    Firing,
    attach_effects,
    firings,
    operations,
)
from watchkeeper.reports.facts.timeline import BEGINNINGS, ENDS
from watchkeeper.reports.figure.labels import shortened

Kind = Literal["operation", "firing", "rebalance", "mark", "across"]

OPERATIONS = "operations"
FIRINGS = "watch firings"
REBALANCES = "rebalances"
SESSIONS = "sessions"
FETCHING = "fetching"
PROCESSES = "processes"
SERVERS = "servers"
TIMELINE = "timeline"
OTHERS = "other events"

NOUNS = {
    SESSIONS: "session events",
    FETCHING: "changes of fetching",
    PROCESSES: "events of processes",
    SERVERS: "events of servers",
    TIMELINE: "entries of the timeline",
}
"""How items of a category are called when they are counted, where its name is no plural."""

CATEGORIES: dict[str, str] = {
    EventKind.STARTED: PROCESSES,
    EventKind.ENDED: PROCESSES,
    EventKind.ABANDONED: PROCESSES,
    EventKind.TURN_FAILED: PROCESSES,
    EventKind.SLEEPING: PROCESSES,
    EventKind.CONNECTED: SESSIONS,
    EventKind.SUSPENDED: SESSIONS,
    EventKind.EXPIRED: SESSIONS,
    EventKind.SESSION_OPENED: SESSIONS,
    EventKind.SESSION_MOVED: SESSIONS,
    EventKind.SESSION_EXPIRED: SESSIONS,
    EventKind.SESSION_CLOSED: SESSIONS,
    EventKind.LEADER_ELECTED: SERVERS,
    EventKind.LEADER_LOST: SERVERS,
    EventKind.SERVER_STATE: SERVERS,
    EventKind.REBALANCE_FAILED: REBALANCES,
    EventKind.REBALANCE_ABANDONED: REBALANCES,
    EventKind.CLAIM_CONFLICT: REBALANCES,
    EventKind.FREED_CLAIMS_ACQUIRED: REBALANCES,
    EventKind.FETCH_FAILED: FETCHING,
    **dict.fromkeys((*BEGINNINGS, *ENDS), TIMELINE),
}
"""Kind of event -> category; a kind that is missing is an other event."""

DRAWN_OTHERWISE = frozenset(
    {
        EventKind.REQUEST,
        EventKind.RESPONSE,
        EventKind.APPLIED,
        EventKind.REFUSED,
        EventKind.WATCH_FIRED,
        EventKind.NOTIFIED,
        EventKind.FETCHING,
        EventKind.REBALANCE_STARTED,
        EventKind.REBALANCE_COMPLETED,
        EventKind.ASSIGNED,
    }
)
NOT_DRAWN = frozenset(
    {
        EventKind.WAITING,
        EventKind.WOKEN,
        EventKind.FETCHED,
        EventKind.HOSTING,
        EventKind.TOPIC_LOAD,
        EventKind.HOST_METRICS,
        EventKind.RUN_ENDED,
    }
)
"""Kinds that would hide the others: delivered messages, idle programs."""

LONGEST_PATH = 26
LONGEST_LABEL = 44


@dataclass(frozen=True, slots=True)
class Item:
    """One item to draw."""

    kind: Kind
    category: str
    label: str
    node: str
    server: str
    start_us: int
    end_us: int | None
    """None for an item that never ended."""
    at_server_us: int | None
    tone: str
    """The meaning of its colour: ok, error, lost, or neutral."""
    events: tuple[Event, ...]

    @property
    def noun(self) -> str:
        """The noun under which it is counted if it is not drawn."""
        return OPERATIONS if self.kind == "operation" else NOUNS.get(self.category, self.category)


def items(trace: Trace) -> list[Item]:
    """Every item, in order."""
    asked = operations(trace)
    left_over = attach_effects(asked, trace.of_kind(EventKind.APPLIED, EventKind.REFUSED))
    found = [_operation(operation) for operation in asked]
    found += [_firing(firing) for firing in firings(trace)]
    found += _rebalances(trace)
    found += _fetching(trace)
    found += [_mark(event) for event in left_over]
    found += [_mark(event) for event in trace if _is_single(event)]
    return sorted(found, key=lambda item: item.events[0].seq)


def _is_single(event: Event) -> bool:
    return event.kind not in DRAWN_OTHERWISE and event.kind not in NOT_DRAWN


# --- operations and watches ------------------------------------------------------------


def _operation(operation: Asked) -> Item:
    answer = (operation.answer,) if operation.answer is not None else ()
    number = operation.ask.detail.get("number", 1)
    label = operation.purpose or operation.word
    if number != 1:
        label += f" ×{number}"
    return Item(
        kind="operation",
        category=operation.purpose,
        label=label + _trouble(operation),
        node=operation.ask.node,
        server=operation.server,
        start_us=operation.ask.t_us,
        end_us=operation.answer.t_us if operation.answer is not None else None,
        at_server_us=operation.effects[0].t_us if operation.effects else None,
        tone=operation.outcome,
        events=(operation.ask, *operation.effects, *answer),
    )


def _trouble(operation: Asked) -> str:
    """The trouble of an operation, for its label."""
    if not operation.server and operation.outcome == "lost":
        return ": not sent"
    if operation.answer is None:
        return ": no answer"
    return f": {operation.error}" if operation.error else ""


def _firing(firing: Firing) -> Item:
    first = firing.fired[0]
    number = f" ×{len(firing.fired)}" if len(firing.fired) > 1 else ""
    path = str(first.detail.get("path", ""))
    return Item(
        kind="firing",
        category=FIRINGS,
        label=f"{first.detail.get('what', EventKind.WATCH_FIRED)} {_end_of(path)}{number}",
        node=first.node,
        server=firing.server,
        start_us=first.t_us,
        end_us=firing.heard[0].t_us if firing.heard else None,
        at_server_us=None,
        tone="ok" if firing.heard else "lost",
        events=(*firing.fired, *firing.heard),
    )


def _end_of(path: str) -> str:
    """The last part of a path, the most informative one."""
    last = path.rpartition("/")[2]
    return shortened(last, LONGEST_PATH)


# --- rebalances ------------------------------------------------------------------------

ENDS_OF_REBALANCES = (
    EventKind.REBALANCE_COMPLETED,
    EventKind.REBALANCE_FAILED,
    EventKind.REBALANCE_ABANDONED,
    EventKind.STARTED,
    EventKind.ENDED,
    EventKind.ABANDONED,
)


def _rebalances(trace: Trace) -> Iterator[Item]:
    """Each attempt at a rebalance, from its beginning until it succeeds or fails."""
    kinds = (
        EventKind.REBALANCE_STARTED,
        *ENDS_OF_REBALANCES,
        EventKind.ASSIGNED,
        EventKind.TURN_FAILED,
    )
    under_way: dict[str, list[Event]] = {}
    for event in trace.of_kind(*kinds):
        parts = under_way.get(event.node)
        if event.kind == EventKind.REBALANCE_STARTED:
            if parts is not None:
                yield _rebalance(parts, event)
            under_way[event.node] = [event]
        elif parts is not None:
            parts.append(event)
            if event.kind != EventKind.ASSIGNED:
                yield _rebalance(under_way.pop(event.node), event)
    last = last_event(trace)
    for parts in under_way.values():
        assert last is not None, "whatever is under way has begun with an event"
        yield _rebalance(parts, last)


def _rebalance(parts: list[Event], end: Event) -> Item:
    first = parts[0]
    is_done = end.kind == EventKind.REBALANCE_COMPLETED
    attempt = first.detail.get("attempt", 1)
    return Item(
        kind="rebalance",
        category=REBALANCES,
        label="rebalance" if attempt == 1 else f"rebalance, attempt {attempt}",
        node=first.node,
        server="",
        start_us=first.t_us,
        end_us=end.t_us,
        at_server_us=None,
        tone="ok" if is_done else "error",
        events=tuple(parts),
    )


# --- single events ---------------------------------------------------------------------

TROUBLE = frozenset(
    {
        EventKind.SUSPENDED,
        EventKind.EXPIRED,
        EventKind.SESSION_EXPIRED,
        EventKind.TURN_FAILED,
        EventKind.REBALANCE_FAILED,
        EventKind.REBALANCE_ABANDONED,
        EventKind.CLAIM_CONFLICT,
        EventKind.COMMIT_REFUSED,
        EventKind.LEADER_LOST,
        EventKind.FETCH_FAILED,
    }
)
TELLING = ("why", "error", "state", "by", "ms", "at", "from", "section")
"""The first of these details that an event has is part of its label."""


def _fetching(trace: Trace) -> Iterator[Item]:
    """One item for everything that a member starts or stops fetching in one moment."""
    together: dict[tuple[str, int, str], list[Event]] = {}
    for event in trace.of_kind(EventKind.FETCHING):
        key = (event.node, event.t_us, str(event.detail.get("does")))
        together.setdefault(key, []).append(event)
    for (node, t_us, does), events in together.items():
        what = events[0].place if len(events) == 1 else counted(len(events), "partition")
        label = f"fetches {what}" if does == "begins" else f"leaves {what}"
        yield Item("mark", FETCHING, label, node, "", t_us, None, None, "", tuple(events))


def _mark(event: Event) -> Item:
    """A single event."""
    is_entry = event.kind in BEGINNINGS or event.kind in ENDS
    return Item(
        kind="across" if is_entry else "mark",
        category=CATEGORIES.get(event.kind, OTHERS),
        label=_entry_label(event) if is_entry else _label(event),
        node=event.node,
        server="",
        start_us=event.t_us,
        end_us=None,
        at_server_us=None,
        tone="error" if event.kind in TROUBLE or event.kind == EventKind.FAULT else "",
        events=(event,),
    )


def _entry_label(event: Event) -> str:
    words = f"{event.detail.get('verb', event.kind)} {event.node}".replace("_", " ")
    for_us = event.detail.get("for_us", 0)
    if event.kind in ENDS:
        return f"{words} ends"
    return f"{words} for {duration(for_us)}" if for_us else words


def _label(event: Event) -> str:
    found = (event.detail[name] for name in TELLING if name in event.detail)
    first = next(found, None)
    return event.kind if first is None else shortened(f"{event.kind}: {first}", LONGEST_LABEL)
