"""Who was in each section of a test in virtual time, and when.

A section is critical: at most a number of threads may be in it at once. A section of one is one
place; of a section of more, each thread that entered it has a place of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.intervals import last_event
from watchkeeper.reports.facts.spans import Span, SpanMaker


@dataclass(slots=True)
class Section:
    """One section, with the spans of the threads that were in it."""

    name: str
    most: int
    spans: list[Span] = field(default_factory=list)
    guarded: set[str] = field(default_factory=set)
    """The threads that entered it with a session, and may outlive that."""


def sections(trace: Trace) -> list[Section]:
    """Every section that was entered, in the order of its first entry.

    A process that ends is in no section any more.
    """
    found: dict[str, Section] = {}
    making: SpanMaker[tuple[str, str, str]] = SpanMaker()
    for event in trace.of_kind(EventKind.ENTERED, EventKind.LEFT, EventKind.ENDED):
        if event.kind == EventKind.ENDED:
            for key in making.open_keys():
                if key[1] == event.node:
                    making.end(key, event)
            continue
        name, who = str(event.detail["section"]), thread_of(event)
        found.setdefault(name, Section(name, int(event.detail.get("most", 1))))
        if event.kind == EventKind.ENTERED:
            if event.session:
                found[name].guarded.add(who)
            making.begin((name, event.node, who), who, event)
        else:
            making.end((name, event.node, who), event)
    for (name, _, _), spans in making.end_all(last_event(trace)).items():
        found[name].spans += spans
    return list(found.values())


def thread_of(event: Event) -> str:
    """The process of an event of a section, with its thread if that is not the main one."""
    thread = event.detail.get("thread")
    return event.node if thread is None else f"{event.node} {thread}"
