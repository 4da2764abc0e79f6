"""The page on which a search is browsed: a state, the steps enabled in it, and the way to it.

The page holds all states of a small search, or gets each state from the command that serves it.
Its address names the place by the choices that lead there, so that a link can point to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.model.counterexample.browsed_state import (
    BrowsedState,
    BrowsedZnode,
    Choice,
    StateGraph,
)
from watchkeeper.model.counterexample.counterexample import ProcessSnapshot, ScheduledStep
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.reports.counterexample import marks
from watchkeeper.reports.counterexample.html import short_answer
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page import POLICY, page
from watchkeeper.reports.figure.palette import GAP, consumer_colours

NAME = "explore.html"
SERVED_POLICY = f"{POLICY}; connect-src 'self'"

_ENCODER = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True)
class Browsed:
    """What is browsed: a scenario within its bound, and the way to each violation found."""

    scenario: str
    variant: str
    bound: str
    says: str
    """The verdict of the search, in a sentence."""
    nodes: tuple[str, ...]
    """The processes."""
    ways: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Violated property -> the choices that lead to its nearest violation."""


def write_explorer_html(browsed: Browsed, graph: StateGraph, folder: Path) -> str:
    """Write the page with all states into a folder and return the name of the file."""
    return write(folder / NAME, explorer_page(browsed, graph))


def explorer_page(browsed: Browsed, graph: StateGraph | None = None) -> bytes:
    """Return the page; without a graph it gets each state from the address `state`."""
    states = "" if graph is None else f"All {counted(len(graph), 'state')} are in this page. "
    return page(
        browsed.scenario,
        f"{browsed.variant} · explored",
        browsed.says,
        lines=[browsed.says, f"{states}The bound of the search: {browsed.bound}."],
        banner="",
        styles=("counterexample/counterexample.css", "explorer/explorer.css"),
        scripts=("explorer/places.js", "explorer/explorer.js"),
        data={
            "nodes": [[name, colour] for name, colour in _colours(browsed.nodes).items()],
            "ways": {name: list(way) for name, way in browsed.ways.items()},
            "graph": None if graph is None else graph_data(graph),
        },
        policy=SERVED_POLICY if graph is None else POLICY,
    )


def _colours(nodes: Sequence[str]) -> dict[str, str]:
    found = consumer_colours(marks.consumers(nodes))
    return {name: found.get(name, GAP) for name in nodes}


# --- a state as JSON -------------------------------------------------------------------


def state_data(state: BrowsedState) -> dict[str, Any]:
    """Return a state as the scripts of the page read it."""
    return {
        "processes": {name: _snapshot(one) for name, one in state.snapshots.items()},
        "znodes": [_znode(znode) for znode in state.znodes],
        "choices": [_choice(choice) for choice in state.choices],
        "disabled": list(state.disabled),
        "violates": list(state.violates),
        "rest": state.is_at_rest,
    }


def step_data(scheduled: ScheduledStep) -> dict[str, Any]:
    """Return a step as the scripts of the page read it."""
    return {
        "node": scheduled.node,
        "text": scheduled.text,
        "fault": scheduled.fault or "",
        "operation": scheduled.operation,
        "answer": _answer(scheduled.operation, scheduled.answer),
        "reads": [[name, _answer(name, answer)] for name, answer in scheduled.reads],
    }


def graph_data(graph: StateGraph) -> dict[str, Any]:
    """Return all states: each part that several states share stands once, in a table."""
    parts: dict[bytes, int] = {}

    def number(part: Any) -> int:
        return parts.setdefault(_ENCODER.encode(part), len(parts))

    states = []
    for state in graph:
        whole = state_data(state)
        states.append(
            {
                "processes": {name: number(one) for name, one in whole["processes"].items()},
                "znodes": [number(znode) for znode in whole["znodes"]],
                "choices": [
                    [number(choice["step"]), number(choice["violates"]), choice["idle"], end]
                    for choice, end in zip(
                        whole["choices"],
                        (choice.leads_to for choice in state.choices),
                        strict=True,
                    )
                ],
                "disabled": [number(sentence) for sentence in whole["disabled"]],
                "violates": whole["violates"],
                "rest": whole["rest"],
            }
        )
    return {"parts": [msgspec.Raw(part) for part in parts], "states": states}


def _snapshot(snapshot: ProcessSnapshot) -> dict[str, Any]:
    return {
        "phase": snapshot.phase,
        "session": snapshot.session,
        "waits": snapshot.waits_for,
        "pending": list(snapshot.notifications),
        "fetches": list(snapshot.fetching),
    }


def _znode(znode: BrowsedZnode) -> list[Any]:
    return [znode.path, znode.data, znode.owner, znode.is_of_earlier_session]


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "step": step_data(choice.scheduled),
        "violates": list(choice.violates),
        "idle": choice.is_idle,
    }


def _answer(operation: str, answer: Any) -> str:
    return short_answer(operation, answer) if operation and answer is not None else ""
