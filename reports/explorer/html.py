"""The page on which a search is browsed, step by step; a counterexample is a path in it.

On the left are the steps so far as a picture, beside it the state after the chosen step and the
steps that may come next. The page holds the states of a graph, or gets each from the command that
serves it. A path that violates a property may be given: the page of a counterexample opens at its
end. The address names the place, so that a link can point to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from watchkeeper.model.counterexample.browsed_state import (
    BrowsedClaim,
    BrowsedState,
    BrowsedZnode,
    Choice,
    PathInGraph,
    StateGraph,
)
from watchkeeper.model.counterexample.counterexample import (
    UNKNOWN_OWNER,
    Counterexample,
    ProcessSnapshot,
)
from watchkeeper.model.properties.ownership import STRICT
from watchkeeper.model.properties.verdicts import counted, violation_phrase
from watchkeeper.reports.explorer.step_data import step_data
from watchkeeper.reports.facts.names import natural
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page import POLICY, page
from watchkeeper.reports.figure.palette import consumer_colours

NAME = "explore.html"
COUNTEREXAMPLE = "counterexample.html"
SERVED_POLICY = f"{POLICY}; connect-src 'self'"
STYLES = ("explorer/rows.css", "explorer/explorer.css")
SCRIPTS = tuple(
    f"explorer/{name}.js"
    for name in ("places", "marks", "picture", "rows", "steps", "state", "explorer")
)
NOT_CONSUMERS = "broker/"
ADMINISTRATOR = "administrator"

_ENCODER = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True)
class GivenPath:
    """A path to a violation, by the choices along it."""

    choices: tuple[int, ...]
    says: str
    proof: str
    violation: int
    """The number of the step that violates the property."""
    cycle: tuple[int, int] | None = None
    """The first and the last step of the cycle that repeats for ever."""


@dataclass(frozen=True, slots=True)
class Browsed:
    """What is browsed: a scenario within its bound, and a path to each violation found."""

    scenario: str
    variant: str
    bound: str
    says: str
    """The verdict of the search, in a sentence."""
    nodes: tuple[str, ...]
    """The processes."""
    paths: Mapping[str, GivenPath] = field(default_factory=dict)
    """Violated property -> the path to its nearest violation."""


class Around(NamedTuple):
    """The path of a counterexample among the states near it."""

    path: PathInGraph
    command: str
    """The command that serves all states."""


def path_given(
    counterexample: Counterexample, choices: Sequence[int], limit: str = ""
) -> GivenPath:
    """Return the path of a counterexample, for a page; `limit` is as for the page."""
    cycle = counterexample.cycle
    return GivenPath(
        choices=tuple(choices),
        says=f"{counterexample.violates} {violation_phrase(limit)}",
        proof=counterexample.proof,
        violation=len(counterexample.steps),
        cycle=(cycle[0].number, cycle[-1].number) if cycle else None,
    )


# --- the pages -------------------------------------------------------------------------


def write_explorer_html(browsed: Browsed, graph: StateGraph, folder: Path) -> str:
    """Write the page with all states into a folder and return the name of the file."""
    return write(folder / NAME, explorer_page(browsed, graph))


def explorer_page(browsed: Browsed, graph: StateGraph | None = None) -> bytes:
    """Return the page; without a graph it gets each state from the address `states`."""
    states = "" if graph is None else f"All {counted(len(graph), 'state')} are in this page. "
    return page(
        browsed.scenario,
        f"{browsed.variant} · explored",
        browsed.says,
        lines=[browsed.says, f"{states}The bound of the search: {browsed.bound}."],
        banner="",
        styles=STYLES,
        scripts=SCRIPTS,
        data=page_data(browsed.nodes, browsed.paths, graph),
        policy=SERVED_POLICY if graph is None else POLICY,
    )


def write_counterexample_html(
    counterexample: Counterexample,
    folder: Path,
    limit: str = "",
    *,
    around: Around | None = None,
) -> str:
    """Write the page of a counterexample into a folder and return the name of the file.

    `limit` is why no client can avoid the violation, where that is a known limit. `around` has
    the states near the path; without it the page has the path alone.
    """
    content = counterexample_page(counterexample, limit, around=around)
    return write(folder / COUNTEREXAMPLE, content)


def counterexample_page(
    counterexample: Counterexample,
    limit: str = "",
    *,
    around: Around | None = None,
) -> bytes:
    """Return the page of a counterexample, opened where it violates the property."""
    found = path_alone(counterexample) if around is None else around.path
    command = "" if around is None else around.command
    given = path_given(counterexample, found.choices, limit)
    steps = counted(len(counterexample.steps), "step")
    if counterexample.cycle:
        steps += f", then a cycle of {len(counterexample.cycle)}"
    parts = (counterexample.variant, "explored", steps)
    return page(
        counterexample.scenario,
        " · ".join(filter(None, parts)),
        given.says,
        lines=[
            given.says,
            *([limit] if limit else []),
            given.proof,
            "Found by a search of every interleaving; its bound: "
            f"{counterexample.bound.replace('_', ' ')}. {_held(found, command)}",
        ],
        banner="",
        styles=STYLES,
        scripts=SCRIPTS,
        data=page_data(
            counterexample.nodes,
            {counterexample.violates: given},
            found.graph,
            opens=counterexample.violates,
            command=command,
        ),
    )


def _held(found: PathInGraph, command: str) -> str:
    """Say which states the page holds."""
    if any(not state.is_complete for state in found.graph):
        return "This page holds the path alone."
    beside = len(found.graph) - len(_on_path(found))
    return (
        f"This page holds the path, and {counted(beside, 'state')} that other steps lead to; "
        f"{command} shows all."
    )


def _on_path(found: PathInGraph) -> set[int]:
    numbers = [0]
    for choice in found.choices:
        numbers.append(found.graph[numbers[-1]].choices[choice].leads_to)
    return set(numbers)


def path_alone(counterexample: Counterexample) -> PathInGraph:
    """Return the states of a counterexample, each with the step that its path takes alone."""
    states = [
        (counterexample.first, counterexample.first_owners, counterexample.first_registry),
        *((step.snapshots, step.owners, step.registry) for step in counterexample.all_steps),
    ]
    steps = counterexample.all_steps
    graph = tuple(
        BrowsedState(
            snapshots=snapshots,
            znodes=(),
            choices=tuple(
                Choice(
                    step.scheduled,
                    violates=_violates(counterexample, number + 1),
                    leads_to=number + 1,
                )
                for step in steps[number : number + 1]
            ),
            disabled=steps[number].disabled if number < len(steps) else (),
            claims={what: BrowsedClaim(owner) for what, owner in owners.items()},
            registry=registry,
            is_complete=False,
        )
        for number, (snapshots, owners, registry) in enumerate(states)
    )
    return PathInGraph(graph, (0,) * len(steps))


def _violates(counterexample: Counterexample, number: int) -> tuple[str, ...]:
    return (counterexample.violates,) if number == len(counterexample.steps) else ()


# --- the data of the page --------------------------------------------------------------


def page_data(
    nodes: Sequence[str],
    paths: Mapping[str, GivenPath],
    graph: StateGraph | None,
    *,
    opens: str = "",
    command: str = "",
) -> dict[str, Any]:
    """Return what the page's scripts read."""
    members = consumers(nodes)
    colours = consumer_colours(members)
    return {
        "nodes": [[name, colours.get(name, "")] for name in nodes],
        "consumers": members,
        "unknown_owner": UNKNOWN_OWNER,
        "strict": STRICT.name,
        "paths": {name: msgspec.to_builtins(path) for name, path in paths.items()},
        "opens": opens,
        "command": command,
        "graph": None if graph is None else graph_data(graph),
    }


