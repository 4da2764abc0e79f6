"""Three groups with a mistake each, 120 runs: the kinds of failure, and the smallest of each.

    python bench/three_groups_sweep.py [--seeds 120] [--shrink-time 60] [--jobs 2] [--json]

The scenario is `three_groups.yaml` beside this file. The command is `watchkeeper sweep`, as a
user gives it, with a folder that is removed at the end. A kind of failure is one class for all
groups and topics, and the search for the smallest scenarios keeps its time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, once, parser_of

SCENARIO = Path(__file__).resolve().parent / "three_groups.yaml"
SEEDS = 120
MOST_CLASSES = 6
MOST_S = 120.0


def sweep(out: Path, seeds: int, shrink_s: float, jobs: int) -> dict[str, Any]:
    """Sweep the scenario in a process of its own, and return what the command prints."""
    command = [
        *(sys.executable, "-m", "watchkeeper", "sweep", str(SCENARIO), "--out", str(out)),
        *("--seeds", str(seeds), "--jobs", str(jobs), "--runner", "pool"),
        *("--shrink-time", str(shrink_s), "--json"),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    summary: dict[str, Any] = json.loads(done.stdout)
    if "failures" not in summary:
        raise SystemExit(f"the sweep did not end well: {summary}")
    return summary


def report_of(summary: dict[str, Any], seconds: float) -> Report:
    """The kinds of failure, and the bars."""
    failures = summary["failures"]
    report = Report(
        f"three groups, {summary['runs']:,} runs, {summary['verdicts']['violated']:,} violated",
        ("runs", "shrunk in", "smallest", "kind of failure"),
    )
    for failure in failures:
        found = failure["smallest"]
        ended = "found" if found["complete"] else "out of time"
        report.rows.append(
            [str(failure["number"]), f"{found['runs']} runs", ended, failure["signature"]]
        )
    report.bars = [
        Bar("kinds of failure", "at most", MOST_CLASSES, "kinds", once(len(failures))),
        Bar("the whole command", "less than", MOST_S, "s", once(seconds)),
    ]
    report.data = {"failures": failures, "seconds": round(seconds, 1)}
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="the number of runs (120)")
    parser.add_argument("--shrink-time", type=float, default=60.0, help="in seconds (60)")
    parser.add_argument("--jobs", type=int, default=2, help="how many runs at once (2)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        summary = sweep(Path(folder) / "swept", options.seeds, options.shrink_time, options.jobs)
        seconds = time.monotonic() - began
    report_of(summary, seconds).show(as_json=options.json)


if __name__ == "__main__":
    main()
