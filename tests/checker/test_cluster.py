"""Clusters are searched: what holds, what does not, and that nothing is passed over."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from explore import liveness
from explore.cluster import ClusterSystem
from explore.regions import Regions
from explore.search import Limits, Search
from explore.story import story_of
from explore.way import way_to
from model.bounds import Bounds
from model.zoo import PLANTS
from tests.exploring import searched, small, violated
from watchkeeper.zoo import plan_of

FAULTS: list[dict[str, int]] = [
    {},
    {"crash": 1, "restart": 1},
    {"expire": 1},
    {"disconnect": 1},
    {"ghost": 1},
    {"lost_reply": 1},
    {"join": 1, "leave": 1},
]
VARIANTS: list[tuple[str, Any]] = [
    ("hardened", "0.7"),
    ("hardened", "0.8"),
    ("documented", "0.7"),
    ("kafka_07", "0.7"),
]


@pytest.mark.parametrize("faults", FAULTS, ids=lambda faults: "-".join(faults) or "none")
def test_hardened_holds_all_that_a_client_can_hold(faults: dict[str, int]) -> None:
    _, search, found = searched(small(), faults)

    assert found.is_complete
    assert violated(found) == []
    assert found.rests > 0
    assert liveness.judge(search).is_inevitable


PINNED = [
    ("hardened", {}, 997, 3),
    ("hardened", {"crash": 1}, 2_978, 6),
    ("documented", {}, 1_772, 3),
    ("kafka_07", {}, 1_358, 3),
]
"""Variant, faults, states, states at rest."""


@pytest.mark.parametrize(("variant", "faults", "states", "rests"), PINNED)
def test_there_are_as_many_states_as_there_were(
    variant: str, faults: dict[str, int], states: int, rests: int
) -> None:
    """A change here is a change of what the search means; it has to be explained."""
    _, _, found = searched(small(variant), faults)

    assert (found.progress.states, found.rests) == (states, rests)


# --- reductions ------------------------------------------------------------------------


def rests_of(system: ClusterSystem, search: Search) -> set[Any]:
    """Every state at rest, by what processes and tree hold, whatever their numbers are."""
    moves = {int(source) for block in search.edges.blocks for source in block.sources}  # type: ignore[union-attr]
    rests = set()
    for number in range(len(search.good.values)):
        if number not in moves:
            state = search.state(number)
            held = system.values(state)
            nodes = frozenset(system.service.trees[state[0]].nodes.items())
            rests.add((nodes, tuple((local.fetches, local.plans) for local in held.values())))
    return rests


@pytest.mark.parametrize("faults", FAULTS[:6], ids=lambda faults: "-".join(faults) or "none")
@pytest.mark.parametrize(("variant", "layout"), VARIANTS)
def test_reductions_pass_over_nothing_that_matters(
    variant: str, layout: Any, faults: dict[str, int]
) -> None:
    """With and without them the same is violated, and the same states are at rest."""
    plan = small(variant, layout=layout, partitions=1)
    plain_system, plain, all_of_it = searched(plan, faults, reduces=False)
    system, search, found = searched(plan, faults)

    assert all_of_it.is_complete
    assert found.is_complete
    assert violated(found) == violated(all_of_it)
    assert rests_of(system, search) == rests_of(plain_system, plain)
    assert found.progress.states <= all_of_it.progress.states
    reduced, full = liveness.judge(search), liveness.judge(plain)
    assert (reduced.stuck is None, reduced.is_inevitable, bool(reduced.circle)) == (
        full.stuck is None,
        full.is_inevitable,
        bool(full.circle),
    )


def test_a_circle_in_which_others_only_wait_for_the_search_is_none() -> None:
    """A search that lets one look first passes nobody over: the others could go on as well."""
    plant = PLANTS["kafka-262-last-claim"]
    plan, bounds = plan_of(plant, plant.variant), plant.configuration.bounds
    found = []
    for reduces in (True, False):
        search = Search(ClusterSystem(plan, bounds, folds=reduces), goes_on=True, reduces=reduces)
        search.run()
        found.append(liveness.judge(search))

    assert [one.circle for one in found] == [None, None]
    assert not any(one.is_inevitable for one in found)


FLAWED = ("adopts-by-name", "stale-memory", "clears-away", "lost-reply", "memory-lost")
"""Mistakes about registrations, claims and answers: what the reductions rely on."""


@pytest.mark.parametrize("flawed", FLAWED)
def test_reductions_hide_nothing_of_a_flawed_member(flawed: str) -> None:
    test_reductions_pass_over_nothing_that_matters(flawed, "0.7", {"expire": 1})


def test_a_search_that_meets_a_write_to_what_was_settled_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regions that are told wrong do not go unnoticed: the states are those of no regions."""
    plan = small(partitions=1)
    monkeypatch.setattr(Regions, "looked_at", lambda *_: 0)
    _, plain, without = searched(plan, {"crash": 1})
    monkeypatch.undo()
    monkeypatch.setattr(Regions, "_of_registration", lambda *_: 0)

    _, search, found = searched(plan, {"crash": 1})

    assert plain.alone.looks_first
    assert not search.alone.looks_first
    assert (found.progress.states, found.rests) == (without.progress.states, without.rests)


