"""The truncation rules of Kafka, searched here and by TLC on the published TLA+ models.

    python bench/truncation_rules.py [--bounds 2,2,2,3 ...] [--tlc JAR --models FOLDER]
        [--states MOST] [--json]

Each rule is searched for the nearest violation of each invariant of the models, and to the end.
Ours takes the steps of the models' text (`checker/replication/published.py`). Exit code 1 where
TLC counts other states in a complete search, or finds a nearer or farther violation.

- `--bounds`: replicas, records in a log, records of producers, leader epochs; may be repeated.
- `--tlc JAR`: `tla2tools.jar`. No package registry has it; it builds from the source of
  `github:tlaplus/tlaplus`.
- `--models FOLDER`: a checkout of `github:hachikuji/kafka-specification`.
- `--states MOST`: compare the states themselves, one by one, where there are at most so many.

*Distinct* are states; *generated* are successors with repetitions, the first state included.
Seconds are of the wall clock; TLC's include the start of Java.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Report, number, parser_of
from bench.tla.checker import TlcProblem, TlcRun, run_tlc, states_of
from bench.tla.states import partition_of

from watchkeeper.checker.replication.partition import Bounds, Partition
from watchkeeper.checker.replication.published import (
    INVARIANTS,
    MODELS,
    PublishedModel,
    PublishedSteps,
)
from watchkeeper.checker.replication.search import (
    Holds,
    ReplicationSystem,
    search_steps,
    sentences,
)
from watchkeeper.checker.search.search import Search, SearchOptions
from watchkeeper.model.replication.variants import KAFKA_08
from watchkeeper.real.errors import EnvironmentProblem

BOUNDS = ("2,2,2,3", "3,1,1,2", "3,1,1,3", "3,2,2,2")
ALL = "every state"
TYPES = "TypeOk"
COLUMNS = ("bounds", "rule", "invariant")
FIGURES = ("found", "distinct", "generated", "s")
LEFT_OUT = (
    "TLC's columns are left out: give the jar by --tlc and the models' folder by --models "
    "(--help says where both come from)"
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one search has found."""

    found: str
    """`holds`, the number of steps to the violation, or `not evaluated`."""
    distinct: int
    generated: int
    depth: int
    is_complete: bool
    seconds: float
    steps: tuple[str, ...] = ()
    """The sentences of the counterexample."""
    why: str = ""
    """Why the invariant could not be evaluated."""

    def cells(self) -> list[str]:
        """Its cells of the table."""
        counts = (f"{self.distinct:,}", f"{self.generated:,}")
        return [self.found, *counts, number(self.seconds)]


@dataclass(frozen=True, slots=True)
class Row:
    """A rule and an invariant within bounds, searched by both."""

    bounds: Bounds
    model: PublishedModel
    invariant: str
    ours: Figures | None
    """None for the invariant about the types of TLA+ values."""
    tlc: Figures | None
    """None without a jar."""
    same_states: bool | None = None
    """Whether both have the same states; None where that was not compared."""

    def differs(self) -> str:
        """In what the two differ that should not; empty for nothing."""
        if self.ours is None or self.tlc is None:
            return ""
        if self.ours.found != self.tlc.found:
            return f"{self.ours.found} here, {self.tlc.found} in TLC"
        if self.ours.is_complete and self.ours.distinct != self.tlc.distinct:
            return f"{self.ours.distinct:,} states here, {self.tlc.distinct:,} in TLC"
        return "other states in TLC" if self.same_states is False else ""

    def cells(self, *, with_tlc: bool) -> list[str]:
        """The cells of the table."""
        ours = self.ours.cells() if self.ours else ["-"] * len(FIGURES)
        tlc = self.tlc.cells() if self.tlc else ["-"] * len(FIGURES)
        return [
            ",".join(map(str, self.bounds[:4])),
            self.model.rule.name,
            self.invariant,
            *ours,
            *(tlc if with_tlc else ()),
        ]

    def to_json(self) -> dict[str, Any]:
        """The row as a JSON value."""
        bounds = self.bounds._asdict()
        del bounds["faults"]  # there are none
        return {
            "bounds": bounds,
            "rule": self.model.rule.name,
            "module": self.model.module,
            "invariant": self.invariant,
            "ours": asdict(self.ours) if self.ours else None,
            "tlc": asdict(self.tlc) if self.tlc else None,
            "same_states": self.same_states,
        }


@dataclass(frozen=True, slots=True)
class Models:
    """The jar of TLC, and the folder of the models."""

    jar: Path
    folder: Path


def main() -> None:
    """Search, compare and print."""
    options = parsed()
    models = models_of(options)
    columns = [*COLUMNS, *FIGURES, *((f"TLC {name}" for name in FIGURES) if models else ())]
    report = Report("truncation rules beside the published TLA+ models", columns)
    rows: list[Row] = []
    for bounds in map(bounds_of, options.bounds or BOUNDS):
        for model in MODELS:
            for row in compared(bounds, model, models, report, most=options.states):
                rows.append(row)
                print(" ".join(row.cells(with_tlc=models is not None)), file=sys.stderr)
    report.rows += [row.cells(with_tlc=models is not None) for row in rows]
    report.data["rows"] = [row.to_json() for row in rows]
    differing = [row for row in rows if row.differs()]
    report.notes += notes_of(rows, differing) if models else [LEFT_OUT]
    report.show(as_json=options.json)
    sys.exit(1 if differing else 0)


