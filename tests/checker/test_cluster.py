"""Clusters are searched: what holds, what does not, and that nothing is passed over."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from bench.support.mutant_search import plan_of

from tests.support.checker.clusters import outcome_of, searched, small, violated
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.explanation import counterexample_of
from watchkeeper.checker.counterexample.path import path_to
from watchkeeper.checker.reduction.footprints import Footprints
from watchkeeper.checker.search import liveness
from watchkeeper.checker.search.search import Limits, Search, SearchOptions
from watchkeeper.model.mutants.catalogue import MUTANTS
from watchkeeper.model.plan.bounds import Bounds

FAULTS: list[dict[str, int]] = [
    {},
    {"crash": 1, "restart": 1},
    {"expire": 1},
    {"disconnect": 1},
    {"late_request": 1},
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
    assert found.terminal_states > 0
    assert liveness.judge(search).is_inevitable


PINNED = [
    ("hardened", {}, 991, 3),
    ("hardened", {"crash": 1}, 2_532, 6),
    ("documented", {}, 1_772, 3),
    ("kafka_07", {}, 1_358, 3),
]
"""Variant, faults, states, states at rest."""


@pytest.mark.parametrize(("variant", "faults", "states", "terminal_states"), PINNED)
def test_there_are_as_many_states_as_there_were(
    variant: str, faults: dict[str, int], states: int, terminal_states: int
) -> None:
    """A change here is a change of what the search means; it has to be explained."""
    _, _, found = searched(small(variant), faults)

    assert (found.progress.states, found.terminal_states) == (states, terminal_states)


# --- reductions ------------------------------------------------------------------------


def found_with_and_without_reductions(
    variant: str, layout: Any, faults: dict[str, int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What each of the two searches finds: violations, states at rest, and progress."""
    plan = small(variant, layout=layout, partitions=1)
    plain_system, plain, all_of_it = searched(plan, faults, reduces=False)
    system, search, found = searched(plan, faults)
    assert found.progress.states <= all_of_it.progress.states
    return outcome_of(system, search, found), outcome_of(plain_system, plain, all_of_it)


@pytest.mark.parametrize("faults", FAULTS[:6], ids=lambda faults: "-".join(faults) or "none")
@pytest.mark.parametrize(
    ("variant", "layout"),
    [VARIANTS[0], *(pytest.param(*row, marks=pytest.mark.slow) for row in VARIANTS[1:])],
)
def test_reductions_pass_over_nothing_that_matters(
    variant: str, layout: Any, faults: dict[str, int]
) -> None:
    """With and without them the same is violated, and the same states are at rest."""
    reduced, plain = found_with_and_without_reductions(variant, layout, faults)

    assert plain["complete"]
    assert reduced == plain


def test_a_circle_in_which_others_only_wait_for_the_search_is_none() -> None:
    """A search that lets one look first passes no member over: the others could go on as well."""
    mutant = MUTANTS["kafka-262-last-claim"]
    plan, bounds = plan_of(mutant, mutant.variant), mutant.configuration.bounds
    found = []
    for reduces in (True, False):
        search = Search(
            ClusterSystem(plan, bounds, folds=reduces),
            SearchOptions(finds_all=True, reduces=reduces),
        )
        search.run()
        found.append(liveness.judge(search))

    assert [item.lasso for item in found] == [None, None]
    assert not any(item.is_inevitable for item in found)


MUTANT_NAMES = ("adopts-by-name", "stale-memory", "clears-away", "lost-reply", "memory-lost")
"""Mistakes about registrations, claims and answers: what the reductions rely on."""


@pytest.mark.parametrize("mutant", MUTANT_NAMES)
def test_reductions_hide_nothing_of_a_mutant(mutant: str) -> None:
    """With and without them the same is violated, and the same states are at rest."""
    reduced, plain = found_with_and_without_reductions(mutant, "0.7", {"expire": 1})

    assert plain["complete"]
    assert reduced == plain