@pytest.mark.parametrize(
    ("reduction", "told"), [("finds_out", True), ("merged", False)], ids=["private", "merged"]
)
def test_each_reduction_makes_fewer_states(
    reduction: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small(partitions=1)
    _, _, found = searched(plan, {"expire": 1})
    without = (lambda *_: False) if told else (lambda _, local: local)
    monkeypatch.setattr(f"explore.cluster.{reduction}", without)

    _, _, more = searched(plan, {"expire": 1})

    assert more.rests == found.rests
    assert more.progress.states > found.progress.states


def test_a_way_to_a_violation_has_every_step_that_was_passed_over() -> None:
    """Each step of a story begins where the last one ended."""
    system, search, found = searched(small("documented"))
    for violation in found.violations:
        way = way_to(system, search, violation)

        assert way[0].before == search.state(0)
        assert all(one.after == next_.before for one, next_ in itertools.pairwise(way))
        assert len(way) >= len(search.path(violation.state)) - 1


# --- what is violated, and how it is told ------------------------------------------------


def test_two_owners_are_told_with_their_steps() -> None:
    """The pages to the letter release before they stop: two fetch one partition."""
    system, search, found = searched(small("documented"))
    [both] = [one for one in found.violations if one.what == "single ownership"]

    story = story_of(system, search, both)

    assert story.violates == "single ownership"
    assert "two owners" in story.proof
    last = story.steps[-1].stands
    fetched = [one for stand in last.values() for one in stand.fetching]
    assert len(fetched) > len(set(fetched))


def test_no_shorter_way_leads_to_it() -> None:
    """One step less, and the search without reductions finds nothing."""
    _, search, found = searched(small("documented"), reduces=False, goes_on=False)
    length = len(search.path(found.violations[0].state))

    shorter = Search(
        ClusterSystem(small("documented"), Bounds(), folds=False), reduces=False, goes_on=True
    )
    shorter.run()

    firsts = [len(shorter.path(one.state)) for one in shorter.found.values()]
    assert min(firsts) == length


def test_the_floor_of_the_pages_leaves_orphans() -> None:
    """Three partitions for two members, rounded down: one is left to nobody."""
    _, _, found = searched(small("documented", partitions=3), begin="settled")

    assert "full cover" in violated(found)


def test_retries_that_run_out_leave_a_partition_to_nobody() -> None:
    _, _, found = searched(small("kafka_07"))

    assert violated(found) == ["full cover"]


def test_a_search_cut_short_knows_nothing_but_what_it_saw() -> None:
    search = Search(ClusterSystem(small(), Bounds({"crash": 1})), Limits(states=500))

    found = search.run()

    assert (found.is_complete, violated(found)) == (False, [])
    assert found.progress.depth > 0


def test_a_member_that_stops_and_starts_again_loses_its_place_only_by_a_fault() -> None:
    """Messages are read and committed, and no offset goes back."""
    _, _, found = searched(small(partitions=1), {"crash": 1}, messages=1)

    assert violated(found) == []
    assert found.is_complete
