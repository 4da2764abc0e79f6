"""The difference between two runs: the first event that differs, and its consequences.

Two runs of one scenario, variant and seed are compared event for event: they have to be equal.
Runs that differ in any of these never agree to the microsecond, so each process is compared
with itself: its events in order, without times. The first difference of each process is found,
and the earliest of these is where the runs diverge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace

History = list[tuple[int, str]]
"""The events of a process: the number of each, and its gist."""

FOLLOWING = 8

TIMELESS = frozenset(
    {
        EventKind.FETCHED,
        EventKind.WATCH_FIRED,
        EventKind.NOTIFIED,
        EventKind.WAITING,
        EventKind.WOKEN,
        EventKind.SLEEPING,
    }
)
"""Kinds whose order within a process depends on timing alone."""


@dataclass(frozen=True, slots=True)
class Parting:
    """Where two runs part."""

    node: str
    left: Event | None
    right: Event | None
    left_after: tuple[Event, ...]
    right_after: tuple[Event, ...]
    exact: bool
    parted: tuple[str, ...]
    """Every process that did something else, in the order in which they parted."""
    alone: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The processes that only one of the two runs has."""
    member: Parting | None = None
    """The first divergence of a group member, if another process diverged before it.

    Brokers hardly ever register in the same order twice; that need not matter.
    """


def compare(left: Trace, right: Trace) -> Parting | None:
    """Find where two runs diverge; None if they do not."""
    if _is_same_run(left, right):
        return _exactly(left, right)
    lefts, rights = _histories(left), _histories(right)
    partings = sorted(
        _by_process(lefts, rights, left, right),
        key=lambda parting: (_moment(parting.left, parting.right), parting.node),
    )
    if not partings:
        return None
    only_left, only_right = lefts.keys() - rights.keys(), rights.keys() - lefts.keys()
    members = [parting for parting in partings if _is_of_member(parting)]
    return replace(
        partings[0],
        member=members[0] if members and members[0] is not partings[0] else None,
        parted=tuple(parting.node for parting in partings),
        alone=(tuple(sorted(only_left)), tuple(sorted(only_right))),
    )


def _is_of_member(parting: Parting) -> bool:
    return any(event.group for event in (parting.left, parting.right) if event is not None)


def _is_same_run(left: Trace, right: Trace) -> bool:
    return left.header.run_id == right.header.run_id


def _moment(*events: Event | None) -> int:
    return min((event.t_us for event in events if event is not None), default=0)


def _exactly(left: Trace, right: Trace) -> Parting | None:
    at = _first_difference(left.rows, right.rows)
    if at is None:
        return None
    one = left[at] if at < len(left) else None
    other = right[at] if at < len(right) else None
    node = (one or other or left[0]).node
    return Parting(
        node,
        one,
        other,
        tuple(left[seq] for seq in range(at + 1, min(at + 1 + FOLLOWING, len(left)))),
        tuple(right[seq] for seq in range(at + 1, min(at + 1 + FOLLOWING, len(right)))),
        True,
        (node,),
    )


def _first_difference(left: list[Any], right: list[Any]) -> int | None:
    for at, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return at
    return None if len(left) == len(right) else min(len(left), len(right))


def _by_process(
    lefts: dict[str, History], rights: dict[str, History], left: Trace, right: Trace
) -> Iterator[Parting]:
    """The parting of each process; of those that both runs have, if there are any."""
    for node in sorted((lefts.keys() & rights.keys()) or (lefts.keys() | rights.keys())):
        one, other = lefts.get(node, []), rights.get(node, [])
        at = _first_difference([what for _, what in one], [what for _, what in other])
        if at is not None:
            yield Parting(
                node,
                left[one[at][0]] if at < len(one) else None,
                right[other[at][0]] if at < len(other) else None,
                tuple(left[seq] for seq, _ in one[at + 1 : at + 1 + FOLLOWING]),
                tuple(right[seq] for seq, _ in other[at + 1 : at + 1 + FOLLOWING]),
                False,
                (node,),
            )


def _histories(trace: Trace) -> dict[str, History]:
    histories: dict[str, History] = {}
    for event in trace:
        if event.kind not in TIMELESS and event.node:
            histories.setdefault(event.node, []).append((event.seq, gist(event)))
    return histories


def gist(event: Event) -> str:
    """An event without times, zxids and session numbers."""
    detail = event.detail
    words = [event.kind]
    if event.subject:
        words.append(event.subject)
    for key in ("op", "purpose", "path", "does", "verb", "what", "why", "state"):
        if key in detail:
            words.append(str(detail[key]))
    answer = detail.get("answer")
    if isinstance(answer, dict) and "error" in answer:
        words.append(str(answer["error"]))
    return " ".join(words)
