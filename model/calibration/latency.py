"""The latencies of a ZooKeeper, read from the trace of a measurement.

A round trip is the time from a program's request to its response. A watch event is delivered
between the response to the write that fires it and the moment when the other client is
notified; it may arrive first, since a server sends the event before the response. The lateness
of an expiry is the time from the session's last sign of life and its timeout to the moment
when an observer is notified that its ephemeral is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from watchkeeper.model.calibration.probe_program import (
    ASKER,
    ASLEEP,
    PHASE,
    SLEEPER,
    WARM_UP,
    WATCHED,
    WATCHER,
    Sizes,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Row

LEVELS = (0, 1, 2, 5, 10, 25, 50, 75, 90, 95, 98, 99, 99.9, 100)
"""Per cent: the quantiles of a distribution."""


class NoMeasurement(ValueError):
    """The trace does not show what was to be measured."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """How long something takes: how often it was measured, and its quantiles."""

    number: int
    values_us: tuple[int, ...]
    """One value for each of `LEVELS`."""

    def at(self, level: float) -> int:
        """The value that this per cent of samples does not exceed."""
        return self.values_us[LEVELS.index(level)]

    @property
    def median(self) -> int:
        """The value in the middle."""
        return self.at(50)


def quantile(ordered: Sequence[int], level: float) -> int:
    """A quantile of values in order, between two of them where it falls there."""
    at_m = round(level * 1000) * (len(ordered) - 1)
    low, rest = divmod(at_m, 100_000)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * rest // 100_000


def distribution(samples: Iterable[int], what: str) -> Distribution:
    """The distribution of samples; NoMeasurement if there are none."""
    ordered = sorted(samples)
    if not ordered:
        raise NoMeasurement(f"nothing in the trace shows how long {what} takes")
    return Distribution(len(ordered), tuple(quantile(ordered, level) for level in LEVELS))


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one ZooKeeper. All times are in microseconds."""

    servers: int
    tick_us: int
    in_flight: int
    """Requests in a pipelined batch."""
    crowd: int
    """Watches that one multi fires in `watched crowd`, and none in `unwatched crowd`."""
    timeout_us: int
    """Of the sessions that were left to expire."""
    round_trips: Mapping[str, Distribution]
    """Operation, one at a time -> time from request to response."""
    batches: Mapping[str, Distribution]
    """Many operations at once -> from asking to the last answer."""
    watch: Distribution
    """From the answer of the write to the event at another client; negative if that is first."""
    write_to_watch: Distribution
    """From the request of the write to the event at another client."""
    expiry: Distribution
    """From the end of the timeout to the event at an observer."""
    sessions: int
    """How many of them were silent at once."""
    after_tick: Distribution
    """The same from the end of the tick in which the timeout ended."""


ROUND_TRIPS = {"get": "read", "set": "write", "create": "create", "delete": "delete"}
"""Word of the trace -> name of the round trip; a multi is named by its size."""
SMALL_MULTI = "multi of 3"
CROWDS = UNWATCHED, WATCHED_CROWD = "unwatched crowd", "watched crowd"
PIPELINED_READ, PIPELINED_WRITE = "pipelined read", "pipelined write"


