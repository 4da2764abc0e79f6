"""Intervals of a run in which a fact is true, joined from its events.

An interval starts at the event that made a fact true, and ends before the one that ended it;
both are numbers of events, `begins` and `ends`. So nothing depends on how many events share a
microsecond, and two facts are true together if their intervals overlap.
"""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.tables import Tables

NEVER = 2**62
"""The end of an interval that lasts beyond the last event."""
BEFORE = -1
"""The start of an interval that is older than the first event."""

OWNERS = r"^/consumers/([^/]+)/owners/([^/]+)/([^/]+)$"
OFFSETS = r"^/consumers/([^/]+)/offsets/([^/]+)/([^/]+)$"
MEMBERS = r"^/consumers/([^/]+)/ids/([^/]+)$"
NUMBER = r"^-?[0-9]+$"

CLAIM = ["run", "group", "topic", "partition"]


class Facts(NamedTuple):
    """The tables that many steps need, computed once."""

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


def detail_field(name: str, kind: str = "string") -> Column:
    """A field of an event's detail."""
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
    """A row a session: its owner, and the interval in which it was alive."""
    opens = sql.col("kind") == EventKind.SESSION_OPENED
    return (
        events.where(
            sql.col("kind").isin(
                EventKind.SESSION_OPENED, EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED
            )
        )
        .groupBy("run", "session")
        .agg(
            sql.min(sql.when(opens, sql.col("seq"))).cast("long").alias("begins"),
            sql.max(sql.when(opens, detail_field("by"))).alias("holder"),
            sql.min(sql.when(~opens, sql.col("seq"))).cast("long").alias("ends"),
        )
        .where(sql.col("begins").isNotNull())
        .withColumn("ends", sql.coalesce("ends", sql.lit(NEVER)))
    )


def connections(events: DataFrame) -> DataFrame:
    """A row an interval in which a process uses a session, alive or not."""
    return (
        events.where(sql.col("kind").isin(EventKind.CONNECTED, EventKind.STARTED))
        .select(
            "run",
            "node",
            sql.when(sql.col("kind") == EventKind.CONNECTED, sql.col("session"))
            .otherwise(0)
            .alias("session"),
            sql.col("seq").cast("long").alias("begins"),
            until_next("run", "node").alias("ends"),
        )
        .where("session <> 0")
    )


def struck(events: DataFrame) -> DataFrame:
    """The events, with a row for each member of the process that a fault strikes."""
    is_fault = sql.col("kind").isin(EventKind.FAULT, EventKind.FAULT_ENDED)
    members = sql.when(is_fault, sql.from_json(detail_field("members"), "array<string>"))
    return events.withColumn("node", sql.explode(sql.coalesce(members, sql.array("node"))))


def pauses(events: DataFrame) -> DataFrame:
    """A row an interval in which a process is paused."""
    is_pause = detail_field("verb") == "pause"
    return (
        struck(events)
        .where(
            sql.col("kind").isin(
                EventKind.FAULT, EventKind.FAULT_ENDED, EventKind.STARTED, EventKind.ENDED
            )
        )
        .where(sql.col("kind").isin(EventKind.STARTED, EventKind.ENDED) | is_pause)
        .select(
            "run",
            "node",
            "kind",
            sql.col("seq").cast("long").alias("begins"),
            until_next("run", "node").alias("ends"),
        )
        .where(f"kind = '{EventKind.FAULT}'")
        .drop("kind")
    )


# --- partitions ------------------------------------------------------------------------


def fetches(events: DataFrame) -> DataFrame:
    """A row an interval in which a member fetches a partition."""
    return (
        events.where(f"kind = '{EventKind.FETCHING}'")
        .select(
            *CLAIM,
            "node",
            "session",
            detail_field("does").alias("does"),
            detail_field("stream", "int").alias("stream"),
            sql.col("seq").cast("long").alias("begins"),
            until_next(*CLAIM, "node").alias("ends"),
        )
        .where("does = 'begins'")
        .drop("does")
    )


def serving(events: DataFrame) -> DataFrame:
    """A row an interval in which a broker serves a partition."""
    keys = ["run", "topic", "partition", "node"]
    return (
        events.where(f"kind = '{EventKind.HOSTING}'")
        .select(
            *keys,
            detail_field("does").alias("does"),
            sql.col("seq").cast("long").alias("begins"),
            until_next(*keys).alias("ends"),
        )
        .where("does = 'begins'")
        .drop("does")
    )


# --- the registry ----------------------------------------------------------------------

_FIELDS = "struct<by: string, did: array<array<string>>>"


def changes(events: DataFrame) -> DataFrame:
    """A row a change of a znode: kind, path, author, and the session it belongs to."""
    return (
        events.where(
            sql.col("kind").isin(
                EventKind.APPLIED, EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED
            )
        )
        .withColumn("fields", sql.from_json("detail", _FIELDS))
        .select(
            *("run", "seq", "t_us", "kind", "node", "session", "zxid"),
            sql.col("fields.by").alias("by"),
            sql.posexplode("fields.did").alias("at", "change"),
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
    """A row an interval in which a claim exists, from the changes of the registry."""
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
