"""What goes on for ever is reported with the way into its circle and once round it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from io import StringIO

import pytest
from bench.support.mutant_search import plan_of
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.support.checker.clusters import searched, small
from watchkeeper.check.replay import replay_sim
from watchkeeper.check.report import print_counterexample
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.explanation import counterexample_of
from watchkeeper.checker.counterexample.path import Taken, lasso_steps, path_to, successors
from watchkeeper.checker.counterexample.replay_steps import NoSuchStep
from watchkeeper.checker.search.lasso import Lasso, LassoStep, fair_cycle
from watchkeeper.checker.search.liveness import Liveness, judge, violation_of
from watchkeeper.checker.search.search import Search, SearchOptions
from watchkeeper.model.counterexample.counterexample import Counterexample, Schedule
from watchkeeper.model.mutants.catalogue import MUTANTS
from watchkeeper.model.plan.bounds import Bounds

FOR_EVER = ("claims-lost-on-error", "kafka-286-claims-kept", "memory-lost")
"""Mutants that go on for ever and never reach a converged state."""

# --- once round --------------------------------------------------------------------------


@st.composite
def parts(draw: st.DrawFn) -> tuple[dict[int, list[LassoStep]], dict[int, frozenset[int]]]:
    """States that all reach each other, and in which states each actor has no move."""
    size, actors = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    pairs = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))))
    pairs += [(number, (number + 1) % size) for number in range(size)]
    moves: dict[int, list[LassoStep]] = {state: [] for state in range(size)}
    for source, target in pairs:
        moves[source].append(LassoStep(draw(st.integers(0, actors - 1)), target))
    movers = {hop.actor for hops in moves.values() for hop in hops}
    waits = {}
    for actor in range(actors):
        idle = {move for move in moves if all(hop.actor != actor for hop in moves[move])}
        some = draw(st.sets(st.sampled_from(sorted(idle)))) if idle else set[int]()
        waits[actor] = frozenset(some or (set() if actor in movers else idle))
    return moves, waits


@given(parts(), st.data())
def test_a_round_comes_back_and_passes_no_member_over(
    part: tuple[dict[int, list[LassoStep]], dict[int, frozenset[int]]], data: st.DataObject
) -> None:
    moves, waits = part
    begin = data.draw(st.sampled_from(sorted(moves)))

    hops = fair_cycle(begin, moves, waits)

    at = begin
    for hop in hops:
        assert hop in moves[at]
        at = hop.after
    assert at == begin
    assert hops
    for actor, idle in waits.items():
        moves_once = any(hop.actor == actor for hop in hops)
        assert moves_once or not idle.isdisjoint({hop.after for hop in hops})


def test_a_round_is_no_longer_than_it_has_to_be() -> None:
    """Where no member has to be taken in, it is the shortest way back."""
    moves = {0: [LassoStep(0, 1), LassoStep(0, 2)], 1: [LassoStep(0, 2)], 2: [LassoStep(0, 0)]}

    assert fair_cycle(0, moves, {0: frozenset()}) == (LassoStep(0, 2), LassoStep(0, 0))


# --- in a search -------------------------------------------------------------------------


@cache
def found(name: str) -> tuple[ClusterSystem, Search, Liveness]:
    """A search of a mutant's configuration."""
    mutant = MUTANTS[name]
    system = ClusterSystem(plan_of(mutant, mutant.variant), mutant.configuration.bounds)
    search = Search(system, SearchOptions(finds_all=True))
    search.run()
    return system, search, judge(search)


def counterexample_in(name: str, live: Liveness | None = None) -> Counterexample:
    """The counterexample of a mutant; `live` in place of what was found."""
    system, search, known = found(name)
    violation = violation_of(live or known)
    assert violation is not None
    return counterexample_of(system, search, violation, live or known)


def rounds(name: str) -> tuple[ClusterSystem, list[Taken], list[Taken]]:
    """The steps into the circle of a mutant, and those round it."""
    system, search, live = found(name)
    assert live.lasso is not None
    return system, *lasso_steps(system, search, live.lasso)


@pytest.mark.parametrize("name", FOR_EVER)
def test_a_circle_is_fair_by_what_every_actor_could_do(name: str) -> None:
    """Looked at without the tables of the search: no fault, and no member is passed over."""
    system, stem, hops = rounds(name)

    assert hops[-1].after == hops[0].before
    assert not any(step.step.fault or step.step.is_idle for step in (*stem, *hops))
    for actor in range(len(system.members)):
        could_always = all(
            any(
                can.actor == actor and not (can.step.fault or can.step.is_idle)
                for can in successors(system, hop.before)
            )
            for hop in hops
        )
        assert not could_always or any(hop.actor == actor for hop in hops)


