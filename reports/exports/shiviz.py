"""A trace as a log with vector clocks, which ShiViz opens.

How it works
  Each process, each server and the timeline is a host. An event of a host comes after the one
  before it there. Besides, a write takes effect after its request and before its answer; a read,
  of which a trace has no event at its server, gets one, just before its answer; and a process
  hears of a watch after it has fired. A vector clock counts, for each host, the events that come
  before; ShiViz draws its lines from these clocks alone, so they say nothing about time.

Two lines an event, `HOST {clock}` and what happens, with the time in front: `PARSER` is the
regular expression that ShiViz needs to read them, and the first line of the log says so.

Source: Beschastnikh, Wang, Brun, Ernst, "Debugging Distributed Systems", ACM Queue 14(2), 2016.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.operations import Asked, attach_effects, firings, operations
from watchkeeper.reports.facts.timeline import BEGINNINGS, ENDS

PARSER = r"(?<host>\S+) (?<clock>{.*})\n(?<event>.*)"
TIMELINE = "timeline"
LEFT_OUT = frozenset({EventKind.WAITING, EventKind.WOKEN, EventKind.FETCHED, EventKind.RUN_ENDED})
"""Kinds that would hide the others: idle programs, delivered messages."""

Clock = dict[str, int]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One event of the log."""

    key: tuple[int, int]
    """Its order: the number of the event, and 0 for what comes just before it."""
    host: str
    text: str
    after: tuple[tuple[int, int], ...]
    """The events of other hosts that it comes after."""


def log(trace: Trace) -> str:
    """The whole log; the same trace gives the same text."""
    lines = [PARSER, ""]
    clocks: dict[str, Clock] = {}
    at: dict[tuple[int, int], Clock] = {}
    for entry in sorted(_entries(trace), key=lambda entry: entry.key):
        clock = clocks.setdefault(entry.host, {})
        for before in entry.after:
            for host, count in at.get(before, {}).items():
                clock[host] = max(clock.get(host, 0), count)
        clock[entry.host] = clock.get(entry.host, 0) + 1
        at[entry.key] = dict(clock)
        lines += [f"{entry.host} {json.dumps(clock, sort_keys=True)}", entry.text]
    return "\n".join(lines) + "\n"


def _entries(trace: Trace) -> Iterator[_Entry]:
    asked = operations(trace)
    attach_effects(asked, trace.of_kind(EventKind.APPLIED, EventKind.REFUSED))
    after: dict[int, list[tuple[int, int]]] = {}
    at_server: dict[int, str] = {}
    for operation in asked:
        yield from _served(operation, after)
        at_server.update((effect.seq, operation.server) for effect in operation.effects)
    for firing in firings(trace):
        for fired, heard in zip(firing.fired, firing.heard, strict=False):
            after.setdefault(heard.seq, []).append((fired.seq, 1))
            at_server[fired.seq] = firing.server
    for event in trace:
        if event.kind not in LEFT_OUT:
            host = _host(event, at_server)
            yield _Entry((event.seq, 1), host, _text(event), tuple(after.get(event.seq, ())))


def _served(operation: Asked, after: dict[int, list[tuple[int, int]]]) -> Iterator[_Entry]:
    """What links a request to its effects and its answer; for a read, the event between them."""
    ask, answer = (operation.ask.seq, 1), operation.answer
    for effect in operation.effects:
        after.setdefault(effect.seq, []).append(ask)
        if answer is not None and answer.seq > effect.seq:
            after.setdefault(answer.seq, []).append((effect.seq, 1))
    has_event = operation.effects or not operation.server or operation.outcome == "lost"
    if answer is None or has_event:
        return
    read = (answer.seq, 0)
    after.setdefault(answer.seq, []).append(read)
    text = f"{_time(answer.t_us)} answers {_what(operation.ask.detail)}"
    yield _Entry(read, _word(operation.server), text, (ask,))


def _host(event: Event, at_server: Mapping[int, str]) -> str:
    if event.kind in BEGINNINGS or event.kind in ENDS:
        return TIMELINE
    return _word(at_server.get(event.seq) or event.node or TIMELINE)


def _word(name: str) -> str:
    """A host without spaces, which would end it."""
    return "_".join(name.split())


def _text(event: Event) -> str:
    place = f" {event.subject}" if event.subject else ""
    what = _what(event.detail)
    node = f" {event.node}" if event.kind in BEGINNINGS or event.kind in ENDS else ""
    return f"{_time(event.t_us)} {event.kind}{node}{place}{f': {what}' if what else ''}"


def _what(detail: Mapping[str, Any]) -> str:
    words = (detail.get(name) for name in ("op", "verb", "what", "path", "does", "why"))
    return " ".join(str(word) for word in words if word)


def _time(t_us: int) -> str:
    return f"{t_us / 1e6:.6f} s"
