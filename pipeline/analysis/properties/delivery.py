"""Delivery, a second time: how many messages were lost, and how many handed on twice.

The messages of a producer are numbered, and every fact about them is about ranges of numbers.
So each range is placed on a line: accepted messages, messages in logs, messages handled by a
group, messages before its position, and behind it. The line is cut where these start and end,
and each cut counts with its length.

A message keeps its producer and number when it is mirrored, so the line of a group on the target
of a mirror has what producers sent to the sources; messages not yet mirrored are one more
layer, and so are the messages of a group from which this one takes over.
"""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.properties.delivery import DELIVERY
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.interval_cuts import LINE, pieces, shares, sources
from watchkeeper.pipeline.analysis.facts.intervals import CLAIM, Facts, detail_field
from watchkeeper.pipeline.analysis.facts.mirror_routes import COMING, HAD, SENT
from watchkeeper.pipeline.analysis.facts.plan_facts import Terms
from watchkeeper.pipeline.analysis.facts.stored_ranges import (
    LOG,
    before,
    kept,
    partition_told,
    ranges,
    server_cluster,
)
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import HOLDS, UNKNOWN, VIOLATED, commits

TOPIC = ["run", "group", "topic"]
COUNTED = (
    *("accepted", "consumed", "refused", "never_stored", "coming", "stored_twice"),
    *("lost", "repeated", "unread"),
)


class Accounts(NamedTuple):
    """The counts of groups with a delivery guarantee."""

    groups: DataFrame
    """A row a group."""
    sources: DataFrame
    """A row a group, a topic, and a producer."""
    partitions: DataFrame
    """A row a group and a partition of its cluster."""


def accounts(facts: Facts, terms: Terms, tables: Tables) -> Accounts:
    """The fate of all messages under a delivery guarantee."""
    stored = tables.keep("stored_ranges", kept(facts.events))
    ranges = tables.keep("ranges", _ranges(facts, terms, stored))
    cut = tables.keep("pieces", pieces(ranges))
    shared = tables.keep("shares", shares(cut, ranges))
    of_sources = tables.keep("messages_by_source", sources(cut, shared))
    of_partitions = tables.keep(
        "messages_by_partition", _partitions(facts, terms, stored, shared)
    )
    limits = terms.guarantees.groupBy("run", "group").agg(
        *(sql.max(name).alias(name) for name in ("most_lost", "most_repeated", "most_refused"))
    )
    sums = of_sources.groupBy("run", "group").agg(
        *(sql.sum(column).alias(column) for column in COUNTED)
    )
    counted = limits.join(sums, ["run", "group"], "left").na.fill(0)
    return Accounts(tables.keep("messages", counted), of_sources, of_partitions)


