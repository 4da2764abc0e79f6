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
  the parts within which each state can be reached from each, and there is a fair circle in a
  part unless somebody could always make a move in it and never does. Whoever is left out of a
  state's edges because the search has let another go first could make one all the same.

  Where a state is stuck, a circle is looked for that is reached from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from explore.circle import Circle, Hop, once_round
from explore.edges import Edges
from explore.expanding import Violation, laid_out
from explore.search import Search
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
    circle: Circle | None = None
    """How all may go on for ever without a good state: from where it is stuck, if it is."""
    is_known: bool = True
    """False where there was too much to look through for circles."""

    @property
    def nearest(self) -> int | None:
        """The nearest state from which no good one comes, or none has to; None for no such."""
        if self.stuck is None and self.circle is not None:
            return self.circle.way_in[0]
        return self.stuck


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
    return Liveness(stuck, False, _circle(search, edges, left, stuck))


def violation_of(live: Liveness | None) -> Violation | None:
    """What is violated where a good rest has to come, and does not; None for nothing known."""
    if live is None or live.nearest is None:
        return None
    return Violation(PROGRESS.name, live.nearest)


# --- circles ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """States within which each can be reached from each."""

    moves: Mapping[int, list[Hop]]
    """State -> the moves from there that lead to one of them; the nearest state first."""

    @property
    def states(self) -> list[int]:
        """They, the nearest first."""
        return list(self.moves)

    @property
    def movers(self) -> set[int]:
        """Who makes a move in it."""
        return {hop.actor for hops in self.moves.values() for hop in hops}


def _circle(search: Search, edges: Edges, left: Array, stuck: int | None) -> Circle | None:
    """The nearest fair circle among these states, from where it is stuck if it is."""
    between = edges.between(left)
    graph = nx.DiGraph()
    graph.add_edges_from(zip(between[0].tolist(), between[1].tolist(), strict=True))
    far = dict.fromkeys(graph, 0)
    if stuck is not None:
        graph.add_node(stuck)
        far = nx.single_source_shortest_path_length(graph, stuck)
        graph = graph.subgraph(far).copy()
    for part in _parts(edges, graph, between, far):
        waits = _waits(search, part)
        if all(waits[actor] for actor in waits.keys() - part.movers):
            first = part.states[0]
            way_in = [first] if stuck is None else nx.shortest_path(graph, stuck, first)
            return Circle(tuple(way_in), once_round(first, part.moves, waits))
    return None


def _parts(
    edges: Edges,
    graph: nx.DiGraph[int],
    between: tuple[Array, Array, Array],
    far: Mapping[int, int],
) -> Iterator[Part]:
    """The parts in which nobody who has edges is passed over, the nearest first."""
    found = nx.strongly_connected_components(graph)
    parts = sorted(sorted((far[state], state) for state in part) for part in found)
    part_of = np.full(1 + max(far, default=0), -1)
    for number, part in enumerate(parts):
        part_of[[state for _, state in part]] = number
    members = np.flatnonzero(part_of >= 0)
    sources, targets, actors = (one[np.isin(between[0], members)] for one in between)
    is_inner = part_of[sources] == part_of[targets]
    sources, targets, actors = sources[is_inner], targets[is_inner], actors[is_inner]
    moved = np.zeros(len(parts), np.uint64)
    np.bitwise_or.at(moved, part_of[sources], np.uint64(1) << actors)
    always = np.full(len(parts), ~np.uint64(0))
    np.bitwise_and.at(always, part_of[members], edges.movers(len(part_of))[members])
    for number in np.flatnonzero((moved != 0) & ((always & ~moved) == 0)).tolist():
        inside = part_of[sources] == number
        hops = zip(*(one[inside].tolist() for one in (sources, targets, actors)), strict=True)
        moves: dict[int, list[Hop]] = {state: [] for _, state in parts[number]}
        for source, target, actor in hops:
            moves[source].append(Hop(actor, target))
        yield Part(moves)


def _waits(search: Search, part: Part) -> dict[int, frozenset[int]]:
    """For each actor, the states of a part in which he has no move that has to come.

    The tables are asked, since edges are missing where the search has let another go first.
    """
    columns = np.array([search.state(number) for number in part.states], np.uint32).T
    states = np.array(part.states)
    waits = {}
    for actor, table in enumerate(search.tables):
        pairs = table.rows(columns[0], columns[1 + actor])
        source, moves = laid_out(table.count.values[pairs], table.first.values[pairs])
        has_one = source[table.kind.values[moves] == FREE]
        waits[actor] = frozenset(np.delete(states, has_one).tolist())
    return waits
