"""Runs a job: all that there is at once, or as a stream that ends when it has caught up.

All at once, each table is written beside the one that there is, and put in its place when it
is whole. A stream adds to its tables, batch by batch. What a batch reads is fixed in the
checkpoint before it is read, and a batch counts as finished when its rows stand in the
table: killed at any moment it is repeated, and nothing is lost or doubled. A table is made
in one way or in the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException

from pipeline.activity.folder import Made, Place, check, clear, made_of, rewind, stamp
from pipeline.activity.jobs import Job, Table
from pipeline.activity.reading import Events
from pipeline.activity.settings import Rules
from pipeline.activity.writing import in_columns, put_batch, put_in_place, rows_in
from pipeline.bounded import what_failed
from pipeline.problems import PipelineProblem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OURS = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE|$)", re.MULTILINE)
"""What this project has raised within Spark."""
LATE_WORKER = "Python worker failed to connect back"
TRIES = 10
TIMESTAMPS = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
"""Other readers of Parquet take Spark's own kind for a time of no zone."""


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
    check_job(job, logs, out, rules, is_stream=is_stream)
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    spark.conf.set(*TIMESTAMPS)
    events = Events(spark, logs, is_stream)
    try:
        found = []
        for table in job.tables:
            place = Place(out, table.name)
            made = made_of(table, logs, rules, is_stream=is_stream)
            frame = in_columns(table.make(events, rules), table)
            found.append(_written(frame, table, place, made))
        clear(out)
        return found
    except (Py4JError, PySparkException) as error:
        raise PipelineProblem(
            f"Spark gave up ({_why(str(error))}); the tables in {out} are as they were, and the "
            "same command goes on when that is mended"
        ) from None


def check_job(job: Job, logs: str, out: Path, rules: Rules, *, is_stream: bool) -> None:
    """See whether the tables of a job can be made so in a folder; PipelineProblem if not."""
    for table in job.tables:
        made = made_of(table, logs, rules, is_stream=is_stream)
        check(Place(out, table.name), made)


def _why(said: str) -> str:
    """Of all that Spark says, our own sentence if there is one."""
    ours = OURS.search(said)
    return ours[1] if ours else what_failed(said)


def _written(frame: DataFrame, table: Table, place: Place, made: Made) -> Written:
    """Make one table, and count it."""
    lost = 0
    if made.as_stream:
        stamp(place.home, made)
        lost = _caught_up(frame, Putting(table, place, made))
    else:
        put_in_place(frame, table, place, made)
    return Written(table.name, sum(map(rows_in, place.home.rglob("*.parquet"))), lost)


# --- as a stream -----------------------------------------------------------------------


class Putting:
    """Puts batches where they belong, and knows what went wrong.

    Of an error here Spark hands on nothing but its text, among much else.
    """

    def __init__(self, table: Table, place: Place, made: Made) -> None:
        self.table = table
        self.place = place
        self.made = made
        self.error: Exception | None = None

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Put a batch into the table."""
        try:
            if self.table.keeps == "complete":
                put_in_place(rows, self.table, self.place, self.made)
            else:
                put_batch(rows, number, self.table, self.place)
        except Exception as error:
            self.error = error
            raise


def _caught_up(frame: DataFrame, putting: Putting) -> int:
    """Let a table catch up; how much came when its window was closed.

    Spark gives a worker ten seconds to begin, which is not enough where much else is done,
    and then ends the stream. It goes on from its checkpoint.
    """
    for left in reversed(range(TRIES)):
        query = _begun(frame, putting)
        try:
            query.awaitTermination()
            putting.place.begun.unlink()
            return _lost(query)
        except StreamingQueryException as error:
            if LATE_WORKER not in f"{error} {putting.error}" or not left:
                raise putting.error or error from None
        finally:
            query.stop()
    raise AssertionError("the last try ends in one way or the other")


def _begun(frame: DataFrame, putting: Putting) -> StreamingQuery:
    """Begin to write a table, or go on with it."""
    putting.error = None
    rewind(putting.place)
    putting.place.begun.parent.mkdir(exist_ok=True)
    putting.place.begun.touch()
    return (
        frame.writeStream.outputMode(putting.table.keeps)
        .trigger(availableNow=True)
        .option("checkpointLocation", str(putting.place.checkpoint))
        .foreachBatch(putting)
        .start()
    )


def _lost(query: StreamingQuery) -> int:
    """How much came behind the watermark: it is in no window any more."""
    progress: list[Any] = query.recentProgress
    return sum(
        operator.numRowsDroppedByWatermark for one in progress for operator in one.stateOperators
    )
