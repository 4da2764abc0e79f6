"""What the timeline of a scenario did in a run: faults, changes and load."""

from __future__ import annotations

from typing import NamedTuple

from model.trace import Event, Trace
from reports.intervals import last_event
from reports.spans import Span, SpanMaker

BEGINNINGS = ("fault", "change", "load")
ENDS = ("fault ends", "load ends")


class Entry(NamedTuple):
    """One entry of the timeline that took place."""

    kind: str
    """fault, change or load"""
    verb: str
    target: str
    lasts: bool
    span: Span

    @property
    def label(self) -> str:
        """What it is in two words."""
        return f"{self.verb} {self.target}".replace("_", " ")


def entries(trace: Trace) -> list[Entry]:
    """What took place, in order. What is not undone lasts until the end of the trace."""
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
    return Entry(event.kind, verb, event.node, bool(event.detail.get("lasts")), span)
