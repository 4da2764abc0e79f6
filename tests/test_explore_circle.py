"""What goes on for ever is told with the way into its circle and once round it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from explore.circle import Circle, Hop, once_round
from explore.cluster import ClusterSystem
from explore.liveness import Liveness, judge, violation_of
from explore.search import Search
from explore.story import story_of
from explore.way import Taken, successors, way_round, way_to
from model.bounds import Bounds
from model.story import Schedule, Story
from model.zoo import PLANTS
from tests.exploring import searched, small
from watchkeeper.cueing import NoSuchStep
from watchkeeper.exploring_printing import tell_story
from watchkeeper.replaying import replay_sim
from watchkeeper.zoo import plan_of

FOR_EVER = ("claims-lost-on-error", "kafka-286-claims-kept", "memory-lost")
"""Plants that go on for ever and never come to a good rest."""

# --- once round --------------------------------------------------------------------------


@st.composite
def parts(draw: st.DrawFn) -> tuple[dict[int, list[Hop]], dict[int, frozenset[int]]]:
    """States that all reach each other, and in which states each actor has no move."""
    size, actors = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    pairs = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))))
    pairs += [(one, (one + 1) % size) for one in range(size)]
    moves: dict[int, list[Hop]] = {state: [] for state in range(size)}
    for source, target in pairs:
        moves[source].append(Hop(draw(st.integers(0, actors - 1)), target))
    movers = {hop.actor for hops in moves.values() for hop in hops}
    waits = {}
    for actor in range(actors):
        idle = {one for one in moves if all(hop.actor != actor for hop in moves[one])}
        some = draw(st.sets(st.sampled_from(sorted(idle)))) if idle else set[int]()
        waits[actor] = frozenset(some or (set() if actor in movers else idle))
    return moves, waits


@given(parts(), st.data())
def test_a_round_comes_back_and_passes_nobody_over(
    part: tuple[dict[int, list[Hop]], dict[int, frozenset[int]]], data: st.DataObject
) -> None:
    moves, waits = part
    begin = data.draw(st.sampled_from(sorted(moves)))

    hops = once_round(begin, moves, waits)

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
    """Where nobody has to be taken in, it is the shortest way back."""
    moves = {0: [Hop(0, 1), Hop(0, 2)], 1: [Hop(0, 2)], 2: [Hop(0, 0)]}

    assert once_round(0, moves, {0: frozenset()}) == (Hop(0, 2), Hop(0, 0))


# --- in a search -------------------------------------------------------------------------


@cache
def found(name: str) -> tuple[ClusterSystem, Search, Liveness]:
    """A search of a plant's configuration."""
    plant = PLANTS[name]
    system = ClusterSystem(plan_of(plant, plant.variant), plant.configuration.bounds)
    search = Search(system, goes_on=True)
    search.run()
    return system, search, judge(search)


def told(name: str, live: Liveness | None = None) -> Story:
    """The story of a plant; `live` in place of what was found."""
    system, search, known = found(name)
    violation = violation_of(live or known)
    assert violation is not None
    return story_of(system, search, violation, live or known)


def rounds(name: str) -> tuple[ClusterSystem, list[Taken], list[Taken]]:
    """The steps into the circle of a plant, and those round it."""
    system, search, live = found(name)
    assert live.circle is not None
    return system, *way_round(system, search, live.circle)


@pytest.mark.parametrize("name", FOR_EVER)
def test_a_circle_is_fair_by_what_everybody_could_do(name: str) -> None:
    """Looked at without the tables of the search: no fault, and nobody is passed over."""
    system, way_in, hops = rounds(name)

    assert hops[-1].after == hops[0].before
    assert not any(one.step.fault or one.step.is_idle for one in (*way_in, *hops))
    for actor in range(len(system.members)):
        could_always = all(
            any(
                can.actor == actor and not (can.step.fault or can.step.is_idle)
                for can in successors(system, one.before)
            )
            for one in hops
        )
        assert not could_always or any(one.actor == actor for one in hops)


