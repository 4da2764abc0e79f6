"""The synopsis of a run: one sentence that says what struck whom, and what followed.

The sentence is about the fault that left partitions unread, or without a leader, for longest; if
none did, about the first one. It follows from the trace alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.properties.verdicts import duration, seconds
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.intervals import fetched
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.why.fault_words import WORDS, lasts

ENDINGS = frozenset({"crash", "crash_host", "abandon", "leave", "expire"})
"""What ends the work of a process."""


class Strike(NamedTuple):
    """A fault or change of a timeline, and what it left behind."""

    event: Event
    partitions: int = 0
    """How many nothing read, or nothing led."""
    longest_us: int = 0
    what: str = ""
    """What these partitions were meanwhile."""


def synopsis(trace: Trace) -> str:
    """Return the sentence; empty for a run in which nothing struck a process."""
    struck = list(_struck(trace))
    if not struck:
        return ""
    reads, leads = fetched(trace).values(), _led(trace).values()
    strikes = [_followed(event, reads=reads, leads=leads) for event in struck]
    chosen = max(strikes, key=lambda strike: strike.longest_us)
    others = len(strikes) - 1
    more = f" (the timeline has {others} more)" if others else ""
    return f"{_sentence(trace, chosen)}{more}."


def _struck(trace: Trace) -> Iterator[Event]:
    for event in trace.of_kind(EventKind.FAULT, EventKind.CHANGE):
        if event.detail.get("verb") in WORDS:
            yield event


def _followed(
    event: Event, *, reads: Collection[list[Span]], leads: Collection[list[Span]]
) -> Strike:
    if event.detail["verb"] not in ENDINGS:
        return Strike(event)
    unread = _pauses(reads, event)
    led = _pauses(leads, event)
    if max(led, default=0) > max(unread, default=0):
        return Strike(event, len(led), max(led), "without a leader")
    return Strike(event, len(unread), max(unread, default=0), "unread")


def _pauses(spans: Iterable[list[Span]], event: Event) -> list[int]:
    """How long nothing took over each partition that a process had when it was struck."""
    found = []
    for of_place in spans:
        for span in of_place:
            if span.what == event.node and span.first_seq <= event.seq <= span.last_seq + 1:
                later = (other.start_us for other in of_place if other.first_seq > event.seq)
                until_us = min(later, default=None)
                if until_us is not None:
                    found.append(until_us - event.t_us)
    return [pause_us for pause_us in found if pause_us > 0]


def _led(trace: Trace) -> dict[Partition, list[Span]]:
    """Partition -> the brokers that have led it, each up to the next one."""
    changes: dict[Partition, list[Event]] = {}
    for event in trace.of_kind(EventKind.BECAME_LEADER):
        partition = Partition(event.topic, str(event.detail["partition"]))
        of_partition = changes.setdefault(partition, [])
        if not of_partition or of_partition[-1].node != event.node:
            of_partition.append(event)
    return {partition: list(_spans(events)) for partition, events in changes.items()}


def _spans(events: list[Event]) -> Iterator[Span]:
    for event, following in zip(events, [*events[1:], events[-1]], strict=True):
        yield Span(event.node, event.t_us, following.t_us, event.seq, following.seq)


def _sentence(trace: Trace, strike: Strike) -> str:
    event = strike.event
    text = f"{event.node} {WORDS[event.detail['verb']]} at {seconds(event.t_us)}{lasts(event)}"
    if not strike.longest_us:
        return text
    number = strike.partitions
    whose = "its partition was" if number == 1 else f"its {number} partitions were"
    text = f"{text}; {whose} {strike.what} for {duration(strike.longest_us)}"
    is_due_to_session = event.detail["verb"] != "expire" and _has_expired(trace, strike)
    return f"{text}, until its session had expired" if is_due_to_session else text


def _has_expired(trace: Trace, strike: Strike) -> bool:
    """Whether the session of what was struck expired before another process took over."""
    begin_us, node = strike.event.t_us, strike.event.node
    return any(
        begin_us < event.t_us <= begin_us + strike.longest_us and event.detail.get("by") == node
        for event in trace.of_kind(EventKind.SESSION_EXPIRED)
    )
