"""The page of a sweep: where runs fail, how often, how soon they rest, and how to reproduce them.

It is made from the summary of the sweep, as `--json` prints it, alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from watchkeeper.model.properties.verdicts import KNOWN_LIMIT, counted
from watchkeeper.model.sweep_summary import MOST_WARNINGS, short_name
from watchkeeper.model.trace.trace import mix_in_words
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page import page

NAME = "sweep.html"
SCRIPTS = ("sweep/sweep-draw.js", "sweep/sweep.js")
MOST_CELLS = 2_000
MOST_FAILURES = 200
WORDS = {
    "holds": "hold",
    "violated": "are violated",
    "failed": "ended in an error",
    KNOWN_LIMIT: f"are at a {KNOWN_LIMIT}",
}


def write_sweep_html(summary: Mapping[str, Any], folder: Path) -> str:
    """Write the page; the name of the file."""
    content = page(
        summary["scenario"],
        f"{', '.join(_variants(summary))} · {counted(summary['runs'], 'run')}",
        "a sweep",
        lines=[_headline(summary), summary["about"], *_warnings(summary)],
        banner=_banner(summary),
        styles=("sweep/sweep.css",),
        scripts=SCRIPTS,
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
            {**cell, "at": [*cell["parameters"].values(), _shown(cell)]}
            for cell in summary["cells"][:MOST_CELLS]
        ],
        "failures": summary["failures"][:MOST_FAILURES],
        "unknown": summary["unknown"][:MOST_FAILURES],
        "determinism": summary["determinism"],
        "self_test": summary["self_test"],
        "command": summary["command"],
    }


def _axes(summary: Mapping[str, Any]) -> list[list[Any]]:
    """The dimensions of cells: the name of each, and its values in order."""
    parameters = [[short_name(path), values] for path, values in summary["set"].items()]
    return [*parameters, ["variant", _variants(summary)]]


def _variants(summary: Mapping[str, Any]) -> list[str]:
    """The variants of all cells, each once."""
    return list(dict.fromkeys(map(_shown, summary["cells"])))


def _shown(cell: Mapping[str, Any]) -> str:
    """The variants of a cell: a mix is named whole."""
    return mix_in_words(cell["mix"], cell["variant"])


def _headline(summary: Mapping[str, Any]) -> str:
    first, end = summary["seeds"]
    cells = counted(len(summary["cells"]), "cell")
    counts = summary["verdicts"].items()
    said = [f"{number:,} {WORDS.get(word, word)}" for word, number in counts if number]
    return f"{cells}, each with the seeds {first} to {end - 1}: {', '.join(said)}."


def _warnings(summary: Mapping[str, Any]) -> list[str]:
    """The first warnings on the settings of cells, and how many more the summary has."""
    found = summary["warnings"]
    lines = [
        f"Warning: {warning['name']}, {warning['group']}: {warning['message']}."
        for warning in found[:MOST_WARNINGS]
    ]
    left = len(found) - MOST_WARNINGS
    return [*lines, f"{counted(left, 'more warning')} in summary.json."] if left > 0 else lines


def _banner(summary: Mapping[str, Any]) -> str:
    left_out = []
    if len(summary["cells"]) > MOST_CELLS:
        left_out.append(f"{len(summary['cells']) - MOST_CELLS:,} cells")
    if len(summary["failures"]) > MOST_FAILURES:
        left_out.append(f"{len(summary['failures']) - MOST_FAILURES:,} failure signatures")
    sentences = [f"Left out here: {' and '.join(left_out)}; they are in summary.json."]
    differing = len(summary["determinism"]["differing"])
    not_the_same = [f"{counted(differing, 'run')} came out differently when run again."]
    return " ".join([*(sentences if left_out else []), *(not_the_same if differing else [])])