@pytest.mark.parametrize("name", FOR_EVER)
def test_a_way_into_a_circle_begins_where_it_is_stuck(name: str) -> None:
    system, search, live = found(name)
    violation = violation_of(live)
    assert violation is not None
    way = way_to(system, search, violation)
    _, way_in, hops = rounds(name)

    whole = [*way, *way_in, *hops]

    assert live.stuck == violation.state
    assert [one.after for one in whole[:-1]] == [one.before for one in whole[1:]]


# --- how it is told ----------------------------------------------------------------------


def printed(story: Story) -> list[str]:
    """A story as it is printed, without its headings' blanks."""
    to = Console(file=StringIO(), width=400)
    tell_story(story, to)
    assert isinstance(to.file, StringIO)
    return [line.strip() for line in to.file.getvalue().splitlines()]


def test_a_story_goes_on_into_the_circle_and_round_it() -> None:
    story = told("kafka-286-claims-kept")

    assert [len(one) for one in (story.steps, story.way_in, story.circle)] == [20, 5, 4]
    assert [one.number for one in story.whole] == list(range(1, 30))
    lines = printed(story)
    assert lines[0] == "the shortest way to violate progress, 20 steps:"
    assert lines[21] == "and then, to where it goes round:"
    assert lines[27] == "and this for ever:"
    assert lines[32] == "after step 29 all is as it was after step 25"
    assert lines[33] == story.proof
    assert story.proof == (
        "after step 20 no good rest comes any more, whatever is done and even if nothing else "
        "goes wrong; group/0 may go round for ever, in steps 26 to 29"
    )


def test_a_circle_that_could_be_left_is_told_as_one() -> None:
    """Good rest could come, and need not."""
    _, _, live = found("kafka-286-claims-kept")
    assert live.circle is not None
    only_round = Circle(live.circle.way_in[-1:], live.circle.round)

    story = told("kafka-286-claims-kept", Liveness(None, False, only_round))

    assert (len(story.steps), len(story.way_in), len(story.circle)) == (25, 0, 4)
    assert story.proof == (
        "after step 25 group/0 may go round for ever, in steps 26 to 29, and no good rest "
        "comes, though nobody is passed over and nothing else goes wrong"
    )


def test_where_nothing_goes_round_only_the_way_is_told() -> None:
    """Retries run out, and all are at rest with a partition that nobody fetches."""
    system, search, _ = searched(small("kafka_07"))
    live = judge(search)
    violation = violation_of(live)
    assert violation is not None

    story = story_of(system, search, violation, live)

    assert (story.way_in, story.circle) == ((), ())
    assert story.proof.endswith("and even if nothing else goes wrong")
    assert "and this for ever:" not in printed(story)
    done = replay_sim(small("kafka_07"), Bounds(), story.schedule)
    assert (done.conforms, done.reached) == (True, True), done.said
    assert done.said.startswith("progress is violated: at rest at ")


# --- how it is replayed ------------------------------------------------------------------


def replayed(name: str, schedule: Schedule) -> str:
    """What a replay of a plant's schedule says."""
    plant = PLANTS[name]
    plan = plan_of(plant, plant.variant)
    return replay_sim(plan, plant.configuration.bounds, schedule).said


@pytest.mark.parametrize("name", FOR_EVER)
def test_a_replay_goes_round_three_times(name: str) -> None:
    schedule = told(name).schedule

    said = replayed(name, schedule)

    number = len(schedule.circle)
    steps = f"{number} step{'' if number == 1 else 's'}"
    assert said == (
        f"progress is violated: after {len(schedule.deeds)} steps it goes round and round, "
        f"{steps} each time; 3 rounds were made"
    )


def test_a_circle_that_is_not_closed_is_refused() -> None:
    name = "kafka-286-claims-kept"
    schedule = told(name).schedule

    with pytest.raises(NoSuchStep, match="does not lead back to where it begins"):
        replayed(name, replace(schedule, circle=schedule.circle[:-1]))


def test_a_circle_without_its_way_cannot_be_followed() -> None:
    name = "kafka-286-claims-kept"
    schedule = told(name).schedule

    with pytest.raises(NoSuchStep, match=f"step {len(schedule.deeds)}: "):
        replayed(name, replace(schedule, deeds=schedule.deeds[:-1]))
