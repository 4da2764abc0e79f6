"""A search on two cores is the search on one: the same states, by the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from threading import current_thread

import pytest
from bench.support.mutant_search import plan_of

from tests.support.checker.clusters import small
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.reduction.footprints import Footprints
from watchkeeper.checker.reduction.reduction import UnsoundReduction
from watchkeeper.checker.search import liveness
from watchkeeper.checker.search.search import Search, SearchOptions
from watchkeeper.checker.search.successors import Block, Expanded, Expander
from watchkeeper.checker.state_space.prefetch import AHEAD, prefetched
from watchkeeper.model.mutants.catalogue import MUTANTS
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.plan.plan import Plan


@pytest.fixture(autouse=True)
def blocks_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small search has many, some of which are expanded ahead."""
    monkeypatch.setattr("watchkeeper.checker.search.search.BLOCK", 50)


def search_of(plan: Plan, bounds: Bounds, jobs: int, *, finds_all: bool = True) -> Search:
    """A search that has ended."""
    search = Search(ClusterSystem(plan, bounds), SearchOptions(finds_all=finds_all, jobs=jobs))
    search.run()
    return search


def assert_alike(sequential: Search, parallel: Search) -> None:
    """The same in everything that is kept."""
    assert (sequential.visited.rows == parallel.visited.rows).all()
    assert (sequential.parents.values == parallel.parents.values).all()
    assert (sequential.good.values == parallel.good.values).all()
    assert sequential.found == parallel.found
    assert sequential.terminal_states == parallel.terminal_states
    assert sequential.progress.transitions == parallel.progress.transitions
    assert sequential.edges is not None
    assert parallel.edges is not None
    for mine, other in zip(sequential.edges.blocks, parallel.edges.blocks, strict=True):
        assert mine[:2] == other[:2]
        assert (mine.targets == other.targets).all()


@pytest.mark.parametrize("fault", ["crash", pytest.param("late_request", marks=pytest.mark.slow)])
def test_states_get_the_same_numbers(fault: str) -> None:
    """And what follows from them is the same."""
    plan = small(partitions=1)
    sequential, parallel = (search_of(plan, Bounds({fault: 1}), jobs) for jobs in (1, 2))

    assert_alike(sequential, parallel)
    assert len(sequential.visited) > 1_000
    assert liveness.judge(sequential) == liveness.judge(parallel)


@pytest.mark.parametrize("finds_all", [False, True])
def test_the_same_violation_is_found_first(finds_all: bool) -> None:
    """What was expanded ahead of it does not count."""
    mutant = MUTANTS["half-a-batch"]
    plan, bounds = plan_of(mutant, mutant.variant), mutant.configuration.bounds
    sequential, parallel = (search_of(plan, bounds, jobs, finds_all=finds_all) for jobs in (1, 2))

    assert sequential.found
    assert_alike(sequential, parallel)


def test_a_search_that_begins_again_does_so_on_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread finds wrong with the reduction comes to the search."""
    monkeypatch.setattr(Footprints, "reads_from", lambda *_: 0)
    plan = small(partitions=1)
    sequential, parallel = (search_of(plan, Bounds({"crash": 1}), jobs) for jobs in (1, 2))

    assert_alike(sequential, parallel)


def test_blocks_are_expanded_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two jobs, and never with one."""
    threads = set()
    expand = Expander.expand

    def noted(self: Expander, block: Block) -> Expanded:
        threads.add(current_thread().name)
        return expand(self, block)

    monkeypatch.setattr(Expander, "expand", noted)
    search_of(small(partitions=1), Bounds({"crash": 1}), 1)
    assert threads == {current_thread().name}
    search_of(small(partitions=1), Bounds({"crash": 1}), 2)
    assert len(threads) > 1


def test_work_is_done_in_order_and_not_far_ahead() -> None:
    """Of many pieces a few are under way, and an error comes in its turn."""
    begun = []

    def given() -> Iterator[int]:
        for number in range(20):
            begun.append(number)
            yield number

    def inverse(number: int) -> float:
        if number == 9:
            raise UnsoundReduction("nine")
        return -number

    made = prefetched(inverse, given(), 2)
    for number in range(9):
        assert next(made) == -number
        assert len(begun) <= number + AHEAD + 1
    with pytest.raises(UnsoundReduction):
        next(made)
