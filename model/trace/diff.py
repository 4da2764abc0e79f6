"""Where two runs part: the first event that differs, and what followed from it.

Two runs of one scenario, variant and seed are compared event for event: they have to be
the same. Runs that differ in any of these never happen at the same microseconds, so for
them each process is compared with itself: what it did, in order, without the times. The
first difference of each process is found, and the earliest of these is where they parted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from model.trace import Event, Trace

Story = list[tuple[int, str]]
"""What a process did: the number of each event, and what it amounts to."""

FOLLOWING = 8

TIMELESS = frozenset({"fetched", "fires", "hears", "waits", "wakes", "sleeps"})
"""Kinds whose order within a process depends on moments alone."""


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
    """The processes that only the one or only the other run has."""
    member: Parting | None = None
    """The first parting of a member of a group, where another process parted before it.

    Brokers hardly ever register in the same order twice; that need not mean anything.
    """


def compare(left: Trace, right: Trace) -> Parting | None:
    """Find where two runs part; None if nothing that counts differs."""
    if _is_same_run(left, right):
        return _exactly(left, right)
    lefts, rights = _stories(left), _stories(right)
    partings = sorted(
        _by_process(lefts, rights, left, right),
        key=lambda one: (_moment(one.left, one.right), one.node),
    )
    if not partings:
        return None
    only_left, only_right = lefts.keys() - rights.keys(), rights.keys() - lefts.keys()
    members = [one for one in partings if _is_of_member(one)]
    return replace(
        partings[0],
        member=members[0] if members and members[0] is not partings[0] else None,
        parted=tuple(one.node for one in partings),
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
    lefts: dict[str, Story], rights: dict[str, Story], left: Trace, right: Trace
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


def _stories(trace: Trace) -> dict[str, Story]:
    stories: dict[str, Story] = {}
    for event in trace:
        if event.kind not in TIMELESS and event.node:
            stories.setdefault(event.node, []).append((event.seq, gist(event)))
    return stories


def gist(event: Event) -> str:
    """What an event amounts to, without times, zxids and numbers of sessions."""
    detail = event.detail
    words = [event.kind]
    if event.topic:
        words.append(event.place if event.partition else event.topic)
    for key in ("op", "for", "path", "does", "verb", "what", "why", "state"):
        if key in detail:
            words.append(str(detail[key]))
    answer = detail.get("answer")
    if isinstance(answer, dict) and "error" in answer:
        words.append(str(answer["error"]))
    return " ".join(words)
