"""How long messages took: from when an application was told that they are sent, to a group.

Each message counts once a group, when it was handed on first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from model.delivery import Lot
from model.trace import Trace
from reports.labels import natural
from reports.numbered import Numbered

QUANTILES = (0.5, 0.99, 1.0)


class Took(NamedTuple):
    """So many messages took so long, and were there at this moment."""

    latency_us: int
    messages: int
    t_us: int


def latencies(trace: Trace) -> dict[str, list[Took]]:
    """Group -> how long its messages took."""
    sent: Numbered[int] = Numbered()
    for event in trace.of_kind("sent"):
        detail = event.detail
        sent.add(detail["producer"], detail["first"], detail["end"], event.t_us)
    handed: dict[tuple[str, str], Numbered[int]] = {}
    found: dict[str, list[Took]] = {}
    for event in trace.of_kind("consumed"):
        seen = handed.setdefault((event.group, event.topic), Numbered())
        took = found.setdefault(event.group, [])
        for lot in (Lot(*one) for one in event.detail["lots"]):
            for first, end in seen.unknown(lot.producer, lot.first, lot.end):
                for count, sent_us in sent.parts(lot.producer, first, end):
                    took.append(Took(max(event.t_us - sent_us, 0), count, event.t_us))
            seen.add(lot.producer, lot.first, lot.end, event.t_us)
    return {group: found[group] for group in sorted(found, key=natural) if found[group]}


def quantiles(took: Iterable[Took]) -> tuple[int, ...]:
    """Within which time half of all messages, 99 of 100, and all of them were there."""
    ordered = sorted(took)
    total = sum(one.messages for one in ordered)
    found: list[int] = []
    passed = 0
    for one in ordered:
        passed += one.messages
        while len(found) < len(QUANTILES) and passed >= QUANTILES[len(found)] * total:
            found.append(one.latency_us)
    return tuple(found)


def over_time(took: Iterable[Took], width_us: int) -> list[tuple[int, tuple[int, ...]]]:
    """The same for what was handed on in each stretch of time: its number, the quantiles."""
    stretches: dict[int, list[Took]] = {}
    for one in took:
        stretches.setdefault(one.t_us // width_us, []).append(one)
    return [(at, quantiles(some)) for at, some in sorted(stretches.items())]
