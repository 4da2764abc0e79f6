"""The entries of a timeline that took place in a run: faults, changes and load."""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace, struck_by
from watchkeeper.reports.facts.intervals import last_event
from watchkeeper.reports.facts.names import listed
from watchkeeper.reports.facts.spans import Span, SpanMaker

BEGINNINGS = (EventKind.FAULT, EventKind.CHANGE, EventKind.LOAD)
ENDS = (EventKind.FAULT_ENDED, EventKind.LOAD_ENDED)


class Entry(NamedTuple):
    """One entry of the timeline that took place."""

    kind: str
    """fault, change or load"""
    verb: str
    target: str
    lasts: bool
    span: Span
    found_target: bool = True
    members: tuple[str, ...] = ()
    """The members of a process that several share."""

    @property
    def label(self) -> str:
        """The entry in a few words."""
        label = f"{self.verb.replace('_', ' ')} {self.target}"
        if self.members:
            label = f"{label} ({listed(self.members)})"
        return label if self.found_target else f"{label}: no target"


def entries(trace: Trace) -> list[Entry]:
    """The entries in order. One that is not undone lasts until the end of the trace."""
    making: SpanMaker[int] = SpanMaker()
    begun: dict[int, Event] = {}
    for event in trace.of_kind(*BEGINNINGS, *ENDS):
        number = int(event.detail.get("number", -1))
        if event.kind in BEGINNINGS:
            begun[number] = event
            making.begin(number, event.kind, event)
            if not event.detail.get("lasts"):
                making.end(number, event)
        else:
            making.end(number, event)
    spans = making.end_all(last_event(trace))
    found = [_entry(event, spans[number][-1]) for number, event in begun.items()]
    return sorted(found, key=lambda entry: entry.span.first_seq)


def _entry(event: Event, span: Span) -> Entry:
    verb = str(event.detail.get("verb", event.kind))
    found_target = "missed" not in event.detail
    members = struck_by(event)
    return Entry(
        event.kind,
        verb,
        event.node,
        bool(event.detail.get("lasts")),
        span,
        found_target,
        members if members != (event.node,) else (),
    )
