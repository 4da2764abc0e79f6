"""What was true from which event of a run to which, put together from its events.

A *span* begins at the event that made something true, and ends before the one that ended it;
both are numbers of events, `begins` and `ends`. So nothing depends on how many events share a
microsecond, and whether two things were true together is whether their spans overlap.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from pipeline.analysis.tables import Tables

NEVER = 2**62
"""The end of what goes on beyond the last event."""
BEFORE = -1
"""The beginning of what was so before the first."""

OWNERS = r"^/consumers/([^/]+)/owners/([^/]+)/([^/]+)$"
OFFSETS = r"^/consumers/([^/]+)/offsets/([^/]+)/([^/]+)$"
MEMBERS = r"^/consumers/([^/]+)/ids/([^/]+)$"
NUMBER = r"^-?[0-9]+$"

CLAIM = ["run", "group", "topic", "partition"]


class Facts(NamedTuple):
    """What much is computed from, computed once."""

    events: DataFrame
    sessions: DataFrame
    live: DataFrame
    fetches: DataFrame
    changes: DataFrame


def facts(events: DataFrame, tables: Tables) -> Facts:
    """The facts of some events."""
    known = tables.keep("sessions", sessions(events))
    bound = overlap(connections(events), known.drop("holder"), ["run", "session"])
    return Facts(
        events,
        known,
        tables.keep("live", bound),
        tables.keep("fetches", fetches(events)),
        tables.keep("changes", changes(events)),
    )


def told(name: str, kind: str = "string") -> Column:
    """What an event says under a name."""
    return sql.get_json_object("detail", f"$.{name}").cast(kind)


def until_next(*keys: str) -> Column:
    """The number of the next event with the same keys."""
    following = sql.lead("seq").over(Window.partitionBy(*keys).orderBy("seq"))
    return sql.coalesce(following.cast("long"), sql.lit(NEVER))


def overlap(one: DataFrame, other: DataFrame, on: list[str]) -> DataFrame:
    """Where spans of two tables overlap: the columns of both, and the span that is common."""
    right = other.withColumnsRenamed({"begins": "_begins", "ends": "_ends"})
    return (
        one.join(right, on)
        .withColumns(
            {
                "begins": sql.greatest("begins", "_begins"),
                "ends": sql.least("ends", "_ends"),
            }
        )
        .drop("_begins", "_ends")
        .where("begins < ends")
    )


def holding_at(moments: DataFrame, spans: DataFrame, on: list[str]) -> DataFrame:
    """Which spans hold at which moments: the columns of both; a moment is an event, `seq`."""
    return moments.join(spans, on).where("begins <= seq AND seq < ends").drop("begins", "ends")


# --- sessions and processes ------------------------------------------------------------


def sessions(events: DataFrame) -> DataFrame:
    """A row a session: whose it is, and when the ensemble held it to be alive."""
    opens = sql.col("kind") == "session opened"
    return (
        events.where(sql.col("kind").isin("session opened", "session expired", "session closed"))
        .groupBy("run", "session")
        .agg(
            sql.min(sql.when(opens, sql.col("seq"))).cast("long").alias("begins"),
            sql.max(sql.when(opens, told("by"))).alias("holder"),
            sql.min(sql.when(~opens, sql.col("seq"))).cast("long").alias("ends"),
        )
        .where(sql.col("begins").isNotNull())
        .withColumn("ends", sql.coalesce("ends", sql.lit(NEVER)))
    )


def connections(events: DataFrame) -> DataFrame:
    """A row a stretch in which a process goes by a session, whether or not that is alive."""
    return (
        events.where(sql.col("kind").isin("connected", "starts"))
        .select(
            "run",
            "node",
            sql.when(sql.col("kind") == "connected", sql.col("session"))
            .otherwise(0)
            .alias("session"),
            sql.col("seq").cast("long").alias("begins"),
            until_next("run", "node").alias("ends"),
        )
        .where("session <> 0")
    )


def pauses(events: DataFrame) -> DataFrame:
    """A row a stretch in which a process stands still."""
    is_pause = told("verb") == "pause"
    return (
        events.where(sql.col("kind").isin("fault", "fault ends", "starts", "ends"))
        .where(sql.col("kind").isin("starts", "ends") | is_pause)
        .select(
            "run",
            "node",
            "kind",
            sql.col("seq").cast("long").alias("begins"),
            until_next("run", "node").alias("ends"),
        )
        .where("kind = 'fault'")
        .drop("kind")
    )


# --- partitions ------------------------------------------------------------------------


def fetches(events: DataFrame) -> DataFrame:
    """A row a stretch in which a member fetches a partition."""
    return (
        events.where("kind = 'fetching'")
        .select(
            *CLAIM,
            "node",
            "session",
            told("does").alias("does"),
            told("stream", "int").alias("stream"),
            sql.col("seq").cast("long").alias("begins"),
            until_next(*CLAIM, "node").alias("ends"),
        )
        .where("does = 'begins'")
        .drop("does")
    )


def serving(events: DataFrame) -> DataFrame:
    """A row a stretch in which a broker serves a partition."""
    keys = ["run", "topic", "partition", "node"]
    return (
        events.where("kind = 'hosting'")
        .select(
            *keys,
            told("does").alias("does"),
            sql.col("seq").cast("long").alias("begins"),
            until_next(*keys).alias("ends"),
        )
        .where("does = 'begins'")
        .drop("does")
    )


# --- the registry ----------------------------------------------------------------------

_DID = StructType(
    [
        StructField("by", StringType()),
        StructField("did", ArrayType(ArrayType(StringType()))),
    ]
)


def changes(events: DataFrame) -> DataFrame:
    """A row a change of a znode: what was done to which, by whom, and whose it is."""
    return (
        events.where(sql.col("kind").isin("applied", "session expired", "session closed"))
        .withColumn("said", sql.from_json("detail", _DID))
        .select(
            *("run", "seq", "t_us", "kind", "node", "session", "zxid"),
            sql.col("said.by").alias("by"),
            sql.posexplode("said.did").alias("at", "change"),
        )
        .select(
            *("run", "seq", "at", "t_us", "kind", "node", "session", "zxid", "by"),
            sql.col("change")[0].alias("what"),
            sql.col("change")[1].alias("path"),
            sql.col("change")[2].cast("long").alias("owner"),
            sql.get(sql.col("change"), sql.lit(3)).alias("data"),
        )
    )


def partition_in(path_pattern: str) -> dict[str, Column]:
    """Group, topic and partition in a path of this form."""
    names = ("group", "topic", "partition")
    return {
        name: sql.regexp_extract("path", path_pattern, at) for at, name in enumerate(names, 1)
    }


def claims(written: DataFrame) -> DataFrame:
    """A row a stretch in which a claim stands, of what was changed in the registry."""
    following = sql.lead("seq").over(Window.partitionBy(*CLAIM).orderBy("seq", "at"))
    return (
        written.where(sql.col("path").rlike(OWNERS))
        .withColumns(partition_in(OWNERS))
        .select(
            *CLAIM,
            "what",
            "owner",
            sql.col("seq").cast("long").alias("begins"),
            sql.coalesce(following.cast("long"), sql.lit(NEVER)).alias("ends"),
        )
        .where("what <> 'deleted' AND begins < ends")
        .drop("what")
    )
