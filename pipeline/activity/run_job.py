"""Runs a job: in batch, or as a stream that ends when it has caught up.

A batch writes each table beside the present one, and replaces it when it is complete. A stream
adds to its tables, batch by batch. The input of a batch is fixed in the checkpoint before it is
read, and a batch is finished when its rows are in the table: after a kill it is repeated, and no
row is lost or doubled. A table is made in one of the two ways, not both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException

from watchkeeper.pipeline.activity.folder import Made, Place, check, clear, made_of, rewind, stamp
from watchkeeper.pipeline.activity.jobs import Job, Table
from watchkeeper.pipeline.activity.log_input import Events
from watchkeeper.pipeline.activity.settings import Rules
from watchkeeper.pipeline.activity.table_output import (
    in_columns,
    put_batch,
    put_in_place,
    rows_in,
)
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.timeouts import what_failed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OURS = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE|$)", re.MULTILINE)
"""An exception that this package raised within Spark."""
LATE_WORKER = "Python worker failed to connect back"
TRIES = 10
TIMESTAMPS = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
"""Other readers of Parquet take Spark's own type for a time without a zone."""


@dataclass(frozen=True, slots=True)
class Written:
    """A table, after a job."""

    name: str
    rows: int
    """How many it has now."""
    lost: int = 0
    """Of a stream: how many groups of events arrived after their window was closed."""


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
    """Check that the tables of a job can be made in a folder; PipelineProblem if not."""
    for table in job.tables:
        made = made_of(table, logs, rules, is_stream=is_stream)
        check(Place(out, table.name), made)


def _why(message: str) -> str:
    """This package's sentence in Spark's error text, if there is one."""
    ours = OURS.search(message)
    return ours[1] if ours else what_failed(message)


def _written(frame: DataFrame, table: Table, place: Place, made: Made) -> Written:
    """Make one table, and count its rows."""
    lost = 0
    if made.as_stream:
        stamp(place.home, made)
        lost = _caught_up(frame, Putting(table, place, made))
    else:
        put_in_place(frame, table, place, made)
    return Written(table.name, sum(map(rows_in, place.home.rglob("*.parquet"))), lost)


# --- as a stream -----------------------------------------------------------------------


class Putting:
    """Writes batches to their tables, and keeps the error if one fails.

    Spark passes only the text of such an error on, among much else.
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
    """Let a table catch up; return how many events arrived after their window was closed.

    Spark gives a worker ten seconds to start, which is too little on a busy machine, and then
    ends the stream. It is started again from its checkpoint.
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
    """Start to write a table, or continue."""
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
    """The number of events behind the watermark: they are in no window."""
    progress: list[Any] = query.recentProgress
    return sum(
        operator.numRowsDroppedByWatermark
        for batch in progress
        for operator in batch.stateOperators
    )
