"""Faults that were mended, and claims about groups, with 1,000 drawn scenarios of each kind.

    python bench/regressions.py [--seeds 1000] [--first 0] [--class NAME,NAME] [--jobs 2] [--json]

A class is a family of scenarios: the seed draws the cluster, the variant, the settings, and the
moments and kinds of faults. Each run is checked for what has to be true of it; what that is
stands with each class in `regression_classes`. A run that raises an error is wrong, too. The
exit code is 1 if a run is wrong, or a class shows more kinds of failure than it may.

*Shown* are the runs in which the class's subject occurred: a fault struck, a topic came back, a
property was violated. *Refused* are drawn settings that the scenario does not accept.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.regression_classes import (
    applications,
    brokers,
    groups,
    members,
    operators,
    settings,
    verdicts,
)
from bench.regression_classes.outcome import RegressionClass
from bench.support.report import Report, number, parser_of

CLASSES = {
    one.name: one
    for one in (
        applications.COMMITS,
        brokers.BOUNCES,
        settings.SETTINGS_CLASS,
        brokers.TOPICS,
        brokers.LEADERS,
        verdicts.SIGNATURES,
        applications.PRODUCERS,
        verdicts.FOLDERS,
        groups.ROLES,
        verdicts.SETTLED,
        groups.NEW_GROUPS,
        verdicts.LIMITS,
        *members.MEMBERS,
        *operators.OPERATORS,
    )
}
A_CHUNK = 25
"""Seeds that a process draws before it takes others."""
MOST_SHOWN = 5
"""Wrong runs of a class that are printed at once; `--json` has all of them."""


@dataclass(slots=True)
class Runs:
    """The outcomes of some seeds of a class."""

    seeds: int = 0
    shown: int = 0
    refused: int = 0
    cpu_s: float = 0.0
    wrong: dict[int, list[str]] = field(default_factory=dict)
    """Seed -> what is wrong with its run."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Kind of failure, or of run -> the number of runs that show it."""

    def add(self, other: Runs) -> None:
        """Add the outcomes of other seeds."""
        self.seeds += other.seeds
        self.shown += other.shown
        self.refused += other.refused
        self.cpu_s += other.cpu_s
        self.wrong |= other.wrong
        self.kinds += other.kinds

    def to_json(self) -> dict[str, Any]:
        """The fields of `--json`."""
        return {
            "seeds": self.seeds,
            "shown": self.shown,
            "refused": self.refused,
            "cpu_s": round(self.cpu_s, 1),
            "wrong": {str(seed): what for seed, what in sorted(self.wrong.items())},
            "kinds": dict(self.kinds.most_common()),
        }


def drawn(name: str, seeds: range) -> Runs:
    """Draw and check some seeds of a class."""
    began = time.process_time()
    found = Runs(len(seeds))
    for seed in seeds:
        outcome = CLASSES[name].outcome(seed)
        found.shown += outcome.exercised > 0
        found.refused += bool(outcome.refusal)
        found.kinds.update(outcome.kinds)
        if outcome.wrong:
            found.wrong[seed] = list(outcome.wrong)
    found.cpu_s = time.process_time() - began
    return found


def runs_of(name: str, seeds: range, pool: Executor | None) -> Runs:
    """Draw and check all seeds of a class."""
    chunks = [seeds[at : at + A_CHUNK] for at in range(0, len(seeds), A_CHUNK)]
    parts = (map if pool is None else pool.map)(drawn, [name] * len(chunks), chunks)
    found = Runs()
    for part in parts:
        found.add(part)
    return found


def failures_of(one: RegressionClass, found: Runs) -> list[str]:
    """A sentence for each wrong run, and one for too many kinds of failure."""
    failures = [f"seed {seed}: {what[0]}" for seed, what in sorted(found.wrong.items())]
    if one.most_kinds is not None and len(found.kinds) > one.most_kinds:
        failures.append(f"{len(found.kinds)} kinds of failure, not {one.most_kinds} at most")
    return failures


def report_of(found: dict[str, Runs]) -> Report:
    """All of it."""
    seeds = sum(runs.seeds for runs in found.values())
    wrong = sum(len(runs.wrong) for runs in found.values())
    report = Report(
        f"Faults that were mended, and claims: of {seeds:,} drawn runs {wrong:,} are wrong",
        ("class", "seeds", "shown", "refused", "wrong", "CPU s", "what each run is drawn for"),
        data={"classes": {name: runs.to_json() for name, runs in found.items()}},
    )
    for name, runs in found.items():
        figures = (runs.seeds, runs.shown, runs.refused, len(runs.wrong))
        row = [name, *(f"{figure:,}" for figure in figures), number(runs.cpu_s)]
        report.rows.append([*row, CLASSES[name].about])
        report.notes += [f"{name}: {kind}: {count}" for kind, count in runs.kinds.most_common()]
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, check and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--seeds", type=int, default=1_000, help="of each class (1000)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--class", dest="classes", default=",".join(CLASSES), help="which (all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes that draw (1)")
    given = parser.parse_args(arguments)
    names = given.classes.split(",")
    unknown = [name for name in names if name not in CLASSES]
    if unknown:
        parser.error(f"--class {unknown[0]}: expected some of {', '.join(CLASSES)}")
    found: dict[str, Runs] = {}
    failed = False
    with ProcessPoolExecutor(given.jobs) if given.jobs > 1 else nullcontext() as pool:
        for name in names:
            seeds = range(given.first, given.first + given.seeds)
            found[name] = runs_of(name, seeds, pool)
            failures = failures_of(CLASSES[name], found[name])
            failed = failed or bool(failures)
            sentence = f"{name}: {len(found[name].wrong)} of {given.seeds} runs are wrong"
            print(sentence, *failures[:MOST_SHOWN], sep="\n  ", file=sys.stderr, flush=True)
    report_of(found).show(as_json=given.json)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