def test_a_search_that_meets_a_write_to_what_was_settled_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wrong regions do not go unnoticed: the states are those of no regions."""
    plan = small(partitions=1)
    monkeypatch.setattr(Footprints, "reads_from", lambda *_: 0)
    _, plain, without = searched(plan, {"crash": 1})
    monkeypatch.undo()
    monkeypatch.setattr(Footprints, "_of_registration", lambda *_: 0)

    _, search, found = searched(plan, {"crash": 1})

    assert plain.reduction.reads_first
    assert not search.reduction.reads_first
    assert (found.progress.states, found.terminal_states) == (
        without.progress.states,
        without.terminal_states,
    )


@pytest.mark.parametrize(
    ("reduction", "without_reduction"),
    [("is_about_to_learn_expiry", True), ("canonical", False)],
    ids=["private", "merged"],
)
def test_each_reduction_makes_fewer_states(
    reduction: str, without_reduction: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small(partitions=1)
    _, _, found = searched(plan, {"expire": 1})
    without = (lambda *_: False) if without_reduction else (lambda _, local: local)
    monkeypatch.setattr(f"watchkeeper.checker.cluster.cluster.{reduction}", without)

    _, _, more = searched(plan, {"expire": 1})

    assert more.terminal_states == found.terminal_states
    assert more.progress.states > found.progress.states


def test_a_way_to_a_violation_has_every_step_that_was_passed_over() -> None:
    """Each step of a counterexample begins where the last one ended."""
    system, search, found = searched(small("documented"))
    for violation in found.violations:
        way = path_to(system, search, violation)

        assert way[0].before == search.state(0)
        assert all(step.after == next_.before for step, next_ in itertools.pairwise(way))
        assert len(way) >= len(search.path(violation.state)) - 1


# --- what is violated, and its report -------------------------------------------------


def test_two_owners_are_reported_with_their_steps() -> None:
    """The pages to the letter release before they stop: two fetch one partition."""
    system, search, found = searched(small("documented"))
    [both] = [violation for violation in found.violations if violation.what == "single ownership"]

    counterexample = counterexample_of(system, search, both)

    assert counterexample.violates == "single ownership"
    assert "two owners" in counterexample.proof
    last = counterexample.steps[-1].snapshots
    fetched = [fetch for stand in last.values() for fetch in stand.fetching]
    assert len(fetched) > len(set(fetched))


def test_no_shorter_way_leads_to_it() -> None:
    """One step less, and the search without reductions finds nothing."""
    _, search, found = searched(small("documented"), reduces=False, finds_all=False)
    length = len(search.path(found.violations[0].state))

    shorter = Search(
        ClusterSystem(small("documented"), Bounds(), folds=False),
        SearchOptions(reduces=False, finds_all=True),
    )
    shorter.run()

    firsts = [len(shorter.path(violation.state)) for violation in shorter.found.values()]
    assert min(firsts) == length


def test_the_floor_of_the_pages_leaves_orphans() -> None:
    """Three partitions for two members, rounded down: one is left to no member."""
    _, _, found = searched(small("documented", partitions=3), begin="settled")

    assert "full cover" in violated(found)


def test_retries_that_run_out_leave_a_partition_to_no_member() -> None:
    _, _, found = searched(small("kafka_07"))

    assert violated(found) == ["full cover"]


def test_a_search_cut_short_knows_nothing_but_what_it_saw() -> None:
    search = Search(
        ClusterSystem(small(), Bounds({"crash": 1})), SearchOptions(Limits(states=500))
    )

    found = search.run()

    assert (found.is_complete, violated(found)) == (False, [])
    assert found.progress.depth > 0


def test_a_member_that_stops_and_starts_again_loses_its_place_only_by_a_fault() -> None:
    """Messages are read and committed, and no offset goes back."""
    _, _, found = searched(small(partitions=1), {"crash": 1}, messages=1)

    assert violated(found) == []
    assert found.is_complete
