"""The lag of groups behind the ends of logs, over time.

Theory of operation
A log is a line of offsets with message ranges on it; a group has a position on it. Its lag is
the number of messages that do not lie before that position. While a log only grows, the number
of messages before an offset is the smaller of two: the number there is by now, and the number
before it once the log is complete. So one pass over the offsets of a log, and one over the
events of a group, are enough.

A log that loses messages with its host becomes another log: what was left, and what came after.
Such an *age* starts when the log is opened again. A group keeps its position, and the number of
messages before it is computed again.

A lag that jumps up while nothing is stored shows messages that are read again.
"""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import DataFrame, Window, sql
from watchkeeper.pipeline.analysis.engine.engine import Schema
from watchkeeper.pipeline.analysis.facts.intervals import CLAIM, Facts, detail_field
from watchkeeper.pipeline.analysis.facts.stored_ranges import (
    LOG,
    before,
    opened,
    partition_told,
    ranges,
    server_cluster,
)
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import commits

HANDED_ON, COMMITTED = "handed on", "committed"
LAGS = Schema(
    {
        "run": "string",
        "group": "string",
        "topic": "string",
        "partition": "string",
        "behind": "string",
        "t_us": "long",
        "lag": "long",
    }
)
"""A row a moment from which on a group has a lag in a partition: `behind` its deliveries, or its
commits. It starts with the group's first position."""

FOREVER = 2**62
_AT_OPENING, _BEGINS, _POSITION = 0, 1, 2
"""The order of events at one offset: the end of what was left, the start of what follows, a
position."""


class Lagging(NamedTuple):
    """How far groups were behind."""

    steps: DataFrame
    """The rows of LAGS."""
    partitions: DataFrame
    """A row a partition of a group: the greatest lag, its first moment, and the last lag."""
    groups: DataFrame
    """A row a group: the same of all its partitions together."""


def lagging(facts: Facts, tables: Tables) -> Lagging:
    """The lags of all groups, where logs hold messages."""
    ages = tables.keep("ages", _ages(facts.events))
    places = tables.keep("places", _places(facts))
    walked = tables.keep("offsets", _walked(facts.events, ages, places))
    steps = tables.keep("lags", _steps(_moments(walked, places)))
    return Lagging(
        steps,
        tables.keep("lags_by_partition", _extremes(steps, [*CLAIM, "behind"])),
        _extremes(_together(steps), ["run", "group", "behind"]),
    )


# --- logs and places -------------------------------------------------------------------


def _ages(events: DataFrame) -> DataFrame:
    """A row an age of a log: its first and last event, and its first end.

    Opening a log that has lost nothing starts no age.
    """
    stored = ranges(events, EventKind.STORED)
    lost = stored.join(opened(events), LOG).where("opened > seq AND log_end < to")
    cuts = lost.select(*LOG, "opened", "opened_us", "log_end").distinct()
    first = stored.select(*LOG).distinct()
    begins = first.select(
        "*",
        sql.lit(-1).cast("int").alias("opened"),
        sql.lit(-1).cast("long").alias("opened_us"),
        sql.lit(0).cast("long").alias("log_end"),
    ).unionByName(cuts)
    order = Window.partitionBy(*LOG).orderBy("opened")
    return begins.withColumns(
        {
            "age": sql.row_number().over(order),
            "closed": sql.coalesce(sql.lead("opened").over(order).cast("long"), sql.lit(FOREVER)),
        }
    )


