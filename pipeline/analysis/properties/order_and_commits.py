"""The order of deliveries, and the sanity of commits, a second time."""

from __future__ import annotations

from watchkeeper.model.properties.delivery import COMMITS, ORDER
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import CLAIM, NEVER, NUMBER
from watchkeeper.pipeline.analysis.facts.message_events import RANGE, pieces, ranges_of
from watchkeeper.pipeline.analysis.properties.ownership import commits, found

LINE = ["run", "group", "topic", "producer"]


def order(runs: DataFrame, message_events: DataFrame, mirrored: DataFrame) -> DataFrame:
    """Whether groups received messages in the order of sending, with a row a run.

    `mirrored` has the topics that mirrors bring to a group: their partitions hold messages of
    several partitions, in no guaranteed order.
    """
    handed = ranges_of(message_events.where(f"kind = '{EventKind.CONSUMED}'"))
    ordered = handed.join(mirrored, ["run", "group", "topic"], "left_anti")
    return found(runs, ORDER.name, _late(ordered), handed)


def _late(handed: DataFrame) -> DataFrame:
    """The events with which a group received messages for the first time, after later ones.

    A message is late if a later one of its producer came from the same partition before it came
    at all, from any partition. Where numbers never step back none can be late.
    """
    before = (
        Window.partitionBy(*LINE, "partition")
        .orderBy(*RANGE)
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    known = handed.select(
        *LINE, *RANGE, "first", "end", sql.max("end").over(before).alias("latest")
    )
    stepping_back = known.where("first < latest").select(*LINE).distinct()
    laid = pieces(known.join(stepping_back, LINE, "left_semi"), LINE, "latest")
    return (
        laid.groupBy(*LINE, "piece")
        .agg(
            sql.min("seq").alias("seq"), sql.min_by("latest", sql.struct(*RANGE)).alias("latest")
        )
        .where("piece < latest")
        .select("run", "seq")
    )


# --- commits ---------------------------------------------------------------------------


def sane_commits(
    runs: DataFrame, message_events: DataFrame, changes: DataFrame, brokers: DataFrame
) -> DataFrame:
    """Whether offsets were committed that the group had not reached, with a row a run.

    `brokers` has the groups that read from each. A group without a delivery may have had any
    position before the run; but not beyond the end of the log.
    """
    committed = _committed(changes.join(runs.select("run"), "run", "left_semi"))
    reached = message_events.where(
        f"kind IN ('{EventKind.CONSUMED}', '{EventKind.OFFSET_RESET}') AND to IS NOT NULL"
    ).select(
        *CLAIM, "seq", sql.lit(0).alias("at"), sql.lit(None).cast("long").alias("offset"), "to"
    )
    known = _beside(committed, reached).where("offset IS NOT NULL")
    negative = known.where("offset < 0")
    beyond = known.where("most IS NOT NULL AND offset > greatest(most, 0)")
    unhanded = known.where("most IS NULL AND offset > 0")
    wrong = negative.unionByName(beyond).unionByName(
        _beyond_log(unhanded, message_events, brokers)
    )
    return found(runs, COMMITS.name, wrong.select("run", "seq"), committed)


def _committed(changes: DataFrame) -> DataFrame:
    number = sql.when(sql.col("data").rlike(NUMBER), _number("data")).otherwise(-1)
    return commits(changes).select(
        *CLAIM,
        sql.col("seq").cast("long").alias("seq"),
        "at",
        number.alias("offset"),
        sql.lit(None).cast("long").alias("to"),
    )


def _number(name: str) -> Column:
    """A number of any length, of which only the sign counts if no offset is so large."""
    too_long = sql.when(sql.col(name).startswith("-"), -1).otherwise(NEVER)
    return sql.coalesce(sql.col(name).try_cast("long"), too_long)


def _beside(committed: DataFrame, reached: DataFrame) -> DataFrame:
    """Both tables in one, each with the highest `to` so far: `most`."""
    until_now = (
        Window.partitionBy(*CLAIM)
        .orderBy("seq", "at")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return committed.unionByName(reached).withColumn("most", sql.max("to").over(until_now))


def _beyond_log(committed: DataFrame, message_events: DataFrame, brokers: DataFrame) -> DataFrame:
    """The commits behind the end of a log, as that was when they were made."""
    asked = committed.select(*CLAIM).distinct()
    ends = (
        message_events.where(f"kind IN ('{EventKind.STORED}', '{EventKind.LOG_OPENED}')")
        .drop("group")
        .join(brokers, ["run", "node"])
        .join(asked, CLAIM, "left_semi")
        .select(*CLAIM, "seq", sql.lit(0).alias("at"), "to")
    )
    latest = (
        Window.partitionBy(*CLAIM)
        .orderBy("seq", "at")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        committed.select(*CLAIM, "seq", "at", "offset", "to", "most")
        .unionByName(ends, allowMissingColumns=True)
        .withColumn("log_end", sql.last("to", ignorenulls=True).over(latest))
        .where("offset > log_end")
        .select(*committed.columns)
    )
