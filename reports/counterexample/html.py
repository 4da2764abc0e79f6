"""The page of a counterexample: each step, and the state of all processes after it.

Steps run from top to bottom. The claims and fetches of each partition are on the left, in the
middle a lane for each process and one for ZooKeeper, on the right the state after the chosen
step. The address of the page names the chosen step, so that a link can point to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.model.counterexample.counterexample import (
    UNKNOWN_OWNER,
    Counterexample,
    CounterexampleStep,
    ProcessSnapshot,
    ScheduledStep,
)
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.properties.verdicts import counted, violation_phrase
from watchkeeper.reports.counterexample import marks
from watchkeeper.reports.counterexample.marks import Interval, group_of
from watchkeeper.reports.facts.names import natural
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page import page
from watchkeeper.reports.figure.palette import consumer_colours

NAME = "counterexample.html"

_ENCODER = msgspec.json.Encoder(order="deterministic")


def write_counterexample_html(
    counterexample: Counterexample, folder: Path, limit: str = ""
) -> str:
    """Write the page into a folder and return the name of the file.

    `limit` is why no client can avoid the violation, where that is a known limit.
    """
    says = f"{counterexample.violates} {violation_phrase(limit)}"
    steps = counted(len(counterexample.steps), "step")
    if counterexample.cycle:
        steps += f", then a cycle of {len(counterexample.cycle)}"
    parts = (counterexample.variant, "explored", steps)
    content = page(
        counterexample.scenario,
        " · ".join(filter(None, parts)),
        says,
        lines=[
            says,
            *([limit] if limit else []),
            counterexample.proof,
            "Found by a search of every interleaving; its bound: "
            f"{_words(counterexample.bound)}.",
        ],
        banner="",
        styles=("counterexample/counterexample.css",),
        scripts=tuple(
            f"counterexample/{name}.js"
            for name in ("counterexample-draw", "steps", "counterexample")
        ),
        data=page_data(counterexample, limit),
    )
    return write(folder / NAME, content)


def page_data(counterexample: Counterexample, limit: str = "") -> dict[str, Any]:
    """Return what the page's scripts read; nodes and columns are given by their numbers."""
    colours = consumer_colours(marks.consumers(counterexample.nodes))
    number = {name: at for at, name in enumerate(counterexample.nodes)}
    lanes = marks.lanes(counterexample)
    fetched, claimed = marks.fetched(counterexample), marks.claimed(counterexample)
    columns = _columns(fetched, claimed)
    place = {(group, at): column for column, (group, at, _) in enumerate(columns)}
    return {
        "violates": counterexample.violates,
        "says": f"{counterexample.violates} {violation_phrase(limit)}",
        "proof": counterexample.proof,
        "nodes": [[name, colours.get(name, "")] for name in counterexample.nodes],
        "lanes": [number[name] for name in lanes],
        "columns": [
            [group, at, [number[node] for node in nodes]] for group, at, nodes in columns
        ],
        "fetched": [
            [column, number[bar.node], *_span(bar), bar.state, track]
            for (group, at), column in place.items()
            for bar, track in _bars(fetched, group, at)
        ],
        "claimed": [
            [column, number.get(claim.node, -1), *_span(claim)]
            for claim in claimed
            for column in _columns_of(claim, columns)
        ],
        "shared": [
            [place[interval.node, interval.what], *_span(interval)]
            for interval in marks.shared(counterexample)
        ],
        "notifications": [
            [number[sent.node], sent.what, *_span(sent), sent.state]
            for sent in marks.notifications(counterexample)
            if sent.node in lanes
        ],
        "steps": _steps(counterexample),
        "first": _snapshots(counterexample.first, number),
        "first_registry": counterexample.first_registry,
        "violation": len(counterexample.steps),
        "cycle": [counterexample.cycle[0].number, counterexample.cycle[-1].number]
        if counterexample.cycle
        else None,
    }


def _words(bound: str) -> str:
    return bound.replace("_", " ")


def _span(interval: Interval) -> list[int | None]:
    return [interval.begins, interval.ends]


def _bars(fetched: Iterable[Interval], group: str, at: str) -> Iterable[tuple[Interval, int]]:
    """Return the bars of a column, each with its track."""
    bars = [bar for bar in fetched if (group_of(bar.node), bar.what) == (group, at)]
    return zip(bars, marks.tracks(bars), strict=True)


