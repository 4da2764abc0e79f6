"""The page of a counterexample of the replicas of one partition.

A row is a step, and has the state after it: what ZooKeeper has, and each replica with its log. A
record is a box in the colour of its epoch, and a bar stands at the high watermark. On the right
is the state after the chosen step in words, with the requests that replicas may still take. The
address of the page names the chosen step.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from watchkeeper.model.counterexample.replicas import ReplicasCounterexample
from watchkeeper.model.properties.verdicts import counted, violation_phrase
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page import page

NAME = "counterexample.html"
SCRIPTS = ("replicas/logs.js", "explorer/steps.js", "replicas/replicas.js")
PALER = 0.35


def write_replicas_html(counterexample: ReplicasCounterexample, folder: Path) -> str:
    """Write the page into a folder and return the name of the file."""
    says = f"{counterexample.violates} {violation_phrase('')}"
    replicas = counted(len(counterexample.first.replicas), "replica")
    steps = counted(len(counterexample.steps), "step")
    rule = f"truncation by {counterexample.rule}"
    content = page(
        f"{replicas} of a partition",
        " · ".join((counterexample.variant, rule, steps)),
        says,
        lines=[
            says,
            counterexample.proof,
            f"Found by a search of every order of steps; its bound: {counterexample.bound}.",
        ],
        banner="",
        styles=("explorer/rows.css", "replicas/replicas.css"),
        scripts=SCRIPTS,
        data=page_data(counterexample),
    )
    return write(folder / NAME, content)


def page_data(counterexample: ReplicasCounterexample) -> dict[str, Any]:
    """Return what the page's scripts read; `states` begins with that before the first step."""
    states = [counterexample.first, *(step.after for step in counterexample.steps)]
    return {
        "violates": counterexample.violates,
        "says": f"{counterexample.violates} {violation_phrase('')}",
        "proof": counterexample.proof,
        "states": [asdict(state) for state in states],
        "steps": [{"text": step.text, "fault": step.fault} for step in counterexample.steps],
        "violation": len(counterexample.steps),
        "breaches": [asdict(breach) for breach in counterexample.breaches],
        "colours": [palette.blend(hue, 255, PALER) for hue in palette.HUES],
        "longest": max(len(one.log) for state in states for one in state.replicas),
    }
