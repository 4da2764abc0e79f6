"""A trace as a transcript: what each process did and learned, a line each, in order.

A request is one line with its answer, at the moment at which it was sent. What a process repeats
without doing anything in between is one line with a count: most requests of a program that waits
are alike. Where the trace has lines of code (tests in virtual time), each line of the transcript
ends with the one that it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.text import operation_in_words
from watchkeeper.model.trace.trace import LINE, Event, Trace
from watchkeeper.reports.facts.operations import Asked, attach_effects, operations

WIDEST = 46
"""Longer texts push the line of code to the right."""
LONGEST_VALUE = 60

LEFT_OUT = frozenset(
    {
        EventKind.REQUEST,
        EventKind.RESPONSE,
        EventKind.APPLIED,
        EventKind.REFUSED,
        EventKind.WATCH_FIRED,
        EventKind.SESSION_OPENED,
        EventKind.SESSION_MOVED,
        EventKind.WAITING,
        EventKind.WOKEN,
        EventKind.FETCHED,
        EventKind.HOSTING,
        EventKind.TOPIC_LOAD,
        EventKind.HOST_METRICS,
        EventKind.RUN_ENDED,
    }
)
"""Kinds that another line tells of, and those that would hide the others."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A sentence about a moment, as a property that is violated there."""

    at_us: int
    text: str


@dataclass(slots=True)
class _Entry:
    """One line of the transcript."""

    seq: int
    t_us: int
    node: str
    text: str
    line: str = ""
    times: int = 1
    last_us: int = 0

    def repeats(self, other: _Entry) -> bool:
        """Whether a process did once more what it has just done."""
        return (self.node, self.text, self.line) == (other.node, other.text, other.line)


def transcript(trace: Trace, marks: Iterable[Mark] = ()) -> str:
    """The whole transcript; the same trace gives the same text."""
    entries = _folded(sorted(_entries(trace), key=lambda entry: entry.seq))
    names = max((len(entry.node) for entry in entries), default=0)
    pending = sorted(marks, key=lambda mark: mark.at_us)
    lines = []
    for entry in entries:
        while pending and pending[0].at_us < entry.t_us:
            lines.append(_mark(pending.pop(0)))
        lines.append(_line(entry, names))
    lines += map(_mark, pending)
    return "\n".join(lines) + "\n"


def _line(entry: _Entry, names: int) -> str:
    text = entry.text
    if entry.times > 1:
        text += f" ({entry.times} times, until {entry.last_us / 1e6:.6f} s)"
    code = f"  {entry.line}" if entry.line else ""
    width = WIDEST if code else 0
    return f"{entry.t_us / 1e6:11.6f} s  {entry.node:{names}}  {text:{width}}{code}".rstrip()


def _mark(mark: Mark) -> str:
    return f"{mark.at_us / 1e6:11.6f} s  >>> {mark.text}"


def _folded(entries: Iterable[_Entry]) -> list[_Entry]:
    """Put together what a process repeats."""
    latest: dict[str, _Entry] = {}
    kept = []
    for entry in entries:
        before = latest.get(entry.node)
        if before is not None and before.repeats(entry):
            before.times += 1
            before.last_us = entry.t_us
        else:
            latest[entry.node] = entry
            kept.append(entry)
    return kept


def _entries(trace: Trace) -> Iterator[_Entry]:
    asked = operations(trace)
    attach_effects(asked, trace.of_kind(EventKind.APPLIED, EventKind.REFUSED))
    for operation in asked:
        ask = operation.ask
        text = f"{operation_in_words(ask.detail)}: {_outcome(operation)}"
        yield _Entry(ask.seq, ask.t_us, ask.node, text, str(ask.detail.get(LINE, "")))
    for event in trace:
        if event.kind not in LEFT_OUT:
            line = str(event.detail.get(LINE, ""))
            yield _Entry(event.seq, event.t_us, _node(event), _text(event), line)


def _outcome(operation: Asked) -> str:
    if operation.outcome != "lost":
        return operation.error or _made(operation) or "ok"
    if any(effect.kind == EventKind.APPLIED for effect in operation.effects):
        return "takes effect, and its answer is lost"
    return "no answer"


def _made(operation: Asked) -> str:
    """The name that a sequential znode has got."""
    for effect in operation.effects:
        for what, path, *_ in effect.detail.get("did", ()):
            if what == "created" and path != operation.ask.detail.get("path"):
                return str(path)
    return ""


def _node(event: Event) -> str:
    return str(event.detail.get("by") or event.node)


def _text(event: Event) -> str:
    known = SENTENCES.get(event.kind)
    return str(event.kind) + _place(event) + _values(event) if known is None else known(event)


def _place(event: Event) -> str:
    return f" {event.subject}" if event.subject else ""


def _values(event: Event) -> str:
    values = ", ".join(
        f"{name} {str(value)[:LONGEST_VALUE]}"
        for name, value in event.detail.items()
        if name != LINE
    )
    return f": {values}" if values else ""


def _why(event: Event) -> str:
    why = event.detail.get("why")
    return f": {why}" if why else ""


def _connects(event: Event) -> str:
    session = "a new session" if event.detail.get("new") else "its session"
    return f"connects to {event.detail.get('at')} with {session}"


def _fetches(event: Event) -> str:
    verb = "fetches" if event.detail.get("does") == "begins" else "stops fetching"
    return f"{verb}{_place(event)}"


def _fault(event: Event) -> str:
    named = {**event.detail}
    verb = str(named.pop("verb", "")).replace("_", " ")
    for name in ("number", "lasts", "session", "by"):
        named.pop(name, None)
    effects = named.pop("effects", {})
    values = [f"{count} {what}" for what, count in effects.items()]
    values += [f"{name} {value}" for name, value in named.items() if value is not None]
    shown = f" ({', '.join(values)})" if values else ""
    ends = " ends" if event.kind == EventKind.FAULT_ENDED else ""
    return f"fault: {verb}{ends}{shown}"


SENTENCES: dict[str, Callable[[Event], str]] = {
    EventKind.STARTED: lambda event: "starts",
    EventKind.ENDED: lambda event: f"ends{_why(event)}",
    EventKind.CONNECTED: _connects,
    EventKind.SUSPENDED: lambda event: f"loses its connection{_why(event)}",
    EventKind.EXPIRED: lambda event: "learns that its session has expired",
    EventKind.SESSION_EXPIRED: lambda event: "its session expires",
    EventKind.SESSION_CLOSED: lambda event: "its session is closed",
    EventKind.NOTIFIED: lambda event: (
        f"hears: {event.detail.get('path')} {event.detail.get('what')}"
    ),
    EventKind.ENTERED: lambda event: f"enters {event.detail.get('section')}",
    EventKind.LEFT: lambda event: f"leaves {event.detail.get('section')}",
    EventKind.FETCHING: _fetches,
    EventKind.FAULT: _fault,
    EventKind.FAULT_ENDED: _fault,
}
"""Kind of event -> its sentence; others have their kind and values."""
