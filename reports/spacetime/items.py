"""Everything that a space-time diagram draws, as one flat list of items.

An item stands on the lane of a process, or on that of a server, or on both, or goes across
all of them; it has a moment at which it begins and perhaps one at which it ends, and it
names the events of the trace that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from model.trace import Event, Trace
from model.verdicts import counted, duration
from reports.intervals import last_event
from reports.labels import shortened
from reports.operations import Asked, Firing, attach_effects, firings, operations
from reports.timeline import BEGINNINGS, ENDS

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

CATEGORIES = {
    "starts": PROCESSES,
    "ends": PROCESSES,
    "turn fails": PROCESSES,
    "sleeps": PROCESSES,
    "connected": SESSIONS,
    "suspended": SESSIONS,
    "expired": SESSIONS,
    "session opened": SESSIONS,
    "session moved": SESSIONS,
    "session expired": SESSIONS,
    "session closed": SESSIONS,
    "leads": SERVERS,
    "leader lost": SERVERS,
    "server": SERVERS,
    "rebalance fails": REBALANCES,
    "rebalance given up": REBALANCES,
    "conflict": REBALANCES,
    "claimed what was freed": REBALANCES,
    "fetch fails": FETCHING,
} | dict.fromkeys((*BEGINNINGS, *ENDS), TIMELINE)
"""What single events are filed under; kinds that are not here are other events."""

DRAWN_OTHERWISE = frozenset(
    {
        "asks",
        "answers",
        "applied",
        "refused",
        "fires",
        "hears",
        "fetching",
        "rebalance begins",
        "rebalance ends",
        "assigned",
    }
)
NOT_DRAWN = frozenset({"waits", "wakes", "fetched", "hosting", "produces", "gauges", "run ends"})
"""Kinds that would hide the others: messages delivered, programs at rest."""

LONGEST_PATH = 26
LONGEST_LABEL = 44


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to draw."""

    kind: Kind
    category: str
    label: str
    node: str
    server: str
    start_us: int
    end_us: int | None
    """None for what never ended."""
    at_server_us: int | None
    tone: str
    """What its colour says: ok, error, lost, or nothing in particular."""
    events: tuple[Event, ...]

    @property
    def noun(self) -> str:
        """What it counts as when it is not drawn."""
        return OPERATIONS if self.kind == "operation" else NOUNS.get(self.category, self.category)


def items(trace: Trace) -> list[Item]:
    """Everything there is to draw, in order."""
    asked = operations(trace)
    left_over = attach_effects(asked, trace.of_kind("applied", "refused"))
    found = [_operation(one) for one in asked]
    found += [_firing(one) for one in firings(trace)]
    found += _rebalances(trace)
    found += _fetching(trace)
    found += [_mark(event) for event in left_over]
    found += [_mark(event) for event in trace if _is_single(event)]
    return sorted(found, key=lambda item: item.events[0].seq)


def _is_single(event: Event) -> bool:
    return event.kind not in DRAWN_OTHERWISE and event.kind not in NOT_DRAWN


# --- operations and watches ------------------------------------------------------------


def _operation(one: Asked) -> Item:
    answer = (one.answer,) if one.answer is not None else ()
    number = one.ask.detail.get("number", 1)
    label = one.purpose or one.word
    if number != 1:
        label += f" ×{number}"
    return Item(
        kind="operation",
        category=one.purpose,
        label=label + _trouble(one),
        node=one.ask.node,
        server=one.server,
        start_us=one.ask.t_us,
        end_us=one.answer.t_us if one.answer is not None else None,
        at_server_us=one.effects[0].t_us if one.effects else None,
        tone=one.outcome,
        events=(one.ask, *one.effects, *answer),
    )


def _trouble(one: Asked) -> str:
    """What went wrong with an operation, for its label."""
    if not one.server and one.outcome == "lost":
        return ": not sent"
    if one.answer is None:
        return ": no answer"
    return f": {one.error}" if one.error else ""


def _firing(one: Firing) -> Item:
    first = one.fired[0]
    number = f" ×{len(one.fired)}" if len(one.fired) > 1 else ""
    path = str(first.detail.get("path", ""))
    return Item(
        kind="firing",
        category=FIRINGS,
        label=f"{first.detail.get('what', 'fires')} {_end_of(path)}{number}",
        node=first.node,
        server=one.server,
        start_us=first.t_us,
        end_us=one.heard[0].t_us if one.heard else None,
        at_server_us=None,
        tone="ok" if one.heard else "lost",
        events=(*one.fired, *one.heard),
    )


def _end_of(path: str) -> str:
    """The end of a path, which tells the most."""
    last = path.rpartition("/")[2]
    return shortened(last, LONGEST_PATH)


# --- rebalances ------------------------------------------------------------------------

ENDS_OF_REBALANCES = ("rebalance ends", "rebalance fails", "rebalance given up", "starts", "ends")


def _rebalances(trace: Trace) -> Iterator[Item]:
    """Each attempt at a rebalance, from its beginning until it succeeds or fails."""
    kinds = ("rebalance begins", *ENDS_OF_REBALANCES, "assigned", "turn fails")
    under_way: dict[str, list[Event]] = {}
    for event in trace.of_kind(*kinds):
        parts = under_way.get(event.node)
        if event.kind == "rebalance begins":
            if parts is not None:
                yield _rebalance(parts, event)
            under_way[event.node] = [event]
        elif parts is not None:
            parts.append(event)
            if event.kind != "assigned":
                yield _rebalance(under_way.pop(event.node), event)
    last = last_event(trace)
    for parts in under_way.values():
        assert last is not None, "whatever is under way has begun with an event"
        yield _rebalance(parts, last)


def _rebalance(parts: list[Event], end: Event) -> Item:
    first = parts[0]
    is_done = end.kind == "rebalance ends"
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
        "suspended",
        "expired",
        "session expired",
        "turn fails",
        "rebalance fails",
        "rebalance given up",
        "conflict",
        "commit refused",
        "leader lost",
        "fetch fails",
    }
)
TELLING = ("why", "error", "state", "by", "ms", "at", "from")
"""Of these details the first that an event has goes into its label."""


def _fetching(trace: Trace) -> Iterator[Item]:
    """What a member begins or ceases to fetch in one moment is one item."""
    together: dict[tuple[str, int, str], list[Event]] = {}
    for event in trace.of_kind("fetching"):
        key = (event.node, event.t_us, str(event.detail.get("does")))
        together.setdefault(key, []).append(event)
    for (node, t_us, does), events in together.items():
        what = events[0].place if len(events) == 1 else counted(len(events), "partition")
        label = f"fetches {what}" if does == "begins" else f"leaves {what}"
        yield Item("mark", FETCHING, label, node, "", t_us, None, None, "", tuple(events))


def _mark(event: Event) -> Item:
    """One event by itself."""
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
        tone="error" if event.kind in TROUBLE or event.kind == "fault" else "",
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
