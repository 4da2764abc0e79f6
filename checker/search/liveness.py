"""Liveness: whether a good state comes, once there are no more faults.

Theory of operation
  A state is *good* if it is terminal and violates nothing. Three questions are about
  the graph of free moves, those that have to come:

    can      a path leads from every state to a good one
    will     every path leads to a good one
    fair     a path that never does ends in a cycle, and the cycle counts only if it is weakly
             fair: every actor that could move all along it does move in it

  `can` and `will` are backward fixed points from the good states. `will` adds a state once
  all its moves lead to states that were added. Every state that is left lies on a path into
  a cycle of such states. They are cut into strongly connected components; a component has a
  fair cycle unless an actor has a move in each of its states and none of them stays inside.

  The reduction leaves moves of other actors out of the edges of a state. A move left out is
  still enabled, so fairness is judged by the tables of moves and not by the edges.

  If some state cannot reach a good one (it is stuck), the lasso starts from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from watchkeeper.checker.search.lasso import Lasso, LassoStep, fair_cycle
from watchkeeper.checker.search.search import Search
from watchkeeper.checker.search.successors import Violation, laid_out
from watchkeeper.checker.state_space.edges import Edges
from watchkeeper.checker.state_space.system import FREE
from watchkeeper.checker.state_space.transition_table import Extent
from watchkeeper.model.properties.progress import PROGRESS

Array = NDArray[Any]
MOST_CYCLE_STATES = 500_000
"""The most states that are searched for cycles; with more, `will` remains unknown."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """The verdict on liveness."""

    stuck: int | None
    """The nearest state from which no good one can be reached; None for no such state."""
    is_inevitable: bool
    """Whether every path leads to a good state."""
    lasso: Lasso | None = None
    """A fair run without a good state; it starts at the stuck state, if there is one."""
    is_known: bool = True
    """False where there were too many states to search for cycles."""

    @property
    def nearest(self) -> int | None:
        """The nearest state from which no good state can come, or none has to; None for none."""
        if self.stuck is None and self.lasso is not None:
            return self.lasso.stem[0]
        return self.stuck


def judge(search: Search, good: Array | None = None) -> Liveness:
    """Judge the finished graph of a search that has kept its edges.

    `good` has a flag for each state; without it, the terminal states without a violation
    are good.
    """
    edges = search.edges
    assert edges is not None, "liveness needs the edges of the search"
    good = search.good.values if good is None else good
    can = edges.reaching(good)
    stuck = int(np.argmin(can)) if not can.all() else None
    will = edges.leading_to(good)
    if will.all():
        return Liveness(None, True)
    left = np.flatnonzero(~will)
    if len(left) > MOST_CYCLE_STATES:
        return Liveness(stuck, False, is_known=False)
    return Liveness(stuck, False, _nearest_lasso(search, edges, left, stuck))


def violation_of(live: Liveness | None) -> Violation | None:
    """Return the violation of progress; None where there is none, or none is known."""
    if live is None or live.nearest is None:
        return None
    return Violation(PROGRESS.name, live.nearest)


# --- cycles ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Component:
    """A strongly connected component: states that can all reach each other."""

    moves: Mapping[int, list[LassoStep]]
    """State -> its moves that stay in the component; the states nearest first."""

    @property
    def states(self) -> list[int]:
        """The states, nearest first."""
        return list(self.moves)

    @property
    def movers(self) -> set[int]:
        """The actors that move in it."""
        return {hop.actor for steps in self.moves.values() for hop in steps}


def _nearest_lasso(search: Search, edges: Edges, left: Array, stuck: int | None) -> Lasso | None:
    """Return the nearest fair lasso among these states; None where every cycle is unfair."""
    between = edges.between(left)
    graph = nx.DiGraph()
    graph.add_edges_from(zip(between[0].tolist(), between[1].tolist(), strict=True))
    distances = dict.fromkeys(graph, 0)
    if stuck is not None:
        graph.add_node(stuck)
        distances = nx.single_source_shortest_path_length(graph, stuck)
        graph = graph.subgraph(distances).copy()
    for component in _components(edges, graph, between, distances):
        disabled = _disabled(search, component)
        if all(disabled[actor] for actor in disabled.keys() - component.movers):
            first = component.states[0]
            stem = [first] if stuck is None else nx.shortest_path(graph, stuck, first)
            return Lasso(tuple(stem), fair_cycle(first, component.moves, disabled))
    return None


def _components(
    edges: Edges,
    graph: nx.DiGraph[int],
    between: tuple[Array, Array, Array],
    distances: Mapping[int, int],
) -> Iterator[Component]:
    """Yield the components that may hold a fair cycle, nearest first.

    This is a filter: an actor with an edge from each state and none inside is starved. Only
    what passes is checked against the tables of moves, which takes a lookup per state.
    """
    found = nx.strongly_connected_components(graph)
    components = sorted(
        sorted((distances[state], state) for state in component) for component in found
    )
    component_of = np.full(1 + max(distances, default=0), -1)
    for number, component in enumerate(components):
        component_of[[state for _, state in component]] = number
    members = np.flatnonzero(component_of >= 0)
    sources, targets, actors = (column[np.isin(between[0], members)] for column in between)
    is_inner = component_of[sources] == component_of[targets]
    sources, targets, actors = sources[is_inner], targets[is_inner], actors[is_inner]
    moved = np.zeros(len(components), np.uint64)
    np.bitwise_or.at(moved, component_of[sources], np.uint64(1) << actors)
    always = np.full(len(components), ~np.uint64(0))
    np.bitwise_and.at(always, component_of[members], edges.movers(len(component_of))[members])
    for number in np.flatnonzero((moved != 0) & ((always & ~moved) == 0)).tolist():
        inside = component_of[sources] == number
        steps = zip(
            *(column[inside].tolist() for column in (sources, targets, actors)), strict=True
        )
        moves: dict[int, list[LassoStep]] = {state: [] for _, state in components[number]}
        for source, target, actor in steps:
            moves[source].append(LassoStep(actor, target))
        yield Component(moves)


def _disabled(search: Search, component: Component) -> dict[int, frozenset[int]]:
    """Return for each actor the states of a component in which it has no free move.

    Edges would not do: the reduction has left out some of the moves that are enabled.
    """
    columns = np.array([search.state(number) for number in component.states], np.uint32).T
    states = np.array(component.states)
    disabled = {}
    for actor, table in enumerate(search.tables):
        pairs = table.rows(columns[0], columns[1 + actor], Extent.WITHOUT_FAULTS)
        source, moves = laid_out(table.count.values[pairs], table.first.values[pairs])
        has_one = source[table.kind.values[moves] == FREE]
        disabled[actor] = frozenset(np.delete(states, has_one).tolist())
    return disabled
