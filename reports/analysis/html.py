"""The page of an analysis: agreement of both computations, failures, coverage, metrics.

It is made from the summary of the analysis, as `--json` prints it, alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from watchkeeper.model.properties.verdicts import counted
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page import page

NAME = "analyze.html"
SCRIPTS = ("analysis/analysis.js",)
MOST_ROWS = 500


def write_analysis_html(summary: Mapping[str, Any], folder: Path) -> str:
    """Write the page; the name of the file."""
    runs = counted(summary["runs"], "run")
    content = page(
        "Analysis",
        f"{runs} · {counted(summary['events'], 'event')}",
        "an analysis",
        lines=[_headline(summary)],
        banner=_banner(summary),
        styles=("sweep/sweep.css", "analysis/analysis.css"),
        scripts=SCRIPTS,
        data=page_data(summary),
    )
    return write(folder / NAME, content)


def page_data(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A summary as the page's script reads it."""
    kept = {"agreed", "not_computed", "differences", "coverage", "inevitable"}
    return {
        **{name: summary[name] for name in kept},
        "failures": summary["failures"][:MOST_ROWS],
        "measures": summary["measures"][:MOST_ROWS],
    }


def _headline(summary: Mapping[str, Any]) -> str:
    number = len(summary["differences"])
    agree = f"{counted(number, 'difference')} between them" if number else "both agree"
    judged = counted(summary["judged"], "run")
    return (
        f"Every property was computed a second time, from the traces alone: {agree}. Failures "
        f"are counted over {judged}."
    )


def _banner(summary: Mapping[str, Any]) -> str:
    left_out = [
        f"{len(summary[name]) - MOST_ROWS:,} {words}"
        for name, words in (("failures", "failure signatures"), ("measures", "rows of measures"))
        if len(summary[name]) > MOST_ROWS
    ]
    if not left_out:
        return ""
    return f"Left out here: {' and '.join(left_out)}; they are in analysis.json."
