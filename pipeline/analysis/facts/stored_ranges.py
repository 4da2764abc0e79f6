"""The message ranges in a trace, and those that are in logs at the end."""

from __future__ import annotations

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, sql
from watchkeeper.pipeline.analysis.facts.intervals import detail_field

LOG = ["run", "cluster", "topic", "partition"]
"""The key of a log: partitions of two clusters may have the same name."""
_RANGES = "array<array<string>>"


def server_cluster(name: str = "node") -> Column:
    """The cluster of a server, from its name; empty if a run has only one."""
    return sql.regexp_extract(name, "^(.*):", 1)


def partition_told() -> Column:
    """The partition of an event; an event of a program names it in its detail."""
    return sql.when(sql.col("partition") != "", sql.col("partition")).otherwise(
        detail_field("partition")
    )


def ranges(events: DataFrame, kind: str) -> DataFrame:
    """The message ranges of events of a kind, one by one: `nth` of its event."""
    message_range = sql.col("message_range")
    numbers = {
        name: message_range[at].cast("long")
        for at, name in enumerate(("first", "end", "at", "to"), 1)
    }
    return (
        events.where(sql.col("kind") == kind)
        .withColumns({"partition": partition_told(), "cluster": server_cluster()})
        .select(
            *(*LOG, "group", "seq", "t_us"),
            sql.posexplode(sql.from_json(detail_field("ranges"), _RANGES)).alias(
                "nth", "message_range"
            ),
        )
        .withColumns(
            {
                "producer": message_range[0],
                **numbers,
                "one_entry": sql.coalesce(
                    sql.get(message_range, sql.lit(5)) == "true", sql.lit(False)
                ),
            }
        )
        .drop("message_range")
    )


def before(offset: Column) -> Column:
    """One past the number of the last message of a range that lies before an offset."""
    part = (offset - sql.col("at")) * (sql.col("end") - sql.col("first"))
    complete = sql.floor(part / (sql.col("to") - sql.col("at"))).cast("long")
    return (
        sql.when(offset >= sql.col("to"), sql.col("end"))
        .when((offset <= sql.col("at")) | sql.col("one_entry"), sql.col("first"))
        .otherwise(sql.col("first") + complete)
    )


def opened(events: DataFrame) -> DataFrame:
    """Where logs were found to end when they were opened again: `log_end`, at `opened`."""
    return (
        events.where(f"kind = '{EventKind.LOG_OPENED}'")
        .withColumns({"partition": partition_told(), "cluster": server_cluster()})
        .select(
            *LOG,
            sql.col("seq").alias("opened"),
            sql.col("t_us").alias("opened_us"),
            detail_field("end", "long").alias("log_end"),
        )
    )


def kept(events: DataFrame) -> DataFrame:
    """The ranges that are in logs at the end: a log that is opened without some has lost them."""
    keys = [*LOG, "producer", "seq", "nth", "first", "end", "at", "to", "one_entry"]
    stored = ranges(events, EventKind.STORED).select(*keys)
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
