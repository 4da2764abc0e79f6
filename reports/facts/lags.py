"""The lag of groups behind the ends of logs, in messages.

A log grows with each stored message, and is cut if a host has lost its end. A group's position
follows the last delivery. If a message is delivered again the position moves back, so a lag
that jumps up shows messages that are read again.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.intervals import cluster_of, clusters
from watchkeeper.reports.facts.names import natural


class Read(NamedTuple):
    """A partition as one group reads it."""

    group: str
    partition: Partition


Steps = list[tuple[int, int]]
"""Moments, and the value from each of them on."""


class Stored:
    """The messages of one log, counted by offset."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._counts: list[int] = []
        self._ranges: list[MessageRange] = []

    @property
    def count(self) -> int:
        """How many messages there are."""
        return self._counts[-1] if self._counts else 0

    def add(self, appended: MessageRange) -> None:
        """Messages were appended."""
        self._counts.append(self.count + appended.size)
        self._ends.append(appended.to)
        self._ranges.append(appended)

    def cut(self, end: int) -> None:
        """Remove the messages behind an offset."""
        kept = bisect_right(self._ends, end)
        torn = self._ranges[kept : kept + 1]
        for column in (self._ends, self._counts, self._ranges):
            del column[kept:]
        for cut in torn:
            rest = cut._replace(end=cut.before(end), to=end)
            if rest.size:
                self.add(rest)

    def before(self, offset: int) -> int:
        """The number of messages before an offset."""
        complete = bisect_right(self._ends, offset)
        count = self._counts[complete - 1] if complete else 0
        if complete < len(self._ranges):
            part = self._ranges[complete]
            count += part.before(offset) - part.first
        return count


class _Following:
    """The state of logs and groups while a trace is read."""

    def __init__(self, home: dict[str, str]) -> None:
        self.home = home
        self.logs: dict[tuple[str, Partition], Stored] = {}
        self.places: dict[Read, int] = {}
        self.readers: dict[tuple[str, Partition], list[Read]] = {}
        """The log of a partition -> its readers."""
        self.steps: dict[Read, Steps] = {}

    def take(self, event: Event) -> None:
        """Take an event into account."""
        name = event.partition or event.detail["partition"]
        partition = Partition(event.topic, name)
        if event.kind in (EventKind.STORED, EventKind.LOG_OPENED):
            key = (cluster_of(event.node), partition)
            log = self.logs.setdefault(key, Stored())
            if event.kind == EventKind.LOG_OPENED:
                log.cut(event.detail["end"])
            for row in event.detail.get("ranges", ()):
                log.add(MessageRange(*row))
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
    """The position of a group after an event of a member; None if the event has none."""
    if event.kind == EventKind.CONSUMED:
        ranges = event.detail.get("ranges", ())
        return int(ranges[-1][4]) if ranges else None
    return int(event.detail["to"])


def lags(trace: Trace) -> dict[Read, Steps]:
    """The lag of each group in each partition, from its first position on."""
    following = _Following(clusters(trace))
    for event in trace.of_kind(
        EventKind.STORED, EventKind.LOG_OPENED, EventKind.CONSUMED, EventKind.OFFSET_RESET
    ):
        following.take(event)
    ordered = sorted(
        following.steps, key=lambda read: (natural(read.group), *map(natural, read.partition))
    )
    return {read: following.steps[read] for read in ordered}


def greatest(steps: Steps) -> tuple[int, int]:
    """The greatest lag, and when it was that first."""
    lag, t_us = max(((lag, -t_us) for t_us, lag in steps), default=(0, 0))
    return lag, -t_us
