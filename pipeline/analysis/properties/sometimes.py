"""What scenarios look for, and what they rule out, a second time."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from pipeline.analysis.owning import HOLDS, UNKNOWN, VIOLATED
from pipeline.analysis.spans import BEFORE, NEVER, told

SAID = "map<string,string>"
NAMED = ["run", "name"]


def happenings(events: DataFrame, wanted: DataFrame) -> DataFrame:
    """Every `sometimes` and `never`, with a row a run that has it."""
    first = _within(events, wanted).groupBy(*NAMED).agg(sql.min("seq").cast("long").alias("seq"))
    known = wanted.join(first, NAMED, "left")
    happened = sql.col("seq").isNotNull()
    verdict = (
        sql.when(
            sql.col("name").startswith("never: "), sql.when(happened, VIOLATED).otherwise(HOLDS)
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
    candidates = events.select(
        "run", "seq", sql.col("node").alias("at"), sql.col("kind").alias("event"), "detail"
    ).join(sql.broadcast(spans), ["run", "event"])
    said = candidates.withColumn("said", sql.from_json("detail", SAID)).where(
        "begins < seq AND seq < ends AND (node = '' OR node = at)"
    )
    as_wanted = sql.forall(
        sql.map_entries("wanted"),
        lambda one: sql.col("said")[one["key"]].eqNullSafe(one["value"]),
    )
    return said.where(as_wanted).select(*NAMED, "seq")


def _spans(events: DataFrame, wanted: DataFrame) -> DataFrame:
    """From which event to which each of them is looked for; none where it never is."""
    acts = events.where(sql.col("kind").isin("fault", "change", "load")).select(
        "run", "seq", told("verb").alias("verb")
    )
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
