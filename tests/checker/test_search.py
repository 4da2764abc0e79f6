"""The search finds every state, once, and the nearest violation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.checker.two_phase_commit import TwoPhaseCommit
from watchkeeper.checker.search.search import Limits, Search, SearchOptions
from watchkeeper.checker.state_space.visited import Visited


@pytest.mark.parametrize(("managers", "states"), [(3, 288), (5, 8_832), (7, 296_448)])
def test_two_phase_commit_has_as_many_states_as_other_tools_count(
    managers: int, states: int
) -> None:
    searched = Search(TwoPhaseCommit(managers)).run()

    assert (searched.progress.states, searched.is_complete) == (states, True)


def test_a_search_that_gives_up_says_why_and_how_deep_it_was() -> None:
    searched = Search(TwoPhaseCommit(5), SearchOptions(Limits(states=1_000))).run()

    assert searched.stopped == "1,000 states were seen"
    assert not searched.is_complete
    assert 0 < searched.progress.depth < 17


@given(
    st.integers(1, 3).flatmap(
        lambda words: st.tuples(
            st.just(words),
            st.lists(st.lists(st.tuples(*[st.integers(0, 5)] * words), max_size=40), max_size=6),
        )
    )
)
def test_a_set_of_rows_is_a_set(given_: tuple[int, list[list[tuple[int, ...]]]]) -> None:
    """Against a dict: the same numbers, in the order in which rows come for the first time."""
    words, batches = given_
    visited, plain = Visited(words), dict[tuple[int, ...], int]()
    for batch in batches:
        rows = np.array(batch, np.uint64).reshape(len(batch), words)
        expected_new = []
        for at, row in enumerate(batch):
            if row not in plain:
                plain[row] = len(plain)
                expected_new.append(at)

        numbers, fresh = visited.insert(rows)

        assert numbers.tolist() == [plain[row] for row in batch]
        assert len(fresh) == len(expected_new)
    assert sorted(map(tuple, visited.rows.tolist())) == sorted(plain)


def test_a_set_of_rows_grows() -> None:
    visited = Visited(2)
    rows = np.random.default_rng(1).integers(0, 1 << 63, (100_000, 2)).astype(np.uint64)
    for begin in range(0, len(rows), 7_001):
        visited.insert(rows[begin : begin + 7_001])

    numbers, fresh = visited.insert(rows)

    assert (len(visited), len(fresh)) == (100_000, 0)
    assert numbers.tolist() == list(range(100_000))


class Judged(TwoPhaseCommit):
    """The same, of which something is claimed in whole states."""

    def __init__(self, managers: int, is_wrong: Callable[[tuple[int, ...]], bool]) -> None:
        super().__init__(managers)
        self.is_wrong = is_wrong
        self.seen: list[tuple[int, ...]] = []

    def state_violation(self, state: tuple[int, ...]) -> str:
        self.seen.append(state)
        return "two have moved" if self.is_wrong(state) else ""


def test_a_system_that_judges_whole_states_judges_each_of_them_once() -> None:
    system = Judged(3, lambda state: False)

    searched = Search(system).run()

    assert (len(system.seen), len(set(system.seen))) == (288, 288)
    assert searched.violations == []


def test_the_nearest_state_that_is_wrong_as_a_whole_is_found() -> None:
    first = TwoPhaseCommit(3).initial()

    def two_have_moved(state: tuple[int, ...]) -> bool:
        return (
            sum(before != after for before, after in zip(first[1:], state[1:], strict=True)) >= 2
        )

    system = Judged(3, two_have_moved)
    search = Search(system)
    searched = search.run()

    (violation,) = searched.violations
    assert violation.what == "two have moved"
    assert two_have_moved(search.state(violation.state)[:-1])
    assert len(search.path(violation.state)) == 3