def _places(facts: Facts) -> DataFrame:
    """A row an event that sets a group's position, `at`, in a log."""
    consumed = Window.partitionBy("run", "seq").orderBy(sql.desc("nth"))
    handed = (
        ranges(facts.events, EventKind.CONSUMED)
        .withColumn("is_last", sql.row_number().over(consumed) == 1)
        .where("is_last")
        .select(*CLAIM, "seq", "t_us", sql.col("to").alias("at"))
    )
    resets = (
        facts.events.where(f"kind = '{EventKind.OFFSET_RESET}'")
        .withColumn("partition", partition_told())
        .select(*CLAIM, "seq", "t_us", detail_field("to", "long").alias("at"))
    )
    numbers = commits(facts.changes).withColumn("offset", sql.col("data").try_cast("long"))
    committed = numbers.where("offset IS NOT NULL").select(
        *CLAIM, "seq", "t_us", sql.col("offset").alias("at")
    )
    stands = handed.unionByName(resets).withColumn("behind", sql.lit(HANDED_ON))
    every = stands.unionByName(committed.withColumn("behind", sql.lit(COMMITTED)))
    return every.join(_clusters(facts.events), ["run", "group"], "left").na.fill("", ["cluster"])


def _clusters(events: DataFrame) -> DataFrame:
    """The cluster of each group: that of the servers its members connect to."""
    connected = events.where(f"kind = '{EventKind.CONNECTED}' AND group <> ''")
    return (
        connected.withColumn("at", detail_field("at"))
        .groupBy("run", "group")
        .agg(sql.max_by("at", "seq").alias("at"))
        .select("run", "group", server_cluster("at").alias("cluster"))
    )


# --- along the offsets -----------------------------------------------------------------


def _walked(events: DataFrame, ages: DataFrame, places: DataFrame) -> DataFrame:
    """Every age of every log in the order of its offsets: `count` messages so far.

    Stored messages, starts of ages, and positions of groups are rows of it.
    """
    rows = (
        _content(events, ages)
        .unionByName(_openings(ages), allowMissingColumns=True)
        .unionByName(_stands(ages, places), allowMissingColumns=True)
    )
    order = Window.partitionBy(*LOG, "age").orderBy("offset", "rank")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    message_range = sql.last(
        sql.when(sql.col("rank") == _BEGINS, sql.struct("first", "end", "at", "to", "one_entry")),
        ignorenulls=True,
    ).over(so_far)
    begun = sql.coalesce(sql.sum(sql.col("end") - sql.col("first")).over(so_far), sql.lit(0))
    counted = rows.withColumns(
        {"message_range": message_range, "messages_begun": begun}
    ).withColumns(
        {
            name: sql.col(f"message_range.{name}")
            for name in ("first", "end", "at", "to", "one_entry")
        }
    )
    beyond = sql.coalesce(sql.col("end") - before(sql.col("offset")), sql.lit(0))
    is_position = sql.col("rank") == _POSITION
    return counted.select(
        *(*LOG, "seq", "t_us", "rank", "group", "behind", "since"),
        sql.when(is_position, sql.col("messages_begun") - beyond)
        .otherwise(sql.col("messages_begun"))
        .alias("count"),
    ).where("seq IS NOT NULL")


def _content(events: DataFrame, ages: DataFrame) -> DataFrame:
    """The content of each age of a log: ranges stored in it, and what was left of others."""
    stored = ranges(events, EventKind.STORED).drop("group").join(ages, LOG)
    born = "opened < seq AND seq < closed"
    left = sql.min(sql.when(sql.col("opened") > sql.col("seq"), sql.col("log_end")))
    by_age = Window.partitionBy(*LOG, "seq", "nth").orderBy("age")
    trimmed = (
        stored.where("seq < closed")
        .withColumn("cut", sql.coalesce(left.over(by_age), sql.col("to")))
        .withColumn("was_born", sql.expr(born))
        .withColumns({"end": before(sql.col("cut")), "to": sql.least("to", "cut")})
        .where("first < end")
    )
    return trimmed.select(
        *(*LOG, "age", "first", "end", "at", "to", "one_entry"),
        sql.col("at").alias("offset"),
        sql.lit(_BEGINS).alias("rank"),
        sql.when(sql.col("was_born"), sql.col("seq")).alias("seq"),
        "t_us",
    )


