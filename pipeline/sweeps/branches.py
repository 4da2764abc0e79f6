"""When a failure became inevitable: one failing run, left at many events, many times over.

The first events of a run are replayed as they were, and what is left to chance after them is
drawn anew, again and again. How many of these branches still fail says how much of the
failure was decided by then: the share of all seeds at first, and all of them in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model.properties import judge
from model.sweeps import Share
from pipeline.sweeps.grid import Cell, draw
from pipeline.sweeps.runners import Runner
from sim.branching import Branch
from sim.world import Interrupted, simulate

BRANCHES_AT_ONCE = 10
SURE = 950
"""Of 1,000: a failure counts as decided where the interval lies above."""


@dataclass(frozen=True, slots=True)
class Failing:
    """A run that fails."""

    cell: Cell
    seed: int
    violates: tuple[str, ...]
    """A branch fails as it does if it violates one of these."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Some branches that leave a run at one event."""

    run: Failing
    events: int
    branches: range


@dataclass(frozen=True, slots=True)
class Point:
    """How many branches fail that leave a run at an event."""

    events: int
    at_us: int
    """When that event happens."""
    share: Share


def curve(
    run: Failing, moments: Sequence[tuple[int, int]], branches: int, runner: Runner
) -> list[Point]:
    """How many branches fail, for each of these numbers of events and their moments."""
    forks = [
        Fork(run, events, range(first, min(first + BRANCHES_AT_ONCE, branches)))
        for events, _ in moments
        for first in range(0, branches, BRANCHES_AT_ONCE)
    ]
    failed = dict.fromkeys((events for events, _ in moments), 0)
    for fork, number in runner.each(failing, forks):
        failed[fork.events] += number
    return [Point(events, at_us, Share(failed[events], branches)) for events, at_us in moments]


def failing(fork: Fork) -> int:
    """How many of some branches fail as their run does."""
    return sum(_fails(fork, number) for number in fork.branches)


def _fails(fork: Fork, number: int) -> bool:
    cell, seed = fork.run.cell, fork.run.seed
    other = draw(cell.run_id(seed), f"branch {number} at {fork.events}")
    branch = Branch(fork.events, other)
    try:
        done = simulate(cell.plan, seed, profile=cell.profile, branch=branch)
    except Interrupted:
        raise KeyboardInterrupt from None
    violated = judge(cell.plan, done.trace, done.effects).violated()
    return not set(violated).isdisjoint(fork.run.violates)


def decided(points: Sequence[Point]) -> Point | None:
    """From where on nearly every branch fails; None if that is never so."""
    first = None
    for point in points:
        is_sure = point.share.interval[0] >= SURE or point.share.number == point.share.runs
        first = (first or point) if is_sure else None
    return first


def moments(times_us: Sequence[int], until: int, number: int) -> list[tuple[int, int]]:
    """So many numbers of events, from none to those before and with the violation, in even
    steps; each with the moment of its last event."""
    steps = sorted({until * at // number for at in range(number + 1)})
    return [(events, times_us[events - 1] if events else 0) for events in steps]
