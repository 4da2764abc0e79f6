"""When a failure became inevitable: branches of one failing run at many of its events.

The first events of a run are replayed unchanged, and all random draws after them are repeated
with other seeds. The share of branches that still fail shows how much of the failure was decided
by then: the share of fresh seeds at first, and all of them at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.sweep_summary import Share
from watchkeeper.pipeline.sweeps.grid import Cell, draw
from watchkeeper.pipeline.sweeps.runners import Runner
from watchkeeper.sim.faults.fork import Branch
from watchkeeper.sim.world import Interrupted, simulate

BRANCHES_AT_ONCE = 10
SURE = 950
"""Of 1,000: a failure counts as decided if the interval lies above."""


@dataclass(frozen=True, slots=True)
class Failing:
    """A run that fails."""

    cell: Cell
    seed: int
    violates: tuple[str, ...]
    """A branch has the same failure if it violates one of these."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Branches of a run at one event."""

    run: Failing
    events: int
    branches: range


@dataclass(frozen=True, slots=True)
class Point:
    """How many branches at an event fail."""

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
    """The point from which on nearly every branch fails; None if there is none."""
    first = None
    for point in points:
        is_sure = point.share.interval[0] >= SURE or point.share.number == point.share.runs
        first = (first or point) if is_sure else None
    return first


def moments(times_us: Sequence[int], until: int, number: int) -> list[tuple[int, int]]:
    """Evenly spaced numbers of events, from none to those before and with the violation; each
    with the moment of its last event."""
    steps = sorted({until * at // number for at in range(number + 1)})
    return [(events, times_us[events - 1] if events else 0) for events in steps]
