"""The page of an explorer, in a browser, and the picture of a graph of states."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bench.support.devtools import Tab, address_of, browser

from tests.support.accessibility import complaints
from tests.support.browser import needs_browser, rendered
from tests.support.checker.clusters import searched, small
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.explanation import counterexample_of
from watchkeeper.checker.counterexample.path import Taken, path_to
from watchkeeper.checker.explorer.explorer import Explorer
from watchkeeper.model.counterexample.browsed_state import BrowsedState, PathInGraph, StateGraph
from watchkeeper.model.counterexample.counterexample import Counterexample
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.reports.explorer import png
from watchkeeper.reports.explorer.html import (
    Around,
    Browsed,
    explorer_page,
    graph_data,
    state_data,
    write_counterexample_html,
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
            "claims": parts[state["claims"]],
            "registry": parts[state["registry"]],
            "znodes": [parts[at] for at in state["znodes"]],
            "choices": [
                {"step": parts[step], "violates": parts[violates], "idle": idle}
                for step, violates, idle, _ in state["choices"]
            ],
            "disabled": [parts[at] for at in state["disabled"]],
            "violates": state["violates"],
            "rest": state["rest"],
            "complete": state["complete"],
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
    assert "1 step may come next" in text
    assert len(graph[0].choices) == 1
    assert all(sentence in text for sentence in graph[0].disabled)


@needs_browser
def test_a_way_to_a_violation_in_a_browser(graph: StateGraph, tmp_path: Path) -> None:
    """The nearest one from the beginning; the state there is the one of the graph."""
    page = tmp_path / write_explorer_html(BROWSED, graph, tmp_path)
    text = words(rendered(page, then=CHOOSES_PROPERTY))
    assert "✗ truthful registry is violated" in text
    steps = nearest(graph, "truthful registry")
    assert f"step {steps} of {steps}" in text


@needs_browser
def test_an_address_that_leads_nowhere(graph: StateGraph, tmp_path: Path) -> None:
    """The page says so."""
    page = tmp_path / write_explorer_html(BROWSED, graph, tmp_path)
    assert "the address names a step that is not enabled there" in words(rendered(page, "#99"))


# --- a counterexample among the states near it -----------------------------------------

COMMAND = "watchkeeper explore small --serve"


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    """A page in a browser."""
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def zombie() -> tuple[Counterexample, Explorer, list[Taken]]:
    """A consumer crashes and starts again, and trusts the claim of its earlier session."""
    faults = {"crash": 1, "restart": 1}
    system, search, found = searched(small("kafka_07", partitions=1), faults, begin="settled")
    [one] = [one for one in found.violations if one.what == "truthful registry"]
    counterexample = counterexample_of(system, search, one)
    return counterexample, Explorer(system), path_to(system, search, one)


def page_of(
    zombie: tuple[Counterexample, Explorer, list[Taken]], folder: Path, most: int
) -> tuple[str, PathInGraph]:
    """The address of its page with so many states, and what the page holds."""
    counterexample, explorer, path = zombie
    near = explorer.around(path, most)
    around = Around(near, COMMAND)
    return address_of(
        folder / write_counterexample_html(counterexample, folder, around=around)
    ), near


@needs_browser
def test_what_else_could_have_come(
    zombie: tuple[Counterexample, Explorer, list[Taken]], tab: Tab, tmp_path: Path
) -> None:
    """Another step leads off the path; its address leads there again, and back is a key away."""
    address, near = page_of(zombie, tmp_path, 200)
    steps = len(near.choices)
    tab.open(address)
    assert tab.run("[chosen, steps.length, breaksAt(chosen)]") == [steps, steps, True]

    at = next(number for number in range(steps) if len(states_on(near)[number].choices) > 1)
    other = next(one for one in (0, 1) if one != near.choices[at])
    tab.run(f"choose({at})")
    shown = tab.run("statePane.querySelectorAll('.choices button').length")
    beside = len(states_on(near)[at].choices) + (
        len(states_on(near)[at - 1].choices) - 1 if at else 0
    )
    assert shown == beside
    tab.run(f"takeAt({at}, {other})")
    assert tab.run("location.hash") == f"#step-{at}.{other}"
    assert tab.run("[chosen, steps.length, isOffGiven(chosen)]") == [at + 1, at + 1, True]
    assert "off the counterexample" in tab.run("statusText.textContent")
    tab.open(f"{address}#step-{at}.{other}")
    assert tab.run("way") == [*near.choices[:at], other]
    tab.run("dispatchEvent(new KeyboardEvent('keydown', {key: 'v'}))")
    assert tab.run("show(fromAddress()).then(() => [way, chosen])") == [list(near.choices), steps]


@needs_browser
def test_a_step_that_leads_out_of_the_page(
    zombie: tuple[Counterexample, Explorer, list[Taken]], tab: Tab, tmp_path: Path
) -> None:
    """It says which command shows the state; nothing else changes."""
    address, near = page_of(zombie, tmp_path, 1)
    states = states_on(near)
    at = next(number for number in range(len(states)) if len(states[number].choices) > 1)
    other = next(one for one in (0, 1) if one != near.choices[at])
    tab.open(address)
    tab.run(f"choose({at})")

    tab.run(f"take({other})")

    assert tab.run("location.hash") == f"#step-{at}"
    assert tab.run("statePane.querySelector('.refusal').textContent").endswith(COMMAND)
    tab.open(f"{address}#step-{at}.{other}")
    assert COMMAND in tab.run("statePane.textContent")


@needs_browser
def test_it_shows_whose_session_a_claim_is_of(
    zombie: tuple[Counterexample, Explorer, list[Taken]], tab: Tab, tmp_path: Path
) -> None:
    """In the table, in the tree of znodes, and in the picture."""
    tab.open(page_of(zombie, tmp_path, 200)[0])
    owner = zombie[0].steps[-1].scheduled.node
    words = f"an earlier session of {owner}"

    assert tab.run("statePane.querySelector('tr.wrong td + td').textContent") == words
    assert words in tab.run("statePane.querySelector('.tree').textContent")
    assert tab.run("marks.claimed.some((one) => one.state === 'earlier' && one.ends === null)")


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False)])
def test_nothing_bars_the_way_into_the_page(
    zombie: tuple[Counterexample, Explorer, list[Taken]],
    tab: Tab,
    tmp_path: Path,
    width: int,
    dark: bool,
) -> None:
    """At the violation, at the step that changes most, and off the path."""
    address, near = page_of(zombie, tmp_path, 200)
    tab.show(width=width, is_dark=dark)
    changed = next(number for number, one in enumerate(zombie[0].steps, 1) if one.scheduled.fault)
    for where in ("", f"#step-{changed}", "#step-0"):
        tab.open("about:blank")
        tab.open(address + where)
        assert not complaints(tab), where
        assert tab.run("document.documentElement.scrollWidth - innerWidth") <= 0
    assert len(near.graph) > len(near.choices)


def states_on(near: PathInGraph) -> list[BrowsedState]:
    """The states of a path, in order."""
    numbers = [0]
    for choice in near.choices:
        numbers.append(near.graph[numbers[-1]].choices[choice].leads_to)
    return [near.graph[number] for number in numbers]


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
