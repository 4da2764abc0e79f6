"""The metrics of brokers' hosts: bytes at risk, and how often reads hit the pagecache.

A broker reports the metrics of its host from time to time, if they have changed. So the last
report holds until the next one, or until the process ends.

A live broker whose kernel does not tell which pages are in memory reports only how much was
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import NOTHING, Event, Trace
from watchkeeper.reports.facts.names import natural


class Gauge(NamedTuple):
    """The metrics of a host at one moment."""

    t_us: int
    unflushed: int
    """Bytes that were appended and not flushed: at risk, if the host ends."""
    most_unflushed: int
    """The most that this was since the last time."""
    hit: int
    """Bytes that were wanted since the last time and were in the pagecache."""
    missed: int
    """Bytes read from the disk."""
    unknown: int
    """Bytes read from an unknown source."""


class Life(NamedTuple):
    """The reports of one process of a broker, and when it ended."""

    told: tuple[Gauge, ...]
    begins_us: int
    ends_us: int


def gauges(trace: Trace) -> dict[str, list[Life]]:
    """Broker -> the reports of its processes, in order."""
    gauges_of: dict[str, list[list[Gauge]]] = {}
    spans: dict[str, list[list[int]]] = {}
    before: dict[str, Event] = {}
    for event in trace.of_kind(EventKind.STARTED, EventKind.ENDED, EventKind.HOST_METRICS):
        name = event.node
        if event.kind == EventKind.STARTED or name not in gauges_of:
            gauges_of.setdefault(name, []).append([])
            spans.setdefault(name, []).append([event.t_us, trace.end_us])
        if event.kind == EventKind.ENDED:
            spans[name][-1][1] = event.t_us
        elif event.kind == EventKind.HOST_METRICS:
            gauges_of[name][-1].append(_gauge(event, before.get(name)))
            spans[name][-1][1] = max(spans[name][-1][1], event.t_us)
            before[name] = event
    lives = {
        name: [
            Life(tuple(some), *span)
            for some, span in zip(gauges_of[name], spans[name], strict=True)
            if some
        ]
        for name in sorted(gauges_of, key=natural)
    }
    return {name: found for name, found in lives.items() if found}


def _gauge(event: Event, before: Event | None) -> Gauge:
    detail, earlier = event.detail, before.detail if before is not None else NOTHING
    return Gauge(
        event.t_us,
        detail["unflushed"],
        detail["most_unflushed"],
        *(detail.get(what, 0) - earlier.get(what, 0) for what in ("hit", "missed", "read")),
    )


def at_risk(life: Life) -> tuple[tuple[int, int], ...]:
    """Bytes at risk during one process: moments, and the value from each of them on.

    A maximum between two reports is drawn just before the second, so that no value appears
    smaller than it was.
    """
    points: list[tuple[int, int]] = []
    for gauge in life.told:
        if gauge.most_unflushed > gauge.unflushed:
            points.append((gauge.t_us, gauge.most_unflushed))
        points.append((gauge.t_us, gauge.unflushed))
    return (*points, (life.ends_us, life.told[-1].unflushed))


class Risk(NamedTuple):
    """The most bytes that were at risk, and by when it was seen."""

    size_bytes: int
    t_us: int


def greatest_risk(lives: Sequence[Life]) -> Risk:
    """The most that was at risk on a host."""
    found = [Risk(gauge.most_unflushed, -gauge.t_us) for life in lives for gauge in life.told]
    most = max(found, default=Risk(0, 0))
    return Risk(most.size_bytes, -most.t_us)


def hit_share(lives: Sequence[Life]) -> tuple[float | None, int]:
    """The share of bytes found in memory, and the number of bytes read."""
    gauges = [gauge for life in lives for gauge in life.told]
    hit = sum(gauge.hit for gauge in gauges)
    wanted = hit + sum(gauge.missed for gauge in gauges)
    return (hit / wanted if wanted else None), wanted


def read_unknown(lives: Sequence[Life]) -> int:
    """The number of bytes read from an unknown source."""
    return sum(gauge.unknown for life in lives for gauge in life.told)


def hit_shares(lives: Sequence[Life], width_us: int) -> list[tuple[int, float]]:
    """The same for each time slot with reads: slot number, share."""
    sums: dict[int, tuple[int, int]] = {}
    for gauge in (gauge for life in lives for gauge in life.told):
        hit, missed = sums.get(gauge.t_us // width_us, (0, 0))
        sums[gauge.t_us // width_us] = (hit + gauge.hit, missed + gauge.missed)
    return [(at, hit / (hit + missed)) for at, (hit, missed) in sums.items() if hit + missed]
