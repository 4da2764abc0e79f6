"""What stands where in the picture of a reassignment: windows of time, flags, lanes and lags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from watchkeeper.reports.facts.control_plane.leaders import PartitionLeaders
from watchkeeper.reports.facts.control_plane.reassignments import Move, MoveStep
from watchkeeper.reports.facts.control_plane.replica_logs import LeaderLog, LogEnd

PADDING = 0.06
"""The share of a move's duration that is drawn before and after it."""
LEAST_PADDING_US = 1_000
LATE = 3
"""A step that comes later than so many durations after the move is not in its window."""
BETWEEN_FLAGS = 0.08
"""In inches."""


class Part(NamedTuple):
    """A part of a lane."""

    what: str
    start_us: int
    end_us: int


class Lag(NamedTuple):
    """How far a replica is behind its leader from a moment on."""

    t_us: int
    records: int


LEADS, IN_SYNC = "leads", "in the ISR"


def window(move: Move, end_us: int) -> tuple[int, int]:
    """Return the part of the run in which a move is drawn."""
    took = max(move.until_us - move.begin_us, 1)
    ends = [taken.t_us for taken in move.steps if taken.t_us <= move.until_us + LATE * took]
    last = max(move.until_us, *ends)
    padding = max(LEAST_PADDING_US, round(PADDING * (last - move.begin_us)))
    return max(0, move.begin_us - padding), min(end_us, last + padding)


def flags(places: Sequence[float], width_of: Callable[[str], float]) -> list[tuple[float, str]]:
    """Return where the numbers of steps stand: those that are too close share one flag."""
    found: list[tuple[float, int, int]] = []
    for number, x in enumerate(places, 1):
        if found:
            left, first, last = found[-1]
            if x < left + width_of(_numbers(first, last)) + BETWEEN_FLAGS:
                found[-1] = left, first, number
                continue
        found.append((x, number, number))
    return [(x, _numbers(first, last)) for x, first, last in found]


def _numbers(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def parts_of(one: PartitionLeaders, broker: int) -> list[Part]:
    """Return when a broker led a partition or was in its ISR."""
    found: list[Part] = []
    for span, isr in one.isrs:
        for led in one.led if broker in isr else ():
            start, end = max(led.start_us, span.start_us), min(led.end_us, span.end_us)
            if start >= end:
                continue
            what = LEADS if led.what == f"broker {broker}" else IN_SYNC
            if found and found[-1].what == what and found[-1].end_us == start:
                start = found.pop().start_us
            found.append(Part(what, start, end))
    return found


def assignments(move: Move, end_us: int) -> list[Part]:
    """Return the brokers that the assignment names, from one of its changes to the next."""
    changes = [(0, move.before)]
    for taken in move.steps:
        if taken.step is MoveStep.GROWN:
            changes.append((taken.t_us, (*move.targets, *move.old)))
        elif taken.step is MoveStep.SHRUNK:
            changes.append((taken.t_us, move.targets))
    ends = [*(start for start, _ in changes[1:]), end_us]
    return [
        Part(", ".join(map(str, brokers)), start, end)
        for (start, brokers), end in zip(changes, ends, strict=True)
    ]


def holds(ends: Sequence[LogEnd], end_us: int) -> list[Part]:
    """Return when a broker had a replica: from its first log end until it is deleted."""
    found: list[Part] = []
    since: int | None = None
    for one in ends:
        if one.end is None and since is not None:
            found.append(Part("", since, one.t_us))
            since = None
        elif one.end is not None and since is None:
            since = one.t_us
    if since is not None:
        found.append(Part("", since, end_us))
    return found


def lags(log: LeaderLog, ends: Sequence[LogEnd], until_us: int) -> list[Lag]:
    """Return by how many records a replica was behind its leader, until a moment.

    It begins with the first log end of the replica.
    """
    moments = sorted(
        [(one.t_us, 0, one.end) for one in log.watermarks]
        + [(one.t_us, 1, one.end or 0) for one in ends]
    )
    leader = 0
    own: int | None = None
    found: list[Lag] = []
    for t_us, is_own, end in moments:
        if t_us > until_us:
            break
        leader, own = (leader, end) if is_own else (end, own)
        if own is not None:
            behind = max(0, leader - own)
            if not found or found[-1].records != behind:
                found.append(Lag(t_us, behind))
    return found


def joined_us(move: Move, broker: int) -> int:
    """Return when a target joined the ISR; the end of the move if it never did."""
    joined: Iterable[int] = (
        taken.t_us
        for taken in move.steps
        if taken.step is MoveStep.JOINED and taken.broker == broker
    )
    return next(iter(joined), move.until_us)
