"""Runs a job: all that there is at once, or as a stream that ends when it has caught up.

    OUT/TABLE/                 a table, as Parquet
    OUT/_checkpoints/TABLE/    how far a stream has come with it
    OUT/_new/TABLE/            a table that is being written anew

All at once, each table is written beside the one that there is, and put in its place when it
is whole. A stream adds to its tables; what it writes and how far it has come are one for
Spark, so that killed at any moment it goes on, and loses and doubles nothing. A table is
made in one way or in the other.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException

from pipeline.activity.jobs import Job, Table
from pipeline.activity.reading import Events, names_of
from pipeline.activity.settings import Rules
from pipeline.bounded import what_failed
from pipeline.problems import PipelineProblem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OURS = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE|$)", re.MULTILINE)
"""What this project has raised within Spark."""
LATE_WORKER = "Python worker failed to connect back"
TRIES = 5
CHECKPOINTS = "_checkpoints"
NEW, OLD = "_new", "_old"


@dataclass(frozen=True, slots=True)
class Written:
    """A table, after a job."""

    name: str
    rows: int
    """How many it has now."""
    lost: int = 0
    """Of a stream: how many groups of events came when their window was closed."""


def run_job(
    spark: SparkSession, job: Job, logs: str, out: Path, rules: Rules, *, is_stream: bool
) -> list[Written]:
    """Make the tables of a job; PipelineProblem where they cannot be."""
    _check(job, out, is_stream=is_stream)
    try:
        return _run(spark, job, logs, out, rules, is_stream=is_stream)
    except (Py4JError, PySparkException) as error:
        raise PipelineProblem(
            f"Spark gave up ({_why(str(error))}); the tables in {out} are as they were, and the "
            "same command goes on when that is mended"
        ) from None


def _why(said: str) -> str:
    """Of all that Spark says, our own sentence if there is one."""
    ours = OURS.search(said)
    return ours[1] if ours else what_failed(said)


def _run(
    spark: SparkSession, job: Job, logs: str, out: Path, rules: Rules, *, is_stream: bool
) -> list[Written]:
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    events = Events(spark, logs, is_stream)
    if is_stream:
        lost = _streamed(events, job, out, rules)
    else:
        lost = {}
        for table in job.tables:
            put_in_place(table.make(events, rules), table, out)
    return [_written(spark, table, out, lost.get(table.name, 0)) for table in job.tables]


def _check(job: Job, out: Path, *, is_stream: bool) -> None:
    """Nobody makes a table in two ways."""
    for table in job.tables:
        is_there = (out / table.name).exists()
        was_stream = (out / CHECKPOINTS / table.name).exists()
        if is_there and is_stream and not was_stream:
            raise PipelineProblem(
                f"{out / table.name} was not made by a stream; name another folder, or leave "
                "out --stream to make it anew"
            )
        if was_stream and not is_stream:
            raise PipelineProblem(
                f"{out / table.name} is made by a stream; go on with --stream, or name another "
                "folder"
            )


# --- all at once -----------------------------------------------------------------------


def put_in_place(frame: DataFrame, table: Table, out: Path) -> None:
    """Write a table whole, and then put it where the one before it was."""
    new, old, place = out / NEW / table.name, out / OLD / table.name, out / table.name
    writer = frame.select(*_names(frame, table)).write.mode("overwrite")
    if table.parted_by:
        writer = writer.partitionBy(table.parted_by)
    writer.parquet(str(new))
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        old.parent.mkdir(exist_ok=True)
        place.rename(old)
    new.rename(place)
    for left in (NEW, OLD):
        shutil.rmtree(out / left, ignore_errors=True)


def _names(frame: DataFrame, table: Table) -> list[str]:
    """The columns of a table, which have to be those that are written down for it."""
    names = names_of(table.columns)
    kinds = dict(frame.dtypes)
    has = ", ".join(f"{name} {kinds.get(name)}" for name in names)
    assert has == table.columns, f"{table.name} has {has}, and not {table.columns}"
    assert len(kinds) == len(names), f"{table.name} has more than {has}: {list(kinds)}"
    return names


# --- as a stream -----------------------------------------------------------------------


def _streamed(events: Events, job: Job, out: Path, rules: Rules) -> dict[str, int]:
    """Let one table after the other catch up; for each, what came when its window was closed."""
    lost = {}
    for table in job.tables:
        lost[table.name] = _caught_up(table.make(events, rules), table, out)
    return lost


def _caught_up(frame: DataFrame, table: Table, out: Path) -> int:
    """Let a table catch up; how much came when its window was closed.

    Spark gives a worker ten seconds to begin, which is not enough where much else is done,
    and then ends the stream. It goes on from its checkpoint.
    """
    for left in reversed(range(TRIES)):
        query = _begun(frame, table, out)
        try:
            query.awaitTermination()
            return _lost(query)
        except StreamingQueryException as error:
            if LATE_WORKER not in str(error) or not left:
                raise
        finally:
            query.stop()
    raise AssertionError("the last try ends in one way or the other")


def _begun(frame: DataFrame, table: Table, out: Path) -> StreamingQuery:
    """Begin to write a table, or go on with it."""
    writer = (
        frame.select(*_names(frame, table))
        .writeStream.outputMode(table.keeps)
        .trigger(availableNow=True)
        .option("checkpointLocation", str(out / CHECKPOINTS / table.name))
    )
    if table.keeps == "complete":
        return writer.foreachBatch(lambda whole, _: put_in_place(whole, table, out)).start()
    if table.parted_by:
        writer = writer.partitionBy(table.parted_by)
    return writer.format("parquet").start(str(out / table.name))


def _lost(query: StreamingQuery) -> int:
    """How much came behind the watermark: it is in no window any more."""
    progress: list[Any] = query.recentProgress
    return sum(
        operator.numRowsDroppedByWatermark for one in progress for operator in one.stateOperators
    )


def _written(spark: SparkSession, table: Table, out: Path, lost: int) -> Written:
    """What a table has now; a stream that had nothing to read has not made it."""
    is_there = (out / table.name).exists()
    return Written(table.name, table_of(spark, table, out).count() if is_there else 0, lost)


def table_of(spark: SparkSession, table: Table, out: Path) -> DataFrame:
    """A table as it is now."""
    return spark.read.schema(table.columns).parquet(str(out / table.name))
