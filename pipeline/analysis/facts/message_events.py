"""The events about messages: one table, from which everything about messages is computed.

Few of the events of a run are about messages, and their data is JSON. So it is decoded once,
and only for runs whose logs hold messages.
"""

from __future__ import annotations

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql

KINDS = (
    EventKind.SENT,
    EventKind.STORED,
    EventKind.LOG_OPENED,
    EventKind.CONSUMED,
    EventKind.OFFSET_RESET,
    EventKind.FETCHING,
    EventKind.HOSTING,
)
RANGE = ["seq", "pos"]
"""The key of a message range within its run: the event, and its position there."""

_FIELDS = (
    "struct<partition: string, producer: string, first: long, end: long, outcome: string, "
    "does: string, stream: long, at: long, to: long, ranges: array<array<string>>>"
)
"""The fields of these kinds of events; each has some of them."""


def message_events_of(events: DataFrame, storing: DataFrame) -> DataFrame:
    """A row an event about messages, of the runs in `storing`, whose logs hold any.

    `ranges` are the ranges of messages, by producer from number to number; `to` is the offset
    behind them, or the one that the event names; `begun_at` where fetching starts.
    """
    message_events = (
        events.where(sql.col("kind").isin(*KINDS))
        .join(sql.broadcast(storing.select("run")), "run", "left_semi")
        .withColumn("fields", sql.from_json("detail", _FIELDS))
    )
    of_program = sql.when(sql.col("partition") != "", sql.col("partition"))
    return message_events.select(
        *("run", sql.col("seq").cast("long").alias("seq"), "t_us", "node", "kind"),
        *("group", "topic"),
        sql.coalesce(of_program, "fields.partition").alias("partition"),
        *("fields.outcome", "fields.does", "fields.stream"),
        sql.col("fields.at").alias("begun_at"),
        _to().alias("to"),
        _ranges().alias("ranges"),
    )


def _to() -> Column:
    behind = sql.array_max(
        sql.transform("fields.ranges", lambda message_range: message_range[4].cast("long"))
    )
    is_opened = sql.col("kind") == EventKind.LOG_OPENED
    return sql.when(is_opened, sql.col("fields.end")).otherwise(sql.coalesce("fields.to", behind))


def _ranges() -> Column:
    """One range of messages, or several, in one form."""
    alone = sql.struct("fields.producer", "fields.first", "fields.end")
    several = sql.transform(
        "fields.ranges",
        lambda message_range: sql.struct(
            message_range[0].alias("producer"),
            message_range[1].cast("long").alias("first"),
            message_range[2].cast("long").alias("end"),
        ),
    )
    return sql.when(sql.col("kind") == EventKind.SENT, sql.array(alone)).otherwise(several)


def ranges_of(message_events: DataFrame) -> DataFrame:
    """A row a message range: consecutive messages of one producer."""
    columns = [name for name in message_events.columns if name != "ranges"]
    return (
        message_events.select(*columns, sql.posexplode("ranges").alias("pos", "message_range"))
        .select(*columns, "pos", "message_range.*")
        .where("first < end")
    )


def pieces(ranges: DataFrame, line: list[str], *marks: str) -> DataFrame:
    """A row a range and each cut of it, by the number of the cut in its line.

    Ranges have `first` and `end`, and a line is cut where one of them starts or ends. A fact
    about a cut is true of each message in it, so messages are never enumerated. `marks` are other
    numbers at which a line is cut: each becomes the number of the cut behind it.
    """
    numbers = ("first", "end", *marks)
    carried = [name for name in ranges.columns if name not in numbers]
    points = sql.array(
        *(
            sql.struct(sql.lit(name).alias("name"), sql.col(name).alias("number"))
            for name in numbers
        )
    )
    place = sql.dense_rank().over(Window.partitionBy(*line).orderBy("number"))
    placed = (
        ranges.select(*carried, sql.explode(points).alias("point"))
        .select(*carried, "point.*")
        .where("number IS NOT NULL")
        .withColumn("place", place)
    )
    return (
        placed.groupBy(*carried)
        .agg(
            *(
                sql.max(sql.when(sql.col("name") == key, sql.col("place"))).alias(key)
                for key in numbers
            )
        )
        .withColumn("piece", sql.explode(sql.sequence("first", sql.col("end") - 1)))
        .drop("first", "end")
    )
