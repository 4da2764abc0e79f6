"""What runs tell of their messages: one table, from which all that concerns them is computed.

Few of the events of a run are about messages, and what they say stands in JSON. So it is read
once, and only of runs whose logs hold messages.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    LongType,
    StringType,
    StructField,
    StructType,
)

KINDS = ("sent", "stored", "opened", "consumed", "offset reset", "fetching", "hosting")
LOT = ["seq", "pos"]
"""What tells a lot from any other of its run: the event, and its place there."""

_SAID = StructType(
    [
        StructField("partition", StringType()),
        StructField("producer", StringType()),
        StructField("first", LongType()),
        StructField("end", LongType()),
        StructField("outcome", StringType()),
        StructField("does", StringType()),
        StructField("stream", LongType()),
        StructField("at", LongType()),
        StructField("to", LongType()),
        StructField("lots", ArrayType(ArrayType(StringType()))),
    ]
)
"""What events of these kinds say, each some of it."""


def told_of_messages(events: DataFrame, storing: DataFrame) -> DataFrame:
    """A row an event that is about messages, of the runs whose logs hold any: `storing`.

    `lots` are the messages it is about, by producer from number to number; `to` is the offset
    behind them, or the one that it names; `begun_at` where fetching begins.
    """
    told = (
        events.where(sql.col("kind").isin(*KINDS))
        .join(sql.broadcast(storing.select("run")), "run", "left_semi")
        .withColumn("said", sql.from_json("detail", _SAID))
    )
    of_program = sql.when(sql.col("partition") != "", sql.col("partition"))
    return told.select(
        *("run", sql.col("seq").cast("long").alias("seq"), "t_us", "node", "kind"),
        *("group", "topic"),
        sql.coalesce(of_program, "said.partition").alias("partition"),
        *("said.outcome", "said.does", "said.stream"),
        sql.col("said.at").alias("begun_at"),
        _to().alias("to"),
        _lots().alias("lots"),
    )


def _to() -> Column:
    behind = sql.array_max(sql.transform("said.lots", lambda lot: lot[4].cast("long")))
    is_opened = sql.col("kind") == "opened"
    return sql.when(is_opened, sql.col("said.end")).otherwise(sql.coalesce("said.to", behind))


def _lots() -> Column:
    """What is told of one range of messages, and what is told of several, in one form."""
    alone = sql.struct("said.producer", "said.first", "said.end")
    several = sql.transform(
        "said.lots",
        lambda lot: sql.struct(
            lot[0].alias("producer"),
            lot[1].cast("long").alias("first"),
            lot[2].cast("long").alias("end"),
        ),
    )
    return sql.when(sql.col("kind") == "sent", sql.array(alone)).otherwise(several)


def lots_of(told: DataFrame) -> DataFrame:
    """A row a lot: what an event says of some messages that a producer numbered in one go."""
    columns = [name for name in told.columns if name != "lots"]
    return (
        told.select(*columns, sql.posexplode("lots").alias("pos", "lot"))
        .select(*columns, "pos", "lot.*")
        .where("first < end")
    )


def pieces(ranges: DataFrame, line: list[str], *marks: str) -> DataFrame:
    """A row a range and each piece of it, by the number of the piece in its line.

    Ranges have `first` and `end`, and a line is cut where one of them begins or ends. What is
    told of a piece is true of each message in it, so messages are never counted out. `marks`
    are other numbers at which a line is cut: each becomes the number of the piece behind it.
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
                sql.max(sql.when(sql.col("name") == one, sql.col("place"))).alias(one)
                for one in numbers
            )
        )
        .withColumn("piece", sql.explode(sql.sequence("first", sql.col("end") - 1)))
        .drop("first", "end")
    )