def parsed() -> Namespace:
    """The options of this command."""
    parser = parser_of(__doc__, clock=False)
    shown = " ".join(BOUNDS)
    parser.add_argument(
        "--bounds", action="append", help=f"replicas,log,records,epochs; repeatable ({shown})"
    )
    parser.add_argument("--tlc", type=Path, help="tla2tools.jar, built from tlaplus/tlaplus")
    parser.add_argument("--models", type=Path, help="a checkout of hachikuji/kafka-specification")
    parser.add_argument(
        "--states", type=int, default=0, metavar="MOST", help="compare up to MOST states (0)"
    )
    return parser.parse_args()


def models_of(options: Namespace) -> Models | None:
    """What TLC needs; None where neither option is given.

    Raises SystemExit where one of the two is missing.
    """
    if options.tlc is None and options.models is None and not options.states:
        return None
    if options.tlc is None or options.models is None:
        raise SystemExit("TLC needs both --tlc JAR and --models FOLDER, and --states needs TLC")
    return Models(options.tlc, options.models)


def bounds_of(text: str) -> Bounds:
    """Read bounds: replicas, records in a log, records of producers, leader epochs."""
    try:
        replicas, log, records, epochs = map(int, text.split(","))
    except ValueError:
        raise SystemExit(
            f"--bounds {text}: four numbers are expected, such as {BOUNDS[0]}"
        ) from None
    return Bounds(replicas, log, records, epochs)


def compared(
    bounds: Bounds, model: PublishedModel, models: Models | None, report: Report, *, most: int
) -> Iterator[Row]:
    """Yield a row for the whole space, and one for each invariant."""
    steps = PublishedSteps(replace(KAFKA_08, truncation=model.rule), bounds)
    always: dict[str, Holds] = {ALL: lambda state: True}
    for name, holds in (always | INVARIANTS).items():
        ours = searched(steps, holds)
        if models is None:
            yield Row(bounds, model, name, ours, None)
            continue
        is_dumped = name == ALL and ours.distinct <= most
        invariant = "" if name == ALL else name
        run = tlc_run(models, model, bounds, invariant, report, dumps=is_dumped)
        same = is_same(steps, run.dump) if is_dumped else None
        yield Row(bounds, model, name, ours, figures_of(steps, run), same)
    if models is not None:
        run = tlc_run(models, model, bounds, TYPES, report)
        yield Row(bounds, model, TYPES, None, figures_of(steps, run))


def searched(steps: PublishedSteps, holds: Holds) -> Figures:
    """Search here."""
    began = time.perf_counter()
    result = search_steps(steps, {"invariant": holds})
    seconds = time.perf_counter() - began
    path = result.counterexamples.get("invariant")
    found = "holds" if path is None else f"{len(path)} steps"
    return Figures(
        found,
        result.states,
        result.transitions + 1,
        result.depth,
        result.is_complete,
        seconds,
        path or (),
    )


def tlc_run(
    models: Models,
    model: PublishedModel,
    bounds: Bounds,
    invariant: str,
    report: Report,
    *,
    dumps: bool = False,
) -> TlcRun:
    """Run TLC, and keep its version in the report."""
    try:
        run = run_tlc(models.jar, models.folder, model.module, bounds, invariant, dumps=dumps)
    except (EnvironmentProblem, TlcProblem) as problem:
        raise SystemExit(str(problem)) from problem
    report.data["tlc"] = run.said.version
    return run


def figures_of(steps: PublishedSteps, run: TlcRun) -> Figures:
    """What TLC has found; the steps of its counterexample in our words."""
    said = run.said
    holds = "not evaluated" if said.failed else "holds"
    found = f"{said.steps} steps" if said.violated else holds
    path = sentences(steps, [partition_of(state) for state in said.states])
    complete = not (said.violated or said.failed)
    counts = (said.distinct, said.generated, said.depth)
    return Figures(found, *counts, complete, run.seconds, path, said.failed)


def is_same(steps: PublishedSteps, dump: str) -> bool:
    """Whether TLC's states are those that are reached here."""
    system = ReplicationSystem(steps, {})
    Search(system, SearchOptions(reduces=False, keeps_edges=False)).run()
    theirs: set[Partition] = {partition_of(state) for state in states_of(dump)}
    return theirs == set(system.states.values)


def notes_of(rows: list[Row], differing: list[Row]) -> list[str]:
    """What the comparison comes to."""
    complete = [row for row in rows if row.ours is not None and row.ours.is_complete]
    violated = [row for row in rows if row.ours is not None and row.ours.found != "holds"]
    whys = sorted(
        {f"{row.invariant} in TLC: {row.tlc.why}" for row in rows if row.tlc and row.tlc.why}
    )
    by_state = sum(1 for row in rows if row.same_states)
    if not differing:
        return [
            *whys,
            f"{len(complete)} complete searches: as many states as TLC in each; "
            f"{by_state} of them compared state by state",
            f"{len(violated)} violations: as many steps as TLC's in each",
        ]
    return [
        f"{row.bounds}, {row.model.rule.name}, {row.invariant}: {row.differs()}"
        for row in differing
    ]


if __name__ == "__main__":
    main()