def consumers(nodes: Sequence[str]) -> list[str]:
    """Return the processes that may fetch, in natural order; all of them if there is none."""
    names = [
        name for name in nodes if not name.startswith(NOT_CONSUMERS) and name != ADMINISTRATOR
    ]
    return sorted(names or nodes, key=natural)


def state_data(state: BrowsedState) -> dict[str, Any]:
    """Return a state as the scripts of the page read it."""
    return {
        "processes": {name: _snapshot(one) for name, one in state.snapshots.items()},
        "claims": {what: _claim(claim) for what, claim in state.claims.items()},
        "registry": dict(state.registry),
        "znodes": [_znode(znode) for znode in state.znodes],
        "choices": [_choice(choice) for choice in state.choices],
        "disabled": list(state.disabled),
        "violates": list(state.violates),
        "rest": state.is_at_rest,
        "complete": state.is_complete,
    }


def graph_data(graph: StateGraph) -> dict[str, Any]:
    """Return the states: each part that several states share stands once, in a table."""
    parts: dict[bytes, int] = {}

    def number(part: Any) -> int:
        return parts.setdefault(_ENCODER.encode(part), len(parts))

    states = []
    for state in graph:
        whole = state_data(state)
        choices = zip(whole["choices"], state.choices, strict=True)
        whole |= {
            "processes": {name: number(one) for name, one in whole["processes"].items()},
            "claims": number(whole["claims"]),
            "registry": number(whole["registry"]),
            "znodes": [number(znode) for znode in whole["znodes"]],
            "choices": [
                [number(shown["step"]), number(shown["violates"]), shown["idle"], one.leads_to]
                for shown, one in choices
            ],
            "disabled": [number(sentence) for sentence in whole["disabled"]],
        }
        states.append(whole)
    return {"parts": [msgspec.Raw(part) for part in parts], "states": states}


def _snapshot(snapshot: ProcessSnapshot) -> dict[str, Any]:
    return {
        "phase": snapshot.phase,
        "session": snapshot.session,
        "waits": snapshot.waits_for,
        "pending": list(snapshot.notifications),
        "fetches": list(snapshot.fetching),
    }


def _claim(claim: BrowsedClaim) -> list[Any]:
    return [claim.owner, claim.is_of_earlier_session]


def _znode(znode: BrowsedZnode) -> list[Any]:
    return [znode.path, znode.data, znode.owner, znode.is_of_earlier_session]


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "step": step_data(choice.scheduled),
        "violates": list(choice.violates),
        "idle": choice.is_idle,
    }
