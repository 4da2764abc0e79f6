"""Whether a good state comes, once there are no more faults.

Theory of operation
  A state is *good* that is at rest with nothing wrong in it. Three things are asked along
  the moves that have to come:

    can      from every state a good one can be reached
    will     every way leads to a good one: whatever comes, it comes
    fair     what does not surely lead there goes round in a circle; a circle counts only
             if everybody who could go on all the time does go on in it

  `will` is found by going backwards from the good states, taking in a state when all of its
  moves lead to states that were taken in. What is left has a circle in it; it is cut into
  the parts within which each state can be reached from each, and a part is a fair circle
  unless somebody could always make a move in it and never does. Whoever is left out of a
  state's edges because the search has let another go first could make one all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from explore.edges import Edges
from explore.moves_table import MovesOf
from explore.search import Search, Violation, laid_out
from explore.system import FREE
from model.progress import PROGRESS

Array = NDArray[Any]
MOST_IN_A_CIRCLE = 500_000
"""States that are looked through for circles; beyond that nothing is said of them."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """What was found."""

    stuck: int | None
    """The nearest state from which no good one can be reached; None for no such state."""
    is_inevitable: bool
    """Whether every way leads to a good state."""
    circle: tuple[int, ...] = ()
    """States of a fair circle in which no good one is, if there is one."""
    is_known: bool = True
    """False where there was too much to look through for circles."""

    @property
    def nearest(self) -> int | None:
        """The nearest state from which no good one comes, or none has to; None for no such."""
        return self.stuck if self.stuck is not None else min(self.circle, default=None)


def judge(search: Search, good: Array | None = None) -> Liveness:
    """Look at the moves that have to come.

    `good` has a flag for each state; without it a state is good that is at rest with nothing
    wrong in it.
    """
    edges = search.edges
    assert edges is not None, "a search that is judged keeps its edges"
    good = search.good.values if good is None else good
    can = edges.reaching(good)
    stuck = int(np.argmin(can)) if not can.all() else None
    will = edges.leading_to(good)
    if will.all():
        return Liveness(None, True)
    left = np.flatnonzero(~will)
    if len(left) > MOST_IN_A_CIRCLE:
        return Liveness(stuck, False, is_known=False)
    return Liveness(stuck, False, _fair_circle(search, edges, left))


def violation_of(live: Liveness) -> Violation | None:
    """What is violated where a good rest has to come, and does not."""
    return None if live.nearest is None else Violation(PROGRESS.name, live.nearest)


def _fair_circle(search: Search, edges: Edges, left: Array) -> tuple[int, ...]:
    """A circle among these states in which everybody moves who always could."""
    sources, targets, actors = edges.between(left)
    graph = nx.DiGraph()
    graph.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))
    part_of = np.full(int(left[-1]) + 1, -1)
    parts = list(nx.strongly_connected_components(graph))
    for number, part in enumerate(parts):
        part_of[list(part)] = number
    is_inner = part_of[sources] == part_of[targets]
    inside = part_of[sources[is_inner]]
    moved = np.zeros(len(parts), np.uint64)
    np.bitwise_or.at(moved, inside, np.uint64(1) << actors[is_inner])
    always = np.full(len(parts), ~np.uint64(0))
    can = edges.movers(len(part_of))
    members = left[part_of[left] >= 0]
    np.bitwise_and.at(always, part_of[members], can[members])
    fair = (moved != 0) & ((always & ~moved) == 0)
    for number in sorted(np.flatnonzero(fair).tolist(), key=lambda number: min(parts[number])):
        part = tuple(sorted(parts[number]))
        if not _passed_over(search, part, int(moved[number])):
            return part
    return ()


def _passed_over(search: Search, part: tuple[int, ...], moved: int) -> list[int]:
    """Those who could make a move in every state of a part, and none of whom leads on in it."""
    columns = np.array([search.state(number) for number in part], np.uint32).T
    return [
        actor
        for actor, table in enumerate(search.tables)
        if not moved >> actor & 1 and _can_move(table, columns[0], columns[1 + actor]).all()
    ]


def _can_move(table: MovesOf, shared: Array, local: Array) -> Array:
    """For each pair, whether an actor has a move there that has to come."""
    pairs = table.rows(shared, local)
    source, moves = laid_out(table.count.values[pairs], table.first.values[pairs])
    is_free = table.kind.values[moves] == FREE
    can: Array = np.bincount(source[is_free], minlength=len(pairs)) > 0
    return can
