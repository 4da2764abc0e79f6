"""How far groups were behind the ends of logs, in messages.

A log grows with what is stored, and is cut where a host has lost its end. A group stands
behind what it was handed last. If it is handed something again it stands where that ends, so
a lag that jumps up is something that is read once more.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from model.asks import Partition
from model.delivery import Lot
from model.trace import Event, Trace
from reports.intervals import cluster_of, clusters
from reports.labels import natural


class Read(NamedTuple):
    """A partition as one group reads it."""

    group: str
    partition: Partition


Steps = list[tuple[int, int]]
"""Moments, and what is the case from each of them on."""


class Stored:
    """What lies in one log: how many messages lie before an offset."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._counts: list[int] = []
        self._lots: list[Lot] = []

    @property
    def count(self) -> int:
        """How many messages there are."""
        return self._counts[-1] if self._counts else 0

    def add(self, lot: Lot) -> None:
        """Messages were appended."""
        self._counts.append(self.count + lot.size)
        self._ends.append(lot.to)
        self._lots.append(lot)

    def cut(self, end: int) -> None:
        """What lies behind an offset is gone."""
        kept = bisect_right(self._ends, end)
        torn = self._lots[kept : kept + 1]
        for some in (self._ends, self._counts, self._lots):
            del some[kept:]
        for lot in torn:
            rest = lot._replace(end=lot.before(end), to=end)
            if rest.size:
                self.add(rest)

    def before(self, offset: int) -> int:
        """How many messages lie before an offset."""
        whole = bisect_right(self._ends, offset)
        count = self._counts[whole - 1] if whole else 0
        if whole < len(self._lots):
            lot = self._lots[whole]
            count += lot.before(offset) - lot.first
        return count


class _Following:
    """What is known of logs and groups while a trace is read."""

    def __init__(self, home: dict[str, str]) -> None:
        self.home = home
        self.logs: dict[tuple[str, Partition], Stored] = {}
        self.places: dict[Read, int] = {}
        self.readers: dict[tuple[str, Partition], list[Read]] = {}
        """The log of a partition -> who reads it."""
        self.steps: dict[Read, Steps] = {}

    def take(self, event: Event) -> None:
        """Take an event into account."""
        partition = Partition(event.topic, event.partition)
        if event.kind in ("stored", "opened"):
            key = (cluster_of(event.node), partition)
            log = self.logs.setdefault(key, Stored())
            if event.kind == "opened":
                log.cut(event.detail["end"])
            for lot in event.detail.get("lots", ()):
                log.add(Lot(*lot))
            for read in self.readers.get(key, ()):
                self._step(read, event.t_us)
            return
        place = _place(event)
        if place is not None:
            read = Read(event.group, partition)
            if read not in self.places:
                self.readers.setdefault(self._key(read), []).append(read)
            self.places[read] = place
            self._step(read, event.t_us)

    def _key(self, read: Read) -> tuple[str, Partition]:
        return self.home.get(read.group, ""), read.partition

    def _step(self, read: Read, t_us: int) -> None:
        log = self.logs.get(self._key(read))
        lag = log.count - log.before(self.places[read]) if log else 0
        steps = self.steps.setdefault(read, [])
        if steps and steps[-1][0] == t_us:
            steps[-1] = (t_us, lag)
        elif not steps or steps[-1][1] != lag:
            steps.append((t_us, lag))


def _place(event: Event) -> int | None:
    """Where a group stands by an event of one of its members, if it says so."""
    if event.kind == "consumed":
        lots = event.detail.get("lots", ())
        return int(lots[-1][4]) if lots else None
    return int(event.detail["to"])


def lags(trace: Trace) -> dict[Read, Steps]:
    """How far each group was behind in each partition, from when it stood somewhere."""
    following = _Following(clusters(trace))
    for event in trace.of_kind("stored", "opened", "consumed", "offset reset"):
        following.take(event)
    ordered = sorted(
        following.steps, key=lambda one: (natural(one.group), *map(natural, one.partition))
    )
    return {read: following.steps[read] for read in ordered}


def greatest(steps: Steps) -> tuple[int, int]:
    """The greatest lag, and when it was that first."""
    lag, t_us = max(((lag, -t_us) for t_us, lag in steps), default=(0, 0))
    return lag, -t_us
