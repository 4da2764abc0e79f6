"""A run that leaves another one at an event: what stays the same, and what it shows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.sweep_summary import Share
from watchkeeper.pipeline.sweeps.branches import Failing, Point, curve, decided, moments
from watchkeeper.pipeline.sweeps.grid import Cell
from watchkeeper.pipeline.sweeps.runners import Process
from watchkeeper.scenarios import load
from watchkeeper.sim.faults.fork import Branch
from watchkeeper.sim.world import simulate

PLAN = load("session-expiry").plan("kafka_07")
RUN = simulate(PLAN, 0)
EVENTS = len(RUN.trace)


@settings(max_examples=10)
@given(events=st.integers(0, EVENTS + 50), seed=st.integers(1, 2**40))
def test_a_branch_is_the_same_up_to_its_event(events: int, seed: int) -> None:
    """Event for event."""
    branch = simulate(PLAN, 0, branch=Branch(events, seed))

    assert branch.trace.rows[:events] == RUN.trace.rows[:events]


@settings(max_examples=5)
@given(seed=st.integers(1, 2**40))
def test_a_branch_from_the_beginning_is_the_run_of_its_seed(seed: int) -> None:
    """Nothing of the run that it leaves is left in it."""
    branch = simulate(PLAN, 0, branch=Branch(0, seed))

    assert branch.trace.fingerprint == simulate(PLAN, seed).trace.fingerprint


def test_a_branch_at_the_end_is_the_run_itself() -> None:
    """There is no event left that could differ."""
    branch = simulate(PLAN, 0, branch=Branch(EVENTS, 7))

    assert branch.trace.fingerprint == RUN.trace.fingerprint


def test_branches_of_different_seeds_differ() -> None:
    """What comes after the event is drawn anew."""
    first, second = (simulate(PLAN, 0, branch=Branch(200, seed)) for seed in (1, 2))

    assert first.trace.fingerprint != second.trace.fingerprint


def test_a_failure_that_chance_decides_becomes_inevitable() -> None:
    """Some seeds fail; once the violation is in the events that stay, every branch does."""
    plan, seed, name = load("broker-added").plan("documented"), 4, "single ownership"
    done = simulate(plan, seed)
    at_us = judge(plan, done.trace, done.effects).finding(name).at_us
    times = [event.t_us for event in done.trace]
    until = max(at for at, t_us in enumerate(times, 1) if t_us == at_us)
    run = Failing(Cell(0, (), plan, None), seed, (name,))

    with Process() as runner:
        points = curve(run, moments(times, until, 2), 12, runner)

    assert 0 < points[0].share.number < points[-1].share.number == 12
    found = decided(points)
    assert found is not None
    assert found.at_us <= (at_us or 0)


@pytest.mark.parametrize(
    ("numbers", "at"),
    [((0, 0, 20), 2), ((0, 20, 20), 1), ((20, 0, 20), 2), ((20, 20, 20), 0), ((0, 0, 0), None)],
)
def test_a_failure_is_decided_from_where_on_all_fail(
    numbers: tuple[int, ...], at: int | None
) -> None:
    """Not where all happen to fail once, and fewer do after that."""
    points = [Point(10 * place, 0, Share(number, 20)) for place, number in enumerate(numbers)]

    assert decided(points) == (None if at is None else points[at])


def test_moments_run_from_nothing_to_the_violation() -> None:
    """In even steps, each with the moment of the last event that stays."""
    assert moments([5, 7, 9, 11], 4, 2) == [(0, 0), (2, 7), (4, 11)]
    assert moments([5, 7], 1, 8) == [(0, 0), (1, 5)]
