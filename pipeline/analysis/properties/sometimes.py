"""The `sometimes` and `never` clauses of scenarios, a second time."""

from __future__ import annotations

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import DataFrame, sql
from watchkeeper.pipeline.analysis.facts.intervals import BEFORE, NEVER, detail_field
from watchkeeper.pipeline.analysis.properties.ownership import HOLDS, UNKNOWN, VIOLATED

SAID = "map<string,string>"
NAMED = ["run", "name"]


def observed_events(events: DataFrame, wanted: DataFrame) -> DataFrame:
    """Every `sometimes` and `never`, with a row a run that has it."""
    first = _within(events, wanted).groupBy(*NAMED).agg(sql.min("seq").cast("long").alias("seq"))
    known = wanted.join(first, NAMED, "left").join(_comparable(events, wanted), NAMED, "left")
    happened = sql.col("seq").isNotNull()
    is_vacuous = ~sql.coalesce("has_fields", sql.expr("true"))
    verdict = (
        sql.when(
            sql.col("name").startswith("never: "),
            sql.when(happened, VIOLATED).when(is_vacuous, UNKNOWN).otherwise(HOLDS),
        )
        .when(happened, HOLDS)
        .otherwise(UNKNOWN)
    )
    return known.select(
        "run",
        sql.col("name").alias("property"),
        verdict.alias("verdict"),
        sql.when(sql.col("name").startswith("never: "), sql.col("seq")).alias("seq"),
    )


def _within(events: DataFrame, wanted: DataFrame) -> DataFrame:
    """The events that are meant, between those after and before which they are looked for."""
    spans = _spans(events, wanted)
    matching = (
        _of_their_kind(events, spans)
        .where("begins < seq AND seq < ends AND (node = '' OR node = at)")
        .where("partition = '' OR partition = place")
        .withColumn("fields", sql.from_json("said", SAID))
    )
    as_wanted = sql.forall(
        sql.map_entries("wanted"),
        lambda condition: sql.col("fields")[condition["key"]].eqNullSafe(condition["value"]),
    )
    return matching.where(as_wanted).select(*NAMED, "seq")


def _of_their_kind(events: DataFrame, clauses: DataFrame) -> DataFrame:
    """The events of the kinds of some clauses, each with the clause; `said` is the detail."""
    columns = events.select(
        "run",
        "seq",
        sql.col("node").alias("at"),
        sql.concat_ws("/", "topic", "partition").alias("place"),
        sql.col("kind").alias("event"),
        sql.col("detail").alias("said"),
    )
    return columns.join(sql.broadcast(clauses), ["run", "event"])


def _comparable(events: DataFrame, wanted: DataFrame) -> DataFrame:
    """Whether some event of the kind of a clause has every field that the clause compares."""
    fields = sql.from_json("said", SAID)
    has_fields = sql.forall(sql.map_keys("detail"), lambda key: sql.map_contains_key(fields, key))
    of_kind = _of_their_kind(events, wanted.where(sql.size(sql.map_keys("detail")) > 0))
    return of_kind.groupBy(*NAMED).agg(sql.max(has_fields).alias("has_fields"))


def _spans(events: DataFrame, wanted: DataFrame) -> DataFrame:
    """The events between which each clause applies; no row if it never does."""
    acts = events.where(
        sql.col("kind").isin(EventKind.FAULT, EventKind.CHANGE, EventKind.LOAD)
    ).select("run", "seq", detail_field("verb").alias("verb"))
    begun = (
        wanted.join(acts.withColumnRenamed("verb", "after"), ["run", "after"])
        .groupBy(*NAMED)
        .agg(sql.min("seq").cast("long").alias("after_seq"))
    )
    begins = sql.when(sql.col("after") == "", sql.lit(BEFORE)).otherwise(sql.col("after_seq"))
    opened = (
        wanted.withColumnRenamed("detail", "wanted")
        .join(begun, NAMED, "left")
        .withColumn("begins", begins.cast("long"))
        .where("begins IS NOT NULL")
    )
    ended = (
        opened.join(acts.withColumnRenamed("verb", "before"), ["run", "before"])
        .where("seq > begins")
        .groupBy(*NAMED)
        .agg(sql.min("seq").cast("long").alias("before_seq"))
    )
    return opened.join(ended, NAMED, "left").withColumn(
        "ends", sql.coalesce("before_seq", sql.lit(NEVER))
    )
