"""A whole analysis: from the traces of runs to tables and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchkeeper.pipeline.analysis import coverage, cross_check
from watchkeeper.pipeline.analysis.control_plane.plans import plans
from watchkeeper.pipeline.analysis.cross_check import Difference
from watchkeeper.pipeline.analysis.engine.api import DataFrame, sql
from watchkeeper.pipeline.analysis.engine.engine import Engine
from watchkeeper.pipeline.analysis.facts.events import Source, events, write_events
from watchkeeper.pipeline.analysis.facts.intervals import facts
from watchkeeper.pipeline.analysis.facts.plan_facts import terms
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.failure_clusters import JUDGED, Cluster, clusters, swept_runs
from watchkeeper.pipeline.analysis.metrics_table import measured
from watchkeeper.pipeline.analysis.runs import Run, recorded_table, runs_table
from watchkeeper.pipeline.analysis.store import EVENTS, TABLES

MOST_DIFFERENCES = 100
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Analysed:
    """The result of an analysis."""

    runs: int
    events: int
    agreed: dict[str, int]
    """Property -> number of runs in which both computations agree."""
    alone: dict[str, int]
    """Property -> in how many runs it was judged and not computed a second time."""
    differences: list[Difference]
    clusters: list[Cluster]
    judged: int
    """How many runs were judged, with or without a trace that was kept."""
    measured: list[dict[str, Any]]
    """A row a run and a group."""
    coverage: list[dict[str, Any]]
    """A row a fault and a step."""


def analyse(
    engine: Engine,
    runs: Sequence[Run],
    signatures: dict[str, tuple[str, ...]],
    sweeps: list[Path],
    home: Path,
    tell: Tell,
) -> Analysed:
    """Analyse runs, and write events and tables to a folder.

    `signatures` maps runs to failure signatures; `sweeps` are folders of tables of runs, most of
    which have no trace. The language of the engine is in use.
    """
    tell("reading traces")
    read = write_events(engine, [Source(run.name, run.path) for run in runs], home / EVENTS)
    number = sum(trace.events for trace in read)
    engine.prepare(number)
    tables = Tables(engine, home / TABLES)
    table = events(engine, home / EVENTS)
    given = runs_table(engine, runs, read)
    planned = {run.name: run.plan for run in runs if run.plan is not None}
    known = terms(engine, planned)
    tell("putting sessions, claims and fetches together")
    found = facts(table, tables)
    tell("computing properties a second time")
    second = cross_check.second(given, found, known, plans(engine, planned), tables)
    both = tables.keep(
        "properties", cross_check.compared(second.properties, recorded_table(engine, runs), table)
    )
    tell("measuring")
    numbers = measured(tables, found, second, given, known.groups)
    covered = tables.keep("coverage", _covered(engine, table))
    tell("clustering failures")
    judged = _judged(engine, runs, read, signatures).unionByName(swept_runs(engine, sweeps))
    return Analysed(
        len(runs),
        number,
        _counted(both.where("agrees")),
        _counted(both.where("computed IS NULL")),
        cross_check.differences(both, given, MOST_DIFFERENCES),
        clusters(judged),
        judged.count(),
        [row.asDict() for row in numbers.orderBy("run", "group").collect()],
        [row.asDict() for row in covered.orderBy("fault", "step").collect()],
    )


def _counted(both: DataFrame) -> dict[str, int]:
    """The number of runs of each property; `sometimes` clauses count as one."""
    name = sql.regexp_replace("property", "^(sometimes|never): .*$", "$1")
    rows = both.groupBy(name.alias("name")).agg(sql.count("*").alias("number")).collect()
    return dict(sorted(Counter({row.name: row.number for row in rows}).items()))


def _covered(engine: Engine, table: DataFrame) -> DataFrame:
    return coverage.counted(engine, coverage.coverage(table), coverage.faults_of(table))


def _judged(
    engine: Engine,
    runs: Sequence[Run],
    read: Sequence[Any],
    signatures: dict[str, tuple[str, ...]],
) -> DataFrame:
    """The runs that are not in the table of a sweep."""
    lengths = {trace.run: trace.events for trace in read}
    rows = [
        (
            *(run.name, run.header.scenario, run.header.variant, run.header.seed, run.verdict),
            signatures.get(run.name, ()),
            lengths[run.name],
        )
        for run in runs
        if run.verdict is not None and not run.is_swept
    ]
    return engine.made(rows, JUDGED)
