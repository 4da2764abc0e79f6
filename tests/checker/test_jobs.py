"""A search on two cores is the search on one: the same states, by the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from threading import current_thread

import pytest

from explore import liveness
from explore.ahead import AHEAD, done
from explore.alone import NotSettled
from explore.cluster import ClusterSystem
from explore.expanding import Block, Expanded, Expander
from explore.regions import Regions
from explore.search import Limits, Search
from model.bounds import Bounds
from model.plan import Plan
from model.zoo import PLANTS
from tests.exploring import small
from watchkeeper.zoo import plan_of


@pytest.fixture(autouse=True)
def blocks_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small search has many, some of which are expanded ahead."""
    monkeypatch.setattr("explore.search.BLOCK", 50)


def search_of(plan: Plan, bounds: Bounds, jobs: int, *, goes_on: bool = True) -> Search:
    """A search that has ended."""
    search = Search(ClusterSystem(plan, bounds), Limits(seconds=120), goes_on=goes_on, jobs=jobs)
    search.run()
    return search


def assert_alike(one: Search, two: Search) -> None:
    """The same in everything that is kept."""
    assert (one.visited.rows == two.visited.rows).all()
    assert (one.parents.values == two.parents.values).all()
    assert (one.good.values == two.good.values).all()
    assert one.found == two.found
    assert one.rests == two.rests
    assert one.progress.transitions == two.progress.transitions
    assert one.edges is not None
    assert two.edges is not None
    for mine, other in zip(one.edges.blocks, two.edges.blocks, strict=True):
        assert mine[:2] == other[:2]
        assert (mine.targets == other.targets).all()


@pytest.mark.parametrize("fault", ["crash", "ghost"])
def test_states_get_the_same_numbers(fault: str) -> None:
    """And what follows from them is the same."""
    one, two = (search_of(small(), Bounds({fault: 1}), jobs) for jobs in (1, 2))

    assert_alike(one, two)
    assert len(one.visited) > 1_000
    assert liveness.judge(one) == liveness.judge(two)


@pytest.mark.parametrize("goes_on", [False, True])
def test_the_same_violation_is_found_first(goes_on: bool) -> None:
    """What was expanded ahead of it does not count."""
    plant = PLANTS["half-a-batch"]
    plan, bounds = plan_of(plant, plant.variant), plant.configuration.bounds
    one, two = (search_of(plan, bounds, jobs, goes_on=goes_on) for jobs in (1, 2))

    assert one.found
    assert_alike(one, two)


def test_a_search_that_begins_again_does_so_on_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread finds wrong with the reduction comes to the search."""
    monkeypatch.setattr(Regions, "looked_at", lambda *_: 0)
    plan = small(partitions=1)
    one, two = (search_of(plan, Bounds({"crash": 1}), jobs) for jobs in (1, 2))

    assert_alike(one, two)


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
            raise NotSettled("nine")
        return -number

    made = done(inverse, given(), 2)
    for number in range(9):
        assert next(made) == -number
        assert len(begun) <= number + AHEAD + 1
    with pytest.raises(NotSettled):
        next(made)