def delivery(found: DataFrame) -> DataFrame:
    """Whether the counts meet the guarantee, with a row a group."""
    nothing = sql.col("accepted") + sql.col("consumed") + sql.col("refused") == 0
    exceeded = [
        (sql.col(f"most_{counted}") >= 0) & (sql.col(counted) > sql.col(f"most_{counted}"))
        for counted in ("lost", "repeated", "refused")
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


# --- the ranges ------------------------------------------------------------------------


def _ranges(facts: Facts, terms: Terms, stored: DataFrame) -> DataFrame:
    """Every range on every line: its layer, and where and when it was handed on."""
    guaranteed = terms.guarantees.select(*TOPIC)
    clusters = terms.readers.join(guaranteed, TOPIC, "left_semi")
    handled = ranges(facts.events, EventKind.HANDLED)
    standing = _standing(stored, terms, _places(facts, handled, terms))
    layers = (
        _sent(facts.events, terms),
        stored.join(clusters, ["run", "cluster", "topic"]).withColumn("layer", sql.lit("stored")),
        handled.join(guaranteed, TOPIC, "left_semi").withColumn("layer", sql.lit("consumed")),
        _of_another(handled, terms, HAD),
        *(standing[name].join(guaranteed, TOPIC, "left_semi") for name in ("past", "later")),
        _of_another(standing["later"], terms, COMING),
    )
    first, *others = map(_complete, layers)
    for frame in others:
        first = first.unionByName(frame)
    return first


def _complete(layer: DataFrame) -> DataFrame:
    """The columns of a range; null where a layer has no value."""
    kinds = {"partition": "string", "seq": "long", "nth": "int"}
    return layer.select(
        *(*LINE, "layer", "first", "end"),
        *(
            (sql.col(name) if name in layer.columns else sql.lit(None)).cast(kind).alias(name)
            for name, kind in kinds.items()
        ),
    )


def _sent(events: DataFrame, terms: Terms) -> DataFrame:
    """The acknowledgements of producers, for every group that the messages are due to."""
    home = sql.coalesce("cluster", server_cluster())
    due = terms.origins.where(sql.col("what") == SENT).withColumnRenamed("name", "cluster")
    told_of = (
        events.where(f"kind = '{EventKind.SENT}'")
        .join(terms.homes, ["run", "node"], "left")
        .select(
            *("run", "topic", home.alias("cluster")),
            detail_field("producer").alias("producer"),
            detail_field("outcome").alias("layer"),
            detail_field("first", "long").alias("first"),
            detail_field("end", "long").alias("end"),
        )
        .where(sql.col("layer").isin("accepted", "refused"))
    )
    return told_of.join(due, ["run", "cluster", "topic"])


def _of_another(ranges: DataFrame, terms: Terms, what: str) -> DataFrame:
    """The ranges of one group as a layer of another, for which they count."""
    counts = terms.origins.where(sql.col("what") == what).select(
        "run", sql.col("group").alias("whose"), "topic", sql.col("name").alias("group")
    )
    return (
        ranges.join(counts, TOPIC)
        .withColumn("group", sql.col("whose"))
        .withColumn("layer", sql.lit(what))
        .drop("whose")
    )


def _places(facts: Facts, handled: DataFrame, terms: Terms) -> DataFrame:
    """The position of each group in each partition: its start, and its present one.

    To a group that takes over from another every message is due, wherever it starts.
    """
    changes = handled.select(*CLAIM, "seq", sql.lit("consumed").alias("change"), "to")
    offset = sql.coalesce(sql.col("data").try_cast("long"), sql.lit(0))
    committed = commits(facts.changes).select(
        *CLAIM,
        "seq",
        sql.lit("committed").alias("change"),
        sql.greatest(offset, sql.lit(0)).alias("to"),
    )
    resets = (
        facts.events.where(f"kind = '{EventKind.OFFSET_RESET}'")
        .withColumn("partition", partition_told())
        .select(
            *CLAIM,
            "seq",
            sql.lit("reset").alias("change"),
            detail_field("to", "long").alias("to"),
        )
    )
    order = Window.partitionBy(*CLAIM).orderBy("seq")
    is_first = sql.row_number().over(order) == 1
    every = changes.unionByName(committed).unionByName(resets).withColumn("is_first", is_first)
    counts = every.where("is_first OR change <> 'reset'")
    goes_on = terms.origins.where(sql.col("what") == HAD).select(
        *TOPIC, sql.lit(0).alias("from_the_first")
    )
    begun = sql.max(sql.when(sql.col("change") == "reset", sql.col("to")))
    return (
        counts.groupBy(*CLAIM)
        .agg(begun.alias("begun"), sql.max("to").alias("reached_to"))
        .join(goes_on.distinct(), TOPIC, "left")
        .withColumn("begun_at", sql.coalesce("from_the_first", "begun", sql.lit(0)))
        .drop("begun", "from_the_first")
    )


def _standing(stored: DataFrame, terms: Terms, places: DataFrame) -> dict[str, DataFrame]:
    """The messages before the position of a group, and behind it, by partition."""
    standing = (
        stored.join(terms.readers, ["run", "cluster", "topic"])
        .join(places, CLAIM, "left")
        .na.fill(0, ["begun_at", "reached_to"])
        .withColumn("due", before(sql.col("begun_at")))
        .withColumn("reached", sql.greatest("due", before(sql.col("reached_to"))))
    )
    return {
        "past": _of_partitions(standing, "past", sql.col("due"), sql.col("reached")),
        "later": _of_partitions(standing, "later", sql.col("reached"), sql.col("end")),
    }


def _of_partitions(standing: DataFrame, layer: str, first: Column, end: Column) -> DataFrame:
    """A layer in which each message counts once a partition, however often it is stored there."""
    ranges = standing.select(
        *LINE, "partition", first.alias("first"), end.alias("end"), sql.lit(layer).alias("layer")
    ).where("first < end")
    keys = [*LINE, "partition", "layer"]
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


# --- by partition ----------------------------------------------------------------------


def _partitions(facts: Facts, terms: Terms, stored: DataFrame, shared: DataFrame) -> DataFrame:
    """A row a group and a partition that ever held something."""
    held = facts.events.where(f"kind = '{EventKind.STORED}'").select(
        "run", server_cluster().alias("cluster"), "topic", partition_told().alias("partition")
    )
    sizes = stored.groupBy(*LOG).agg(sql.sum(sql.col("end") - sql.col("first")).alias("stored"))
    sums = shared.groupBy(*CLAIM).agg(
        *(sql.sum(column).alias(column) for column in ("skipped", "repeated", "unread"))
    )
    guaranteed = terms.guarantees.select(*TOPIC)
    return (
        held.distinct()
        .join(terms.readers.join(guaranteed, TOPIC, "left_semi"), ["run", "cluster", "topic"])
        .join(sizes, LOG, "left")
        .join(sums, CLAIM, "left")
        .select(*CLAIM, "stored", "skipped", "repeated", "unread")
        .na.fill(0)
    )
