"""The moves of a pair are computed as far as a state needs them, and that changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.checker.clusters import controlled, small
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.search.search import Limits, Search, SearchOptions
from watchkeeper.checker.state_space.system import IDLE, Move
from watchkeeper.checker.state_space.transition_table import Extent, TransitionTable
from watchkeeper.model.plan.bounds import Bounds

BOUNDS = {
    "crash and restart": Bounds({"crash": 1, "restart": 1}, 2),
    "late request and lost reply": Bounds({"late_request": 1, "lost_reply": 1}, 2),
    "leave and join": Bounds({"leave": 1, "join": 1}, 2),
    "expiry and broker": Bounds({"expire": 1, "broker_crash": 1, "broker_restart": 1}, 1),
}


@pytest.fixture(autouse=True)
def blocks_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a search ends close to the limit."""
    monkeypatch.setattr("watchkeeper.checker.search.search.BLOCK", 500)


def searched(bounds: Bounds, states: int, *, elects: bool = False) -> Search:
    """A search of so many states that looks for everything."""
    plan = controlled("hardened", brokers=2, consumers=1) if elects else small(partitions=1)
    options = SearchOptions(Limits(states=states), finds_all=True, keeps_all=0)
    search = Search(ClusterSystem(plan, bounds), options)
    search.run()
    return search


def every_move(search: Search, *, with_faults: bool) -> list[list[Move]]:
    """The moves of each pair that the search met."""
    return [
        list(
            search.system.moves(
                table.actor, int(key) >> 32, int(key) & 0xFFFFFFFF, with_faults=with_faults
            )
        )
        for table in search.tables
        for key in table.pairs.rows[:, 0]
    ]


@pytest.mark.parametrize("name", BOUNDS)
def test_a_search_that_computes_every_move_of_every_pair_is_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same states by the same numbers, the same edges and verdicts."""
    lazy = searched(BOUNDS[name], states=3_000)
    rows = TransitionTable.rows
    monkeypatch.setattr(
        TransitionTable, "rows", lambda self, *pair: rows(self, *pair[:2], Extent.ALL)
    )
    eager = searched(BOUNDS[name], states=3_000)

    assert (lazy.parents.values == eager.parents.values).all()
    assert (lazy.good.values == eager.good.values).all()
    assert (lazy.found, lazy.progress.transitions, lazy.exercised, lazy.terminal_states) == (
        eager.found,
        eager.progress.transitions,
        eager.exercised,
        eager.terminal_states,
    )
    assert lazy.edges is not None
    assert eager.edges is not None
    for mine, other in zip(lazy.edges.blocks, eager.edges.blocks, strict=True):
        assert mine[:2] == other[:2]
        assert (mine.states == other.states).all()
        assert (mine.targets == other.targets).all()
    moves = sum(len(table.kind.values) for table in lazy.tables)
    assert moves < sum(len(table.kind.values) for table in eager.tables)


@pytest.mark.parametrize("elects", [False, True])
@pytest.mark.parametrize("name", ["late request and lost reply", "expiry and broker"])
def test_without_faults_the_other_moves_come_in_the_same_order(name: str, elects: bool) -> None:
    search = searched(BOUNDS[name], 1_000, elects=elects)

    everything = every_move(search, with_faults=True)
    without = every_move(search, with_faults=False)

    assert without == [[move for move in moves if move.kind <= IDLE] for moves in everything]
    assert sum(map(len, without)) < sum(map(len, everything))


def test_leftovers_come_first_whatever_follows_them() -> None:
    """An offset skips them; a late request may be followed by a read that a fault cuts short."""
    search = searched(BOUNDS["late request and lost reply"], states=3_000)
    rows = every_move(search, with_faults=True)

    flags = [[move.is_leftover for move in moves] for moves in rows]

    assert flags == [sorted(row, reverse=True) for row in flags]
    assert any(move.is_leftover and move.kind > IDLE for moves in rows for move in moves), (
        "no late request here is followed by a read"
    )


def test_a_row_grows_to_the_largest_extent_that_is_wanted() -> None:
    """In one call, a pair may be wanted to several extents."""
    system = ClusterSystem(small(partitions=1), BOUNDS["crash and restart"])
    first = system.initial()
    table = TransitionTable(system, 0)
    pairs = np.array([first[:2]] * 3, np.uint32).T

    rows = table.rows(*pairs, np.array([Extent.NOTHING] * 3))
    assert table.count.values[rows].tolist() == [0, 0, 0]
    extents = np.array([Extent.WITHOUT_FAULTS, Extent.ALL, Extent.NOTHING])
    rows = table.rows(*pairs, extents)

    expected = [move.kind for move in system.moves(0, *first[:2])]
    begin, count = table.first.values[rows[0]], table.count.values[rows[0]]
    assert set(rows.tolist()) == {0}
    assert table.kind.values[begin : begin + count].tolist() == expected
    assert max(expected) > IDLE
