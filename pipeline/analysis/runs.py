"""The runs that are analysed: what was found of each outside its trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from model.plan import Plan
from model.trace import Header
from pipeline.analysis.events import Read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Said:
    """What a run said of one property when it was judged."""

    property: str
    verdict: str
    counts: bool
    evidence: str
    at_us: int | None = None
    """When it was first violated, where that is known."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run with its trace."""

    name: str
    path: str
    """Of its trace."""
    header: Header
    fingerprint: str | None = None
    """Of the trace that was judged; None where that is not known."""
    verdict: str | None = None
    said: tuple[Said, ...] = ()
    command: str = ""
    """Which runs it again."""
    is_swept: bool = False
    """Whether it stands in the table of a sweep, which was judged as a whole."""
    plan: Plan | None = None
    why_no_plan: str = ""

    @property
    def violated(self) -> tuple[str, ...]:
        """The properties that count and are violated."""
        return tuple(
            one.property for one in self.said if one.counts and one.verdict == "violated"
        )


RUNS = StructType(
    [
        StructField("run", StringType(), nullable=False),
        StructField("scenario", StringType(), nullable=False),
        StructField("variant", StringType(), nullable=False),
        StructField("world", StringType(), nullable=False),
        StructField("seed", LongType(), nullable=False),
        StructField("partial", BooleanType(), nullable=False),
        StructField("has_plan", BooleanType(), nullable=False),
        StructField("has_groups", BooleanType(), nullable=False),
        StructField("has_messages", BooleanType(), nullable=False),
        StructField("events", LongType(), nullable=False),
        StructField("end_us", LongType(), nullable=False),
        StructField("fingerprint", StringType(), nullable=False),
        StructField("judged_fingerprint", StringType()),
        StructField("verdict", StringType()),
    ]
)
"""A row a run; without a plan `has_groups` is true, since nothing speaks against it, and
`has_messages` is false, since whose they are is not known."""

SAID = StructType(
    [
        StructField("run", StringType(), nullable=False),
        StructField("property", StringType(), nullable=False),
        StructField("said", StringType(), nullable=False),
        StructField("counts", BooleanType(), nullable=False),
        StructField("evidence", StringType(), nullable=False),
        StructField("said_at_us", LongType()),
    ]
)
"""A row a property of a run that was judged."""


def runs_table(spark: SparkSession, runs: Iterable[Run], read: Iterable[Read]) -> DataFrame:
    """The runs as a table."""
    traces = {one.run: one for one in read}
    return spark.createDataFrame([_row(one, traces[one.name]) for one in runs], RUNS)


def _row(run: Run, read: Read) -> tuple[Any, ...]:
    header = run.header
    return (
        *(run.name, header.scenario, header.variant, header.world, header.seed, header.partial),
        run.plan is not None,
        run.plan is None or bool(run.plan.groups),
        run.plan is not None and any(one.storage is not None for one in run.plan.clusters),
        *(read.events, read.end_us, read.fingerprint, run.fingerprint, run.verdict),
    )


def said_table(spark: SparkSession, runs: Iterable[Run]) -> DataFrame:
    """What was said of the runs, as a table."""
    rows = [
        (run.name, one.property, one.verdict, one.counts, one.evidence, one.at_us)
        for run in runs
        for one in run.said
    ]
    return spark.createDataFrame(rows, SAID)
