"""What became of every message, a second time: how many were lost, how many handed on twice.

The messages of a producer are numbered, and whatever is told of them is told of ranges of
numbers. So each is laid on a line: what was accepted, what lies in logs, what the applications
of a group are done with, what lies before the place it has reached, and what behind. Where
these begin and end the line is cut, and each piece counts with its length.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from model.delivered import DELIVERY
from pipeline.analysis.owning import HOLDS, UNKNOWN, VIOLATED, commits
from pipeline.analysis.spans import CLAIM, Facts, told

PLACE = ["run", "topic", "partition"]
LINE = ["run", "group", "topic", "producer"]
LAYERS = ("accepted", "refused", "stored", "consumed", "past", "later")
_LOTS = "array<array<string>>"


def accounts(facts: Facts, promises: DataFrame) -> DataFrame:
    """A row a group to which something is promised, with what became of the messages."""
    events = facts.events
    wanted = promises.select("run", "group", "topic")
    lots = _kept(events)
    handed = _lots(events, "handled").join(wanted, ["run", "group", "topic"], "left_semi")
    parted = _parted(lots, wanted, _places(facts, handed))
    sent = _sent(events).join(wanted, ["run", "topic"])
    stored = lots.join(wanted, ["run", "topic"]).withColumn("layer", sql.lit("stored"))
    consumed = handed.withColumn("layer", sql.lit("consumed"))
    columns = (*LINE, "layer", "first", "end")
    ranges = sent.select(*columns)
    for one in (stored, consumed, *parted):
        ranges = ranges.unionByName(one.select(*columns))
    limits = promises.groupBy("run", "group").agg(
        *(sql.max(name).alias(name) for name in ("most_lost", "most_repeated", "most_refused"))
    )
    counted = _counted(ranges)
    return limits.join(counted, ["run", "group"], "left").na.fill(0)


def delivery(found: DataFrame) -> DataFrame:
    """Whether what became of the messages is what was promised, with a row a group."""
    nothing = sql.col("accepted") + sql.col("consumed") + sql.col("refused") == 0
    exceeded = [
        (sql.col(f"most_{limit}") >= 0) & (sql.col(counted) > sql.col(f"most_{limit}"))
        for limit, counted in (("lost", "lost"), ("repeated", "repeated"), ("refused", "refused"))
    ]
    verdict = (
        sql.when(nothing, UNKNOWN)
        .when(exceeded[0] | exceeded[1] | exceeded[2], VIOLATED)
        .otherwise(HOLDS)
    )
    return found.select(
        "run",
        sql.concat(sql.lit(f"{DELIVERY.name} to "), "group").alias("property"),
        verdict.alias("verdict"),
        sql.lit(None).cast("long").alias("seq"),
    )


# --- what is told ----------------------------------------------------------------------


def _sent(events: DataFrame) -> DataFrame:
    return (
        events.where("kind = 'sent'")
        .select(
            *("run", "topic"),
            told("producer").alias("producer"),
            told("outcome").alias("layer"),
            told("first", "long").alias("first"),
            told("end", "long").alias("end"),
        )
        .where(sql.col("layer").isin("accepted", "refused"))
    )


def _partition() -> Column:
    """The partition an event is about; where a program tells of it, the detail names it."""
    return sql.when(sql.col("partition") != "", sql.col("partition")).otherwise(told("partition"))


def _lots(events: DataFrame, kind: str) -> DataFrame:
    """The lots of messages that events of a kind are about, one by one."""
    lot = sql.col("lot")
    numbers = {
        name: lot[at].cast("long") for at, name in enumerate(("first", "end", "at", "to"), 1)
    }
    return (
        events.where(sql.col("kind") == kind)
        .withColumn("partition", _partition())
        .select(
            *("run", "group", "topic", "partition", "seq"),
            sql.explode(sql.from_json(told("lots"), _LOTS)).alias("lot"),
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


def _before(offset: Column) -> Column:
    """One past the number of the last message of a lot that lies before an offset."""
    part = (offset - sql.col("at")) * (sql.col("end") - sql.col("first"))
    whole = sql.floor(part / (sql.col("to") - sql.col("at"))).cast("long")
    return (
        sql.when(offset >= sql.col("to"), sql.col("end"))
        .when((offset <= sql.col("at")) | sql.col("one_entry"), sql.col("first"))
        .otherwise(sql.col("first") + whole)
    )


def _kept(events: DataFrame) -> DataFrame:
    """The lots that lie in logs in the end: what a log was opened without is in it no more."""
    opened = (
        events.where("kind = 'opened'")
        .withColumn("partition", _partition())
        .select(*PLACE, sql.col("seq").alias("opened"), told("end", "long").alias("log_end"))
    )
    keys = [*PLACE, "producer", "seq", "first", "end", "at", "to", "one_entry"]
    stored = _lots(events, "stored").select(*keys)
    cut = (
        stored.join(opened, PLACE)
        .where("opened > seq")
        .groupBy(*keys)
        .agg(sql.min("log_end").alias("cut"))
    )
    known = stored.join(cut, keys, "left").withColumn("cut", sql.coalesce("cut", "to"))
    return (
        known.withColumns({"end": _before(sql.col("cut")), "to": sql.least("to", "cut")})
        .where("first < end")
        .drop("cut", "seq")
    )


def _places(facts: Facts, handed: DataFrame) -> DataFrame:
    """How each group stands in each partition: where it began, and how far it has come."""
    deeds = handed.select(*CLAIM, "seq", sql.lit("consumed").alias("deed"), "to")
    committed = commits(facts.changes).select(
        *CLAIM,
        "seq",
        sql.lit("committed").alias("deed"),
        sql.greatest(sql.coalesce(sql.col("data").cast("long"), sql.lit(0)), sql.lit(0)).alias(
            "to"
        ),
    )
    resets = (
        facts.events.where("kind = 'offset reset'")
        .withColumn("partition", _partition())
        .select(*CLAIM, "seq", sql.lit("reset").alias("deed"), told("to", "long").alias("to"))
    )
    order = Window.partitionBy(*CLAIM).orderBy("seq")
    is_first = sql.row_number().over(order) == 1
    every = deeds.unionByName(committed).unionByName(resets).withColumn("is_first", is_first)
    counts = every.where("is_first OR deed <> 'reset'")
    begun = sql.max(sql.when(sql.col("deed") == "reset", sql.col("to")))
    return counts.groupBy(*CLAIM).agg(
        sql.coalesce(begun, sql.lit(0)).alias("begun_at"), sql.max("to").alias("reached_to")
    )


def _parted(lots: DataFrame, wanted: DataFrame, places: DataFrame) -> list[DataFrame]:
    """What lies before the place that a group has reached, and what behind, by partition."""
    standing = (
        lots.join(wanted, ["run", "topic"])
        .join(places, CLAIM, "left")
        .na.fill(0, ["begun_at", "reached_to"])
        .withColumn("due", _before(sql.col("begun_at")))
        .withColumn("reached", sql.greatest("due", _before(sql.col("reached_to"))))
    )
    past = standing.select(
        *LINE, "partition", sql.col("due").alias("first"), sql.col("reached").alias("end")
    )
    later = standing.select(
        *LINE,
        sql.lit("later").alias("layer"),
        sql.col("reached").alias("first"),
        "end",
    )
    once = _merged(past.where("first < end")).withColumn("layer", sql.lit("past"))
    return [once, later.where("first < end")]


def _merged(ranges: DataFrame) -> DataFrame:
    """Ranges of one partition that overlap or touch, as one: each message counts once there."""
    keys = [*LINE, "partition"]
    order = Window.partitionBy(*keys).orderBy("first", "end")
    reached = sql.max("end").over(order.rowsBetween(Window.unboundedPreceding, -1))
    anew = sql.coalesce((sql.col("first") > reached).cast("int"), sql.lit(1))
    return (
        ranges.withColumn("anew", anew)
        .withColumn("number", sql.sum("anew").over(order))
        .groupBy(*keys, "number")
        .agg(sql.min("first").alias("first"), sql.max("end").alias("end"))
        .drop("number")
    )


# --- on the line -----------------------------------------------------------------------


def _counted(ranges: DataFrame) -> DataFrame:
    """How many messages of a group were accepted, consumed, lost, repeated, refused, unread."""
    ends = sql.array(
        sql.struct(sql.col("first").alias("at"), sql.lit(1).alias("step")),
        sql.struct(sql.col("end").alias("at"), sql.lit(-1).alias("step")),
    )
    cuts = ranges.select(*LINE, "layer", sql.explode(ends).alias("cut")).select(
        *LINE, "layer", "cut.*"
    )
    steps = [
        sql.sum(sql.when(sql.col("layer") == layer, sql.col("step")).otherwise(0)).alias(layer)
        for layer in LAYERS
    ]
    order = Window.partitionBy(*LINE).orderBy("at")
    pieces = (
        cuts.groupBy(*LINE, "at")
        .agg(*steps)
        .withColumns({layer: sql.sum(layer).over(order) for layer in LAYERS})
        .withColumn("size", sql.lead("at").over(order) - sql.col("at"))
    )
    has = {layer: sql.col(layer) > 0 for layer in LAYERS}
    lost = sql.when(has["accepted"] & ~has["stored"] & ~has["consumed"], 1).otherwise(0)
    passed = sql.when(~has["consumed"] & ~has["later"], sql.col("past")).otherwise(0)
    numbers = {
        "accepted": has["accepted"].cast("long"),
        "consumed": has["consumed"].cast("long"),
        "refused": (has["refused"] & ~has["accepted"]).cast("long"),
        "lost": lost + passed,
        "repeated": sql.greatest(sql.col("consumed") - 1, sql.lit(0)),
        "unread": (has["later"] & ~has["consumed"]).cast("long"),
    }
    return pieces.groupBy("run", "group").agg(
        *(
            sql.coalesce(sql.sum(one * sql.col("size")), sql.lit(0)).alias(name)
            for name, one in numbers.items()
        )
    )