def _openings(ages: DataFrame) -> DataFrame:
    """Where the first end of an age is, among the offsets of that age."""
    return ages.where("opened >= 0").select(
        *(*LOG, "age"),
        sql.col("log_end").alias("offset"),
        sql.lit(_AT_OPENING).alias("rank"),
        sql.col("opened").alias("seq"),
        sql.col("opened_us").alias("t_us"),
    )


def _stands(ages: DataFrame, places: DataFrame) -> DataFrame:
    """The positions of groups, in the age of their event and in all later ones.

    A lag is computed when a position is set, or when a later age starts; `since` is the former.
    """
    known = places.join(ages, LOG).where("seq < closed")
    is_later = sql.col("opened") > sql.col("seq")
    return known.select(
        *(*LOG, "age", "group", "behind"),
        sql.col("at").alias("offset"),
        sql.lit(_POSITION).alias("rank"),
        sql.col("seq").alias("since"),
        sql.when(is_later, sql.col("opened")).otherwise(sql.col("seq")).alias("seq"),
        sql.when(is_later, sql.col("opened_us")).otherwise(sql.col("t_us")).alias("t_us"),
    )


# --- along the time --------------------------------------------------------------------


def _moments(walked: DataFrame, places: DataFrame) -> DataFrame:
    """Every event that may change a lag, for every group that it concerns."""
    reads = places.select(*LOG, "group", "behind").distinct()
    grown = walked.where(sql.col("rank") != _POSITION).drop("group", "behind")
    of_logs = grown.join(reads, LOG).withColumn("size", sql.col("count"))
    of_groups = walked.where(sql.col("rank") == _POSITION).withColumn("passed", sql.col("count"))
    unstored = places.join(walked.select(*LOG).distinct(), LOG, "left_anti").select(
        *(*LOG, "group", "behind", "seq", "t_us"), sql.lit(0).cast("long").alias("passed")
    )
    return (
        of_logs.unionByName(of_groups, allowMissingColumns=True)
        .unionByName(unstored, allowMissingColumns=True)
        .drop("count")
    )


def _steps(moments: DataFrame) -> DataFrame:
    """The lags, where they change; of several at one moment the last counts."""
    keys = [*CLAIM, "behind"]
    order = Window.partitionBy(*keys).orderBy("seq", "rank", "since", "size")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    known = {name: sql.last(name, ignorenulls=True).over(so_far) for name in ("size", "passed")}
    lag = sql.greatest(sql.coalesce("size", sql.lit(0)) - sql.col("passed"), sql.lit(0))
    timed = (
        moments.withColumn("next_us", sql.lead("t_us").over(order))
        .withColumns(known)
        .where("passed IS NOT NULL AND (next_us IS NULL OR next_us > t_us)")
        .withColumn("lag", lag.cast("long"))
    )
    was = sql.lag("lag").over(Window.partitionBy(*keys).orderBy("t_us"))
    return timed.withColumn("was", was).where("was IS NULL OR was <> lag").select(*LAGS.names)


def _together(steps: DataFrame) -> DataFrame:
    """The lags of all partitions of a group, added up."""
    was = sql.lag("lag", 1, 0).over(Window.partitionBy(*CLAIM, "behind").orderBy("t_us"))
    at = Window.partitionBy("run", "group", "behind").orderBy("t_us")
    return (
        steps.withColumn("more", sql.col("lag") - was)
        .groupBy("run", "group", "behind", "t_us")
        .agg(sql.sum("more").alias("more"))
        .withColumn("lag", sql.sum("more").over(at))
    )


def _extremes(steps: DataFrame, keys: list[str]) -> DataFrame:
    """The greatest lag, its first moment, and the last lag."""
    greatest = sql.max(sql.struct("lag", (-sql.col("t_us")).alias("before")))
    return (
        steps.groupBy(*keys)
        .agg(greatest.alias("top"), sql.max_by("lag", "t_us").alias("last_lag"))
        .select(
            *keys,
            sql.col("top.lag").alias("most_lag"),
            (-sql.col("top.before")).alias("most_lag_at_us"),
            "last_lag",
        )
    )
