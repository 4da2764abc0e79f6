"""The page of an explorer, in a browser, and the picture of a graph of states."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.browser import needs_browser, rendered
from tests.support.checker.clusters import small
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.explorer.explorer import Explorer
from watchkeeper.model.counterexample.browsed_state import StateGraph
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.reports.explorer import png
from watchkeeper.reports.explorer.html import (
    Browsed,
    explorer_page,
    graph_data,
    state_data,
    write_explorer_html,
)

BROWSED = Browsed(
    "<small>", "documented", "1 join", "violated: full cover", ("billing/0", "broker/0")
)


@pytest.fixture(scope="module")
def graph() -> StateGraph:
    """All states of two consumers, of which one joins."""
    bounds = Bounds({"join": 1}, begin="settled")
    system = ClusterSystem(small("documented", partitions=1), bounds)
    found = Explorer(system).graph(500)
    assert found is not None
    return found


def test_the_parts_make_up_the_states(graph: StateGraph) -> None:
    """Each part stands once, and each state is put together again."""
    held = msgspec.json.decode(msgspec.json.encode(graph_data(graph)))
    parts, states = held["parts"], held["states"]
    assert len({json.dumps(part) for part in parts}) == len(parts)

    def whole(state: dict[str, Any]) -> dict[str, Any]:
        return {
            "processes": {name: parts[at] for name, at in state["processes"].items()},
            "znodes": [parts[at] for at in state["znodes"]],
            "choices": [
                {"step": parts[step], "violates": parts[violates], "idle": idle}
                for step, violates, idle, _ in state["choices"]
            ],
            "disabled": [parts[at] for at in state["disabled"]],
            "violates": state["violates"],
            "rest": state["rest"],
        }

    assert [whole(state) for state in states] == [state_data(state) for state in graph]


def test_what_a_page_may_load(graph: StateGraph) -> None:
    """One with all states loads nothing; one without gets them from where it comes from."""
    assert "connect-src" not in explorer_page(BROWSED, graph).decode()
    assert "connect-src 'self'" in explorer_page(BROWSED).decode()
    assert "&lt;small&gt;" in explorer_page(BROWSED).decode()


@needs_browser
def test_the_beginning_in_a_browser(graph: StateGraph, tmp_path: Path) -> None:
    """The steps that are enabled, and why processes cannot move."""
    page = tmp_path / write_explorer_html(BROWSED, graph, tmp_path)
    text = words(rendered(page))
    assert f"All {len(graph)} states are in this page" in text
    assert f"{len(graph[0].choices)} step may come next" in text
    assert all(sentence in text for sentence in graph[0].disabled)


@needs_browser
def test_a_way_to_a_violation_in_a_browser(graph: StateGraph, tmp_path: Path) -> None:
    """The nearest one from the beginning; the state there is the one of the graph."""
    page = tmp_path / write_explorer_html(BROWSED, graph, tmp_path)
    text = words(rendered(page, then=CHOOSES_PROPERTY))
    assert "✗ truthful registry is violated" in text
    assert f"{nearest(graph, 'truthful registry')} steps from the beginning" in text


@needs_browser
def test_an_address_that_leads_nowhere(graph: StateGraph, tmp_path: Path) -> None:
    """The page says so."""
    page = tmp_path / write_explorer_html(BROWSED, graph, tmp_path)
    assert "the address names a step that is not enabled there" in words(rendered(page, "#99"))


CHOOSES_PROPERTY = """
choice.value = "truthful registry";
choice.dispatchEvent(new Event("change"));
show([]).then(() => seek());
"""


def words(text: str) -> str:
    """The text of a page, without its scripts."""
    body = re.sub(r"(?s)<(script|style).*?</\\1>", "", text)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", body))


def nearest(graph: StateGraph, name: str) -> int:
    """How many steps the nearest violation of a property takes."""
    reached, steps = {0}, 0
    while True:
        steps += 1
        choices = [choice for at in reached for choice in graph[at].choices]
        if any(name in choice.violates for choice in choices):
            return steps
        reached = {choice.leads_to for choice in choices}


# --- the picture -----------------------------------------------------------------------


def test_columns_are_distances(graph: StateGraph) -> None:
    """Each state stands once, a column to the right of the nearest one that leads to it."""
    steps = png.steps_of(graph)
    columns = png.columns_of(steps)
    assert sorted(state for column in columns for state in column) == list(range(len(graph)))
    column_of = {state: at for at, column in enumerate(columns) for state in column}
    for state in range(1, len(graph)):
        assert column_of[state] == 1 + min(
            column_of[before] for before in steps.predecessors(state)
        )


def test_states_on_a_circle(graph: StateGraph) -> None:
    """None here; with a step back from the second state both are."""
    assert png.in_circles(png.steps_of(graph)) == set()
    back = replace(graph[1].choices[0], leads_to=0)
    turned = (graph[0], replace(graph[1], choices=(*graph[1].choices, back)), *graph[2:])
    assert png.in_circles(png.steps_of(turned)) == {0, 1}


def test_the_picture(graph: StateGraph, tmp_path: Path) -> None:
    """The same bytes each time; a graph of many states gets none."""
    assert png.write_states_png(BROWSED, graph, tmp_path) == "states.png"
    first = (tmp_path / "states.png").read_bytes()
    png.write_states_png(BROWSED, graph, tmp_path)
    assert (tmp_path / "states.png").read_bytes() == first
    assert png.write_states_png(BROWSED, graph * 10, tmp_path) == ""