class Samples:
    """Durations, taken from the rows of a trace."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.singles: dict[str, list[int]] = {}
        self.batches: dict[str, list[int]] = {}
        self.watch: list[int] = []
        self.write_to_watch: list[int] = []
        self.signs_us: dict[str, int] = {}
        """Ephemeral -> the last sign of life of its session."""
        self.ends_us: dict[str, int] = {}
        """Ephemeral -> when the observer was notified that it is gone."""
        self._phase: dict[str, str] = {}
        self._server: dict[str, str] = {}
        self._asked: dict[str, tuple[int, str]] = {}
        self._written: dict[str, tuple[int, int]] = {}
        """Watched znode -> when its write was requested, and answered."""
        self._heard_us: dict[str, int] = {}
        for row in sorted(rows, key=lambda row: row[0]):
            self._take(row)
        for path, heard_us in self._heard_us.items():
            if path in self._written:
                asked_us, answered_us = self._written[path]
                self.watch.append(heard_us - answered_us)
                self.write_to_watch.append(heard_us - asked_us)
        if len(set(self._server.values())) > 1:
            self._forget_watches()

    def _take(self, row: Row) -> None:
        t_us, node, kind = row[:3]
        detail = row[8]
        if kind == EventKind.CONNECTED and node.startswith((ASKER, WATCHER)):
            self._server[node] = detail.get("at", "")
        elif kind == PHASE:
            self._phase[node] = detail["what"]
        elif kind == EventKind.REQUEST:
            self._asked[node] = t_us, detail.get("path", "")
        elif kind == EventKind.RESPONSE:
            self._answered(node, t_us, detail)
        elif kind == EventKind.NOTIFIED:
            self._heard(node, t_us, detail)
        elif kind == EventKind.ENDED and detail["failed"] and not node.startswith(SLEEPER):
            raise NoMeasurement(f"{node} could not go on: {detail['why']}")

    def _forget_watches(self) -> None:
        """Drop samples of watches: their cost shows only if both clients share a server."""
        self.watch.clear()
        self.write_to_watch.clear()
        for crowd in CROWDS:
            self.batches.pop(crowd, None)

    def _answered(self, node: str, t_us: int, detail: Mapping[str, object]) -> None:
        asked_us, path = self._asked[node]
        phase = self._phase.get(node, "")
        took_us, word = t_us - asked_us, str(detail["op"])
        if path.startswith(ASLEEP) and word == "create":
            self.signs_us[path] = asked_us
        elif path.startswith(WATCHED) and word == "create":
            self._written[path] = asked_us, t_us
        elif phase == "round trip":
            self.singles.setdefault(ROUND_TRIPS.get(word, SMALL_MULTI), []).append(took_us)
        elif word in ("pipelined", "multi") and phase not in ("", WARM_UP):
            self.batches.setdefault(phase, []).append(took_us)

    def _heard(self, node: str, t_us: int, detail: Mapping[str, object]) -> None:
        path = str(detail.get("path", ""))
        if node.startswith(WATCHER) and path.startswith(WATCHED):
            self._heard_us[path] = t_us
        elif path.startswith(ASLEEP) and detail["what"] == "deleted":
            self.ends_us[path] = t_us


def merged(parts: Sequence[Samples]) -> Samples:
    """The samples of several runs as one. Their run distinguishes their sessions."""
    merged_samples = Samples([])
    for number, part in enumerate(parts):
        for mine, theirs in (
            (merged_samples.singles, part.singles),
            (merged_samples.batches, part.batches),
        ):
            for name, values in theirs.items():
                mine.setdefault(name, []).extend(values)
        merged_samples.watch += part.watch
        merged_samples.write_to_watch += part.write_to_watch
        merged_samples.signs_us.update(
            {f"{number}{path}": at for path, at in part.signs_us.items()}
        )
        merged_samples.ends_us.update(
            {f"{number}{path}": at for path, at in part.ends_us.items()}
        )
    return merged_samples


def measured(
    samples: Samples,
    sizes: Sizes,
    *,
    servers: int,
    tick_us: int,
    timeout_us: int,
    phase_us: int | None,
) -> Measured:
    """The measurements that follow from the samples.

    `phase_us` is the end of a tick on the clock of the trace; None if it is unknown and has to be
    inferred from the moments at which sessions ended.
    """
    # A simulated sleeper may be killed before its response; its last sign of life is unknown.
    ends = [
        (samples.signs_us[path], end)
        for path, end in samples.ends_us.items()
        if path in samples.signs_us
    ]
    moments = [end for _, end in ends]
    origin_us = first_of_cycle(moments, tick_us) if phase_us is None else phase_us
    return Measured(
        servers,
        tick_us,
        sizes.in_flight,
        sizes.crowd,
        timeout_us,
        _distributions(samples.singles),
        _distributions(samples.batches),
        distribution(samples.watch, "a watch"),
        distribution(samples.write_to_watch, "a watch"),
        distribution((end - sign - timeout_us for sign, end in ends), "the end of a session"),
        sizes.sessions,
        distribution(((end - origin_us) % tick_us for end in moments), "the end of a session"),
    )


def _distributions(samples: Mapping[str, Sequence[int]]) -> dict[str, Distribution]:
    return {name: distribution(values, name) for name, values in samples.items()}


def first_of_cycle(moments_us: Sequence[int], cycle_us: int) -> int:
    """The start of the cluster of moments in a cycle: after the longest gap."""
    places = sorted({moment % cycle_us for moment in moments_us})
    if not places:
        return 0
    gaps = [
        ((here - before) % cycle_us or cycle_us, here)
        for before, here in zip([places[-1], *places], places, strict=False)
    ]
    return max(gaps)[1]
