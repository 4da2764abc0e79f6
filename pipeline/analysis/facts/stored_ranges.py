"""Lots of messages that a trace tells of, and what of them lies in logs."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pipeline.analysis.spans import told

LOG = ["run", "cluster", "topic", "partition"]
"""What tells logs apart: partitions of two clusters may have the same name."""
_LOTS = "array<array<string>>"


def server_cluster(name: str = "node") -> Column:
    """The cluster of a server, from the name of that; empty where a run has but one."""
    return sql.regexp_extract(name, "^(.*):", 1)


def partition_told() -> Column:
    """The partition an event is about; where a program tells of it, the detail names it."""
    return sql.when(sql.col("partition") != "", sql.col("partition")).otherwise(told("partition"))


def lots(events: DataFrame, kind: str) -> DataFrame:
    """The lots of messages that events of a kind are about, one by one: `nth` of its event."""
    lot = sql.col("lot")
    numbers = {
        name: lot[at].cast("long") for at, name in enumerate(("first", "end", "at", "to"), 1)
    }
    return (
        events.where(sql.col("kind") == kind)
        .withColumns({"partition": partition_told(), "cluster": server_cluster()})
        .select(
            *(*LOG, "group", "seq", "t_us"),
            sql.posexplode(sql.from_json(told("lots"), _LOTS)).alias("nth", "lot"),
        )
        .withColumns(
            {
                "producer": lot[0],
                **numbers,
                "one_entry": sql.coalesce(sql.get(lot, sql.lit(5)) == "true", sql.lit(False)),
            }
        )
        .drop("lot")
    )


def before(offset: Column) -> Column:
    """One past the number of the last message of a lot that lies before an offset."""
    part = (offset - sql.col("at")) * (sql.col("end") - sql.col("first"))
    whole = sql.floor(part / (sql.col("to") - sql.col("at"))).cast("long")
    return (
        sql.when(offset >= sql.col("to"), sql.col("end"))
        .when((offset <= sql.col("at")) | sql.col("one_entry"), sql.col("first"))
        .otherwise(sql.col("first") + whole)
    )


def opened(events: DataFrame) -> DataFrame:
    """Where logs were found to end when they were opened again: `log_end`, at `opened`."""
    return (
        events.where("kind = 'opened'")
        .withColumns({"partition": partition_told(), "cluster": server_cluster()})
        .select(
            *LOG,
            sql.col("seq").alias("opened"),
            sql.col("t_us").alias("opened_us"),
            told("end", "long").alias("log_end"),
        )
    )


def kept(events: DataFrame) -> DataFrame:
    """The lots that lie in logs in the end: what a log was opened without is in it no more."""
    keys = [*LOG, "producer", "seq", "nth", "first", "end", "at", "to", "one_entry"]
    stored = lots(events, "stored").select(*keys)
    cut = (
        stored.join(opened(events), LOG)
        .where("opened > seq AND log_end < to")
        .groupBy(*keys)
        .agg(sql.min("log_end").alias("cut"))
    )
    known = stored.join(cut, keys, "left").withColumn("cut", sql.coalesce("cut", "to"))
    return (
        known.withColumns({"end": before(sql.col("cut")), "to": sql.least("to", "cut")})
        .where("first < end")
        .drop("cut", "seq", "nth")
    )