@pytest.mark.parametrize("name", FOR_EVER)
def test_a_way_into_a_circle_begins_where_it_is_stuck(name: str) -> None:
    system, search, live = found(name)
    violation = violation_of(live)
    assert violation is not None
    way = path_to(system, search, violation)
    _, stem, hops = rounds(name)

    all_steps = [*way, *stem, *hops]

    assert live.stuck == violation.state
    assert [step.after for step in all_steps[:-1]] == [step.before for step in all_steps[1:]]


# --- its report --------------------------------------------------------------------------


def printed(counterexample: Counterexample) -> list[str]:
    """A counterexample as it is printed, without its headings' blanks."""
    to = Console(file=StringIO(), width=400)
    print_counterexample(counterexample, to)
    assert isinstance(to.file, StringIO)
    return [line.strip() for line in to.file.getvalue().splitlines()]


def test_a_counterexample_goes_on_into_the_circle_and_round_it() -> None:
    counterexample = counterexample_in("kafka-286-claims-kept")

    parts = (counterexample.steps, counterexample.stem, counterexample.cycle)
    assert [len(part) for part in parts] == [19, 5, 1]
    assert [step.number for step in counterexample.all_steps] == list(range(1, 26))
    lines = printed(counterexample)
    assert lines[0] == "the shortest way to violate progress, 19 steps:"
    assert lines[9].endswith(", mine, and 4 more reads")
    assert ", and 1 more read  ·" in lines[19]
    assert lines[20] == "and then, to where it goes round:"
    assert lines[26] == "and this for ever:"
    assert lines[28] == "after step 25 all is as it was after step 24"
    assert lines[29] == counterexample.proof
    assert counterexample.proof == (
        "after step 19 no converged state is reachable any more, even if nothing else goes "
        "wrong; group/0 may go round for ever, in step 25"
    )


def test_a_circle_that_could_be_left_is_reported_as_one() -> None:
    """A converged state is reachable, and need not be reached."""
    _, _, live = found("kafka-286-claims-kept")
    assert live.lasso is not None
    only_round = Lasso(live.lasso.stem[-1:], live.lasso.cycle)

    counterexample = counterexample_in("kafka-286-claims-kept", Liveness(None, False, only_round))

    parts = (counterexample.steps, counterexample.stem, counterexample.cycle)
    assert [len(part) for part in parts] == [24, 0, 1]
    assert counterexample.proof == (
        "after step 24 group/0 may go round for ever, in step 25, and no converged "
        "state is reached, though no process is passed over and nothing else goes wrong"
    )


def test_where_nothing_goes_round_only_the_way_is_reported() -> None:
    """Retries run out, and all are at rest with a partition that no member fetches."""
    system, search, _ = searched(small("kafka_07"))
    live = judge(search)
    violation = violation_of(live)
    assert violation is not None

    counterexample = counterexample_of(system, search, violation, live)

    assert (counterexample.stem, counterexample.cycle) == ((), ())
    assert counterexample.proof.endswith(
        "no converged state is reachable any more, even if nothing else goes wrong"
    )
    assert "and this for ever:" not in printed(counterexample)
    done = replay_sim(small("kafka_07"), Bounds(), counterexample.schedule)
    assert (done.conforms, done.reached) == (True, True), done.text
    assert done.text.startswith("progress is violated: at rest at ")


# --- how it is replayed ------------------------------------------------------------------


def replayed(name: str, schedule: Schedule) -> str:
    """What a replay of a mutant's schedule says."""
    mutant = MUTANTS[name]
    plan = plan_of(mutant, mutant.variant)
    return replay_sim(plan, mutant.configuration.bounds, schedule).text


@pytest.mark.parametrize("name", FOR_EVER)
def test_a_replay_goes_round_three_times(name: str) -> None:
    schedule = counterexample_in(name).schedule

    replay_text = replayed(name, schedule)

    number = len(schedule.cycle)
    steps = f"{number} step{'' if number == 1 else 's'}"
    assert replay_text == (
        f"progress is violated: after {len(schedule.steps)} steps it goes round and round, "
        f"{steps} each time; 3 rounds were made"
    )


def test_a_circle_that_is_not_closed_is_refused() -> None:
    name = "kafka-286-claims-kept"
    schedule = counterexample_in(name).schedule

    with pytest.raises(NoSuchStep, match="does not lead back to where it begins"):
        replayed(name, replace(schedule, steps=schedule.steps[:-1], cycle=schedule.steps[-1:]))


def test_a_circle_without_its_way_cannot_be_followed() -> None:
    name = "kafka-286-claims-kept"
    schedule = counterexample_in(name).schedule

    with pytest.raises(NoSuchStep, match="step 1: "):
        replayed(name, replace(schedule, steps=()))