# --- a column for each partition -------------------------------------------------------

Column = tuple[str, str, list[str]]
"""Group, partition, and the members that ever fetch it."""


def _columns(fetched: Iterable[Interval], claimed: Iterable[Interval]) -> list[Column]:
    """Return the partitions of each group that a process fetches or claims."""
    found: dict[tuple[str, str], set[str]] = {}
    for bar in fetched:
        found.setdefault((group_of(bar.node), bar.what), set()).add(bar.node)
    for claim in claimed:
        if claim.node != UNKNOWN_OWNER:
            found.setdefault((group_of(claim.node), claim.what), set())
    # A claim of an unknown owner has no group: it gets a column only if no group has one.
    for claim in claimed:
        if not any(at == claim.what for _, at in found):
            found["", claim.what] = set()
    ordered = sorted(found, key=lambda key: (natural(key[0]), natural(key[1])))
    return [(group, at, sorted(found[group, at], key=natural)) for group, at in ordered]


def _columns_of(claim: Interval, columns: list[Column]) -> list[int]:
    """Return the columns of a claim; one of an unknown owner is drawn for every group."""
    return [
        number
        for number, (group, at, _) in enumerate(columns)
        if at == claim.what and (claim.node == UNKNOWN_OWNER or group == group_of(claim.node))
    ]


# --- steps -----------------------------------------------------------------------------


def _steps(counterexample: Counterexample) -> list[dict[str, Any]]:
    number = {name: at for at, name in enumerate(counterexample.nodes)}
    found, before, owners = [], counterexample.first, counterexample.first_owners
    registry = counterexample.first_registry
    for step in counterexample.all_steps:
        changes = marks.changes(before, owners, registry, step)
        found.append({**_step(step, number), "changes": changes})
        before, owners, registry = step.snapshots, step.owners, step.registry
    return found


def _step(step: CounterexampleStep, number: dict[str, int]) -> dict[str, Any]:
    scheduled = step.scheduled
    return {
        "node": number[scheduled.node],
        "does": scheduled.does,
        "then": scheduled.then,
        "text": scheduled.text,
        "fault": scheduled.fault or "",
        "operation": scheduled.operation,
        "answer": short_answer(scheduled.operation, scheduled.answer)
        if _is_answered(scheduled)
        else "",
        "failed": _failed(scheduled.answer),
        "full": _json(scheduled.answer),
        "reads": [
            [operation, short_answer(operation, answer), _failed(answer), _json(answer)]
            for operation, answer in scheduled.reads
        ],
        "snapshots": _snapshots(step.snapshots, number),
        "owners": step.owners,
        "registry": step.registry,
        "disabled": list(step.disabled),
    }


def _snapshots(
    snapshots: Mapping[str, ProcessSnapshot], number: Mapping[str, int]
) -> dict[str, Any]:
    return {
        str(number[node]): [
            snapshot.phase,
            snapshot.session,
            snapshot.waits_for,
            list(snapshot.notifications),
            list(snapshot.fetching),
        ]
        for node, snapshot in snapshots.items()
    }


def _is_answered(scheduled: ScheduledStep) -> bool:
    return scheduled.answer is not None or (
        bool(scheduled.operation) and scheduled.last is StepKind.REPLY
    )


def _failed(answer: Any) -> bool:
    return isinstance(answer, dict) and "error" in answer


def _json(answer: Any) -> str:
    return "" if answer is None else _ENCODER.encode(answer).decode()


def short_answer(operation: str, answer: Any) -> str:
    """Shorten an answer to a few words."""
    word, _, path = operation.partition(" ")
    if answer is None:
        return "there is none" if word == "exists" else "done"
    if answer == path or (word == "multi" and isinstance(answer, list)):
        return "done"
    if isinstance(answer, dict):
        if "error" in answer:
            return str(answer["error"])
        if "data" in answer:
            data = "there is one" if word == "exists" else str(answer["data"])
            return f"{data}, mine" if answer.get("mine") else data
    if isinstance(answer, list):
        return "[" + ", ".join(short_answer("", part) for part in answer) + "]"
    return str(answer)
