"""The explorer: it leads to the states of the search, and to no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.checker.clusters import small
from watchkeeper.check.browse import Browser
from watchkeeper.check.check import explore_scenario
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.path import Taken, successors
from watchkeeper.checker.counterexample.replay_steps import NoSuchStep
from watchkeeper.checker.explorer.explorer import Explorer, NoSuchChoice
from watchkeeper.checker.search.search import Search, SearchOptions
from watchkeeper.model.counterexample.browsed_state import NOT_HELD, PathInGraph, StateGraph
from watchkeeper.model.counterexample.counterexample import ScheduledStep
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.scenarios import from_text

JOIN = Bounds({"join": 1}, begin="settled")
MOST = 2_000
SCENARIO = """\
name: small
about: a consumer joins another one
variant: documented
clusters: {main: {brokers: 1, layout: "0.7", topics: {clicks: {partitions: 1}}}}
groups: {billing: {consumers: 2, streams: {clicks: 1}}}
timeline: []
bounds: {join: 1, begin: settled}
"""


def graph_of(variant: str, bounds: Bounds) -> StateGraph:
    """All states of a small system."""
    graph = Explorer(ClusterSystem(small(variant, partitions=1), bounds)).graph(MOST)
    assert graph is not None
    return graph


def whole_states(graph: StateGraph) -> set[str]:
    """Each state without the numbers of those that it leads to, as a text."""
    found = set()
    for state in graph:
        choices = tuple(replace(choice, leads_to=NOT_HELD) for choice in state.choices)
        found.add(repr(replace(state, choices=choices)))
    return found


def violated_in(graph: StateGraph) -> set[str]:
    """What some state or some step violates."""
    found = {name for state in graph for name in state.violates}
    return found | {
        name for state in graph for choice in state.choices for name in choice.violates
    }


@pytest.mark.parametrize("variant", ["documented", "kafka_07", "hardened"])
@pytest.mark.parametrize("bounds", [JOIN, Bounds({"crash": 1}, begin="settled")])
def test_it_has_the_states_and_the_violations_of_the_search(variant: str, bounds: Bounds) -> None:
    """A search without reductions says the same."""
    system = ClusterSystem(small(variant, partitions=1), bounds)
    options = SearchOptions(finds_all=True, reduces=False)
    searched = Search(system, options).run()
    graph = graph_of(variant, bounds)
    assert len(graph) == searched.progress.states
    assert sum(map(len, (state.choices for state in graph))) >= searched.progress.transitions
    assert sum(state.is_at_rest for state in graph) == searched.terminal_states
    assert violated_in(graph) >= {violation.what for violation in searched.violations}
    if not searched.violations:
        assert violated_in(graph) == set()


def test_a_step_leads_to_the_state_it_names() -> None:
    """The place that is reached by choices is the state of the graph."""
    explorer = Explorer(ClusterSystem(small("documented", partitions=1), JOIN))
    graph = explorer.graph(MOST)
    assert graph is not None
    at, way = 0, list[int]()
    while graph[at].choices:
        way.append(len(graph[at].choices) - 1)
        at = graph[at].choices[-1].leads_to
        here = explorer.state(explorer.way(way)[-1].after)
        assert (here.snapshots, here.znodes) == (graph[at].snapshots, graph[at].znodes)
    assert graph[at].is_at_rest
    assert len(way) > 10


def test_a_graph_that_is_too_large_is_none() -> None:
    """No part of it is shown as the whole."""
    explorer = Explorer(ClusterSystem(small("documented", partitions=1), JOIN))
    size = len(graph_of("documented", JOIN))
    assert explorer.graph(size - 1) is None
    assert explorer.graph(size) is not None


def path_around(most: int) -> tuple[ClusterSystem, list[Taken], PathInGraph]:
    """A path of the first step of each state, and a graph of at most so many states."""
    system = ClusterSystem(small("documented", partitions=1), JOIN)
    explorer = Explorer(system)
    path = explorer.way([0] * 12)
    return system, path, explorer.around(path, most)


def test_the_states_around_a_path_have_all_their_steps() -> None:
    """Those of the path, and those one step away, even where the rest is left out."""
    whole = graph_of("documented", JOIN)
    system, path, around = path_around(20)
    graph, at = around.graph, 0
    for taken, choice in zip(path, around.choices, strict=True):
        assert len(graph[at].choices) == len(successors(system, taken.before))
        at = graph[at].choices[choice].leads_to
        assert at != NOT_HELD
    assert len(graph) == 20 < len(whole)
    left_out = [one for state in graph for one in state.choices if one.leads_to == NOT_HELD]
    assert left_out
    assert whole_states(graph) < whole_states(whole)


def test_a_path_is_held_whatever_the_budget() -> None:
    """A graph of fewer states than the path has those of the path."""
    _, path, around = path_around(1)
    assert len(around.graph) == len(path) + 1
    held = [one.leads_to for state in around.graph for one in state.choices]
    assert sum(number != NOT_HELD for number in held) == len(path)


def test_a_large_budget_holds_every_state() -> None:
    """Then no step leads out of the graph."""
    whole = graph_of("documented", JOIN)
    _, _, around = path_around(MOST)
    assert len(around.graph) == len(whole)
    assert all(one.leads_to != NOT_HELD for state in around.graph for one in state.choices)
    assert whole_states(around.graph) == whole_states(whole)


def test_claims_tell_whose_session_they_are_of() -> None:
    """They are those of the znodes."""
    graph = graph_of("kafka_07", Bounds({"crash": 1}, begin="settled"))
    for state in graph:
        znodes = {one.path.rpartition("/")[2]: one for one in state.znodes if one.owner}
        for what, claim in state.claims.items():
            znode = znodes[what.rpartition("/")[2]]
            assert (claim.owner, claim.is_of_earlier_session) == (
                znode.owner,
                znode.is_of_earlier_session,
            )
    kinds = {one.is_of_earlier_session for state in graph for one in state.claims.values()}
    assert kinds == {False, True}


def test_the_way_to_each_violation() -> None:
    """Its last step violates the property, or leads to a state that does."""
    explored = explore_scenario(
        from_text("small.yaml", SCENARIO), options=SearchOptions(finds_all=True)
    )
    browser = Browser(explored)
    assert set(browser.browsed.paths) == set(explored.violated)
    for name, path in browser.browsed.paths.items():
        [before] = browser.states(list(path.choices[:-1]), len(path.choices) - 1)
        if name != "progress":
            assert name in before["choices"][path.choices[-1]]["violates"]
    lengths = {found.violates: len(found.all_steps) for found in explored.counterexamples}
    paths = browser.browsed.paths
    assert {name: len(path.choices) for name, path in paths.items()} == lengths


def test_znodes_tell_whose_session_they_end_with() -> None:
    """Also that of an earlier life, which its owner does not use any more."""
    graph = graph_of("kafka_07", Bounds({"crash": 1}, begin="settled"))
    owners = {
        (znode.owner, znode.is_of_earlier_session) for state in graph for znode in state.znodes
    }
    assert {("", False), ("broker/0", False), ("billing/0", False), ("billing/0", True)} <= owners


@pytest.mark.parametrize("way", [[7], [0, -1]])
def test_a_place_that_there_is_not(way: list[int]) -> None:
    """The text says which choice is wrong."""
    explorer = Explorer(ClusterSystem(small("documented", partitions=1), JOIN))
    with pytest.raises(
        NoSuchChoice, match=f"choice {len(way)} is {way[-1]}, and .* are enabled there"
    ):
        explorer.way(way)


def test_a_schedule_that_cannot_be_followed() -> None:
    """It is of another system."""
    explorer = Explorer(ClusterSystem(small("documented", partitions=1), JOIN))
    with pytest.raises(NoSuchStep):
        explorer.choices_of([ScheduledStep("billing/0", StepKind.CRASH)])
