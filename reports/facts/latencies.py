"""The latency of messages: from the producer's acknowledgement to the delivery to a group.

Each message counts once a group, at its first delivery.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.facts.message_ranges import Numbered
from watchkeeper.reports.facts.names import natural

QUANTILES = (0.5, 0.99, 1.0)


class Took(NamedTuple):
    """A number of messages with one latency, delivered at one moment."""

    latency_us: int
    messages: int
    t_us: int


def latencies(trace: Trace) -> dict[str, list[Took]]:
    """Group -> how long its messages took."""
    sent: Numbered[int] = Numbered()
    for event in trace.of_kind(EventKind.SENT):
        detail = event.detail
        sent.add(detail["producer"], detail["first"], detail["end"], event.t_us)
    handed: dict[tuple[str, str], Numbered[int]] = {}
    found: dict[str, list[Took]] = {}
    for event in trace.of_kind(EventKind.CONSUMED):
        seen = handed.setdefault((event.group, event.topic), Numbered())
        took = found.setdefault(event.group, [])
        for consumed in (MessageRange(*row) for row in event.detail["ranges"]):
            for first, end in seen.unknown(consumed.producer, consumed.first, consumed.end):
                for count, sent_us in sent.parts(consumed.producer, first, end):
                    took.append(Took(max(event.t_us - sent_us, 0), count, event.t_us))
            seen.add(consumed.producer, consumed.first, consumed.end, event.t_us)
    return {group: found[group] for group in sorted(found, key=natural) if found[group]}


def quantiles(took: Iterable[Took]) -> tuple[int, ...]:
    """Within which time half of all messages, 99 of 100, and all of them were there."""
    ordered = sorted(took)
    total = sum(delivery.messages for delivery in ordered)
    found: list[int] = []
    passed = 0
    for delivery in ordered:
        passed += delivery.messages
        while len(found) < len(QUANTILES) and passed >= QUANTILES[len(found)] * total:
            found.append(delivery.latency_us)
    return tuple(found)


def over_time(took: Iterable[Took], width_us: int) -> list[tuple[int, tuple[int, ...]]]:
    """The quantiles of the latencies in each time slot: slot number, quantiles."""
    stretches: dict[int, list[Took]] = {}
    for delivery in took:
        stretches.setdefault(delivery.t_us // width_us, []).append(delivery)
    return [(at, quantiles(some)) for at, some in sorted(stretches.items())]
