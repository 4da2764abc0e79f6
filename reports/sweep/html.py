"""The page of a sweep: where runs fail, how often, how soon they rest, and how to see it.

It is made of the summary of the sweep, as `--json` prints it, and of nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model.sweeps import short_name
from model.verdicts import counted
from reports.files import write
from reports.page import page

NAME = "sweep.html"
MOST_CELLS = 2_000
MOST_FAILURES = 200
WORDS = {"holds": "hold", "violated": "are violated", "failed": "ended in an error"}


def write_sweep_html(summary: Mapping[str, Any], folder: Path) -> str:
    """Write the page; the name of the file."""
    content = page(
        summary["scenario"],
        f"{', '.join(summary['variants'])} · {counted(summary['runs'], 'run')}",
        "a sweep",
        lines=[_headline(summary), summary["about"]],
        banner=_banner(summary),
        styles=("sweep.css",),
        scripts=("sweep-draw.js", "sweep.js"),
        data=page_data(summary),
    )
    return write(folder / NAME, content)


def page_data(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A summary as the page's script reads it."""
    return {
        "runs": summary["runs"],
        "verdicts": summary["verdicts"],
        "axes": _axes(summary),
        "cells": [
            {**cell, "at": [*cell["parameters"].values(), cell["variant"]]}
            for cell in summary["cells"][:MOST_CELLS]
        ],
        "failures": summary["failures"][:MOST_FAILURES],
        "unknown": summary["unknown"][:MOST_FAILURES],
        "determinism": summary["determinism"],
        "canary": summary["canary"],
        "command": summary["command"],
    }


def _axes(summary: Mapping[str, Any]) -> list[list[Any]]:
    """What cells differ in: the name of it, and its values in order."""
    parameters = [[short_name(path), values] for path, values in summary["set"].items()]
    return [*parameters, ["variant", summary["variants"]]]


def _headline(summary: Mapping[str, Any]) -> str:
    first, end = summary["seeds"]
    cells = counted(len(summary["cells"]), "cell")
    verdicts = summary["verdicts"]
    said = [f"{number:,} {WORDS.get(word, word)}" for word, number in verdicts.items() if number]
    return f"{cells}, each with the seeds {first} to {end - 1}: {', '.join(said)}."


def _banner(summary: Mapping[str, Any]) -> str:
    left_out = []
    if len(summary["cells"]) > MOST_CELLS:
        left_out.append(f"{len(summary['cells']) - MOST_CELLS:,} cells")
    if len(summary["failures"]) > MOST_FAILURES:
        left_out.append(f"{len(summary['failures']) - MOST_FAILURES:,} ways of failing")
    said = [f"Left out here: {' and '.join(left_out)}; they are in summary.json."]
    differing = len(summary["determinism"]["differing"])
    not_the_same = [f"{counted(differing, 'run')} came out differently when run again."]
    return " ".join([*(said if left_out else []), *(not_the_same if differing else [])])
