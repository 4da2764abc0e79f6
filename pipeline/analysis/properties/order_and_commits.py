"""In which order messages were handed on, and how far places were committed, a second time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from model.delivered import COMMITS, ORDER
from pipeline.analysis.owning import commits, found
from pipeline.analysis.spans import CLAIM, NEVER, NUMBER
from pipeline.analysis.telling import LOT, lots_of, pieces

LINE = ["run", "group", "topic", "producer"]


def order(runs: DataFrame, told: DataFrame, mirrored: DataFrame) -> DataFrame:
    """Whether groups were handed messages in the order they were sent, with a row a run.

    `mirrored` has the topics that mirrors bring to a group: their partitions hold what came
    from several, in no order that anybody promises.
    """
    handed = lots_of(told.where("kind = 'consumed'"))
    ordered = handed.join(mirrored, ["run", "group", "topic"], "left_anti")
    return found(runs, ORDER.name, _late(ordered), handed)


def _late(handed: DataFrame) -> DataFrame:
    """The events by which a group got messages for the first time, and after later ones.

    A message is late if a later one of its producer had come from the same partition before it
    came at all, from whichever partition. Where nothing ever steps back nothing can be late.
    """
    before = (
        Window.partitionBy(*LINE, "partition")
        .orderBy(*LOT)
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    known = handed.select(
        *LINE, *LOT, "first", "end", sql.max("end").over(before).alias("latest")
    )
    stepping_back = known.where("first < latest").select(*LINE).distinct()
    laid = pieces(known.join(stepping_back, LINE, "left_semi"), LINE, "latest")
    return (
        laid.groupBy(*LINE, "piece")
        .agg(sql.min("seq").alias("seq"), sql.min_by("latest", sql.struct(*LOT)).alias("latest"))
        .where("piece < latest")
        .select("run", "seq")
    )


# --- commits ---------------------------------------------------------------------------


def sane_commits(
    runs: DataFrame, told: DataFrame, changes: DataFrame, brokers: DataFrame
) -> DataFrame:
    """Whether places were committed that nobody had reached, with a row a run.

    `brokers` has the groups that read from each. Of a group to which nothing was handed yet it
    is not known where it stood before the run; but the log did not end before that.
    """
    committed = _committed(changes.join(runs.select("run"), "run", "left_semi"))
    reached = told.where("kind IN ('consumed', 'offset reset') AND to IS NOT NULL").select(
        *CLAIM, "seq", sql.lit(0).alias("at"), sql.lit(None).cast("long").alias("offset"), "to"
    )
    known = _beside(committed, reached).where("offset IS NOT NULL")
    negative = known.where("offset < 0")
    beyond = known.where("most IS NOT NULL AND offset > greatest(most, 0)")
    unhanded = known.where("most IS NULL AND offset > 0")
    wrong = negative.unionByName(beyond).unionByName(_beyond_log(unhanded, told, brokers))
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
    """A number of any length, of which only the sign counts where no offset is so large."""
    too_long = sql.when(sql.col(name).startswith("-"), -1).otherwise(NEVER)
    return sql.coalesce(sql.col(name).try_cast("long"), too_long)


def _beside(committed: DataFrame, reached: DataFrame) -> DataFrame:
    """Both in one, each with the highest `to` until then: `most`."""
    until_now = (
        Window.partitionBy(*CLAIM)
        .orderBy("seq", "at")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return committed.unionByName(reached).withColumn("most", sql.max("to").over(until_now))


def _beyond_log(committed: DataFrame, told: DataFrame, brokers: DataFrame) -> DataFrame:
    """The commits behind the end of a log, as that was when they were made."""
    asked = committed.select(*CLAIM).distinct()
    ends = (
        told.where("kind IN ('stored', 'opened')")
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
