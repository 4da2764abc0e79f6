"""What was told of the hosts of brokers: bytes at risk, and how often reads found their pages.

A broker tells of its host from time to time, and not where nothing has changed. So what was
told last is the case until something else is told, or until the process ends.

A live broker whose kernel does not say which pages are in memory tells what was read, and not
from where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from model.trace import NOTHING, Event, Trace
from reports.labels import natural


class Gauge(NamedTuple):
    """How a host stood at one moment."""

    t_us: int
    unflushed: int
    """Bytes that were appended and not flushed: at risk, if the host ends."""
    most_unflushed: int
    """The most that this was since the last time."""
    hit: int
    """Bytes that were wanted since the last time and were in the pagecache."""
    missed: int
    """Bytes that were wanted and had to come from the disk."""
    unknown: int
    """Bytes that were wanted, and nobody knows where they came from."""


class Life(NamedTuple):
    """What was told while one process of a broker ran, and until when it ran."""

    told: tuple[Gauge, ...]
    begins_us: int
    ends_us: int


def gauges(trace: Trace) -> dict[str, list[Life]]:
    """Broker -> what was told of its host, a process after the other."""
    told: dict[str, list[list[Gauge]]] = {}
    spans: dict[str, list[list[int]]] = {}
    before: dict[str, Event] = {}
    for event in trace.of_kind("starts", "ends", "gauges"):
        name = event.node
        if event.kind == "starts" or name not in told:
            told.setdefault(name, []).append([])
            spans.setdefault(name, []).append([event.t_us, trace.end_us])
        if event.kind == "ends":
            spans[name][-1][1] = event.t_us
        elif event.kind == "gauges":
            told[name][-1].append(_gauge(event, before.get(name)))
            spans[name][-1][1] = max(spans[name][-1][1], event.t_us)
            before[name] = event
    lives = {
        name: [
            Life(tuple(some), *span)
            for some, span in zip(told[name], spans[name], strict=True)
            if some
        ]
        for name in sorted(told, key=natural)
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
    """Bytes at risk over one life: moments, and what is the case from each of them on.

    Where it was more between two looks, it is drawn as if that had been just before the
    second: nothing shows as less than it was.
    """
    points: list[tuple[int, int]] = []
    for one in life.told:
        if one.most_unflushed > one.unflushed:
            points.append((one.t_us, one.most_unflushed))
        points.append((one.t_us, one.unflushed))
    return (*points, (life.ends_us, life.told[-1].unflushed))


class Risk(NamedTuple):
    """The most bytes that were at risk, and by when it was seen."""

    size_bytes: int
    t_us: int


def greatest_risk(lives: Sequence[Life]) -> Risk:
    """The most that was at risk on a host."""
    found = [Risk(one.most_unflushed, -one.t_us) for life in lives for one in life.told]
    most = max(found, default=Risk(0, 0))
    return Risk(most.size_bytes, -most.t_us)


def hit_share(lives: Sequence[Life]) -> tuple[float | None, int]:
    """Which share of what was wanted was in memory, and how many bytes were wanted."""
    told = [one for life in lives for one in life.told]
    hit = sum(one.hit for one in told)
    wanted = hit + sum(one.missed for one in told)
    return (hit / wanted if wanted else None), wanted


def read_unknown(lives: Sequence[Life]) -> int:
    """How many bytes were wanted of which nobody knows whether they were in memory."""
    return sum(one.unknown for life in lives for one in life.told)


def hit_shares(lives: Sequence[Life], width_us: int) -> list[tuple[int, float]]:
    """The same for each stretch of time in which something was wanted: its number, the share."""
    sums: dict[int, tuple[int, int]] = {}
    for one in (one for life in lives for one in life.told):
        hit, missed = sums.get(one.t_us // width_us, (0, 0))
        sums[one.t_us // width_us] = (hit + one.hit, missed + one.missed)
    return [(at, hit / (hit + missed)) for at, (hit, missed) in sums.items() if hit + missed]
