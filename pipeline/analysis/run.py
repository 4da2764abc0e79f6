"""A whole analysis: from the traces of runs to the tables and what is to be said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from pipeline.analysis import agreement, coverage
from pipeline.analysis.agreement import Difference
from pipeline.analysis.clusters import JUDGED, Cluster, clusters, swept_runs
from pipeline.analysis.events import Source, events, write_events
from pipeline.analysis.numbers import measured
from pipeline.analysis.runs import Run, runs_table, said_table
from pipeline.analysis.spans import facts
from pipeline.analysis.store import EVENTS, TABLES
from pipeline.analysis.tables import Tables, prepare
from pipeline.analysis.terms import terms

MOST_DIFFERENCES = 100
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Analysed:
    """What came of an analysis."""

    runs: int
    events: int
    agreed: dict[str, int]
    """Property -> in how many runs both come to the same."""
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
    spark: SparkSession,
    runs: Sequence[Run],
    signatures: dict[str, str],
    sweeps: list[Path],
    home: Path,
    tell: Tell,
) -> Analysed:
    """Analyse runs, and leave events and tables in a folder.

    `signatures` says of runs in which way they failed; `sweeps` are folders of tables of
    runs, most of which have no trace.
    """
    tell("reading traces")
    read = write_events(spark, [Source(one.name, one.path) for one in runs], home / EVENTS)
    number = sum(one.events for one in read)
    prepare(spark, number)
    tables = Tables(spark, home / TABLES)
    table = events(spark, home / EVENTS)
    given = runs_table(spark, runs, read)
    known = terms(spark, {one.name: one.plan for one in runs if one.plan is not None})
    tell("putting sessions, claims and fetches together")
    found = facts(table, tables)
    tell("computing properties a second time")
    second = agreement.second(given, found, known, tables)
    both = tables.keep(
        "properties", agreement.compared(second.properties, said_table(spark, runs), table)
    )
    tell("measuring")
    numbers = measured(tables, found, second, given, known.groups)
    covered = tables.keep("coverage", _covered(table))
    tell("clustering failures")
    judged = _judged(spark, runs, read, signatures).unionByName(swept_runs(spark, sweeps))
    return Analysed(
        len(runs),
        number,
        _counted(both.where("agrees")),
        _counted(both.where("computed IS NULL")),
        agreement.differences(both, given, MOST_DIFFERENCES),
        clusters(judged),
        judged.count(),
        [one.asDict() for one in numbers.orderBy("run", "group").collect()],
        [one.asDict() for one in covered.orderBy("fault", "step").collect()],
    )


def _counted(both: DataFrame) -> dict[str, int]:
    """How many runs there are of each property; what scenarios look for counts as one."""
    name = sql.regexp_replace("property", "^(sometimes|never): .*$", "$1")
    rows = both.groupBy(name.alias("name")).agg(sql.count("*").alias("number")).collect()
    return dict(sorted(Counter({one.name: one.number for one in rows}).items()))


def _covered(table: DataFrame) -> DataFrame:
    return coverage.counted(coverage.coverage(table), coverage.faults_of(table))


def _judged(
    spark: SparkSession, runs: Sequence[Run], read: Sequence[Any], signatures: dict[str, str]
) -> DataFrame:
    """The runs that stand for themselves and are not in the table of a sweep."""
    lengths = {one.run: one.events for one in read}
    rows = [
        (
            *(one.name, one.header.scenario, one.header.variant, one.header.seed, one.verdict),
            signatures.get(one.name),
            lengths[one.name],
        )
        for one in runs
        if one.verdict is not None and not one.is_swept
    ]
    return spark.createDataFrame(rows, JUDGED)
