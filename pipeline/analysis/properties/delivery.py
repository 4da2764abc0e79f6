"""What became of every message, a second time: how many were lost, how many handed on twice.

The messages of a producer are numbered, and whatever is told of them is told of ranges of
numbers. So each is laid on a line: what was accepted, what lies in logs, what the applications
of a group are done with, what lies before the place it has reached, and what behind. Where
these begin and end the line is cut, and each piece counts with its length.

A message keeps its producer and its number when it is mirrored, so the line of a group on the
target of a mirror has what producers sent to the sources; what lies there and was not yet
mirrored is a layer more, and so is what a group had with whose work this one goes on.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from model.delivered import DELIVERY
from pipeline.analysis.lots import LOG, before, kept, lots, partition_told, server_cluster
from pipeline.analysis.owning import HOLDS, UNKNOWN, VIOLATED, commits
from pipeline.analysis.pieces import LINE, pieces, shares, sources
from pipeline.analysis.routes import COMING, HAD, SENT
from pipeline.analysis.spans import CLAIM, Facts, told
from pipeline.analysis.tables import Tables
from pipeline.analysis.terms import Terms

TOPIC = ["run", "group", "topic"]
COUNTED = (
    *("accepted", "consumed", "refused", "never_stored", "coming", "stored_twice"),
    *("lost", "repeated", "unread"),
)


class Accounts(NamedTuple):
    """What became of the messages of groups to which something is promised."""

    groups: DataFrame
    """A row a group."""
    sources: DataFrame
    """A row a group, a topic, and a producer."""
    partitions: DataFrame
    """A row a group and a partition of its cluster."""


def accounts(facts: Facts, terms: Terms, tables: Tables) -> Accounts:
    """What became of all messages of which something is promised."""
    stored = tables.keep("lots", kept(facts.events))
    ranges = tables.keep("ranges", _ranges(facts, terms, stored))
    cut = tables.keep("pieces", pieces(ranges))
    shared = tables.keep("shares", shares(cut, ranges))
    of_sources = tables.keep("messages_by_source", sources(cut, shared))
    of_partitions = tables.keep(
        "messages_by_partition", _partitions(facts, terms, stored, shared)
    )
    limits = terms.promises.groupBy("run", "group").agg(
        *(sql.max(name).alias(name) for name in ("most_lost", "most_repeated", "most_refused"))
    )
    sums = of_sources.groupBy("run", "group").agg(*(sql.sum(one).alias(one) for one in COUNTED))
    counted = limits.join(sums, ["run", "group"], "left").na.fill(0)
    return Accounts(tables.keep("messages", counted), of_sources, of_partitions)


def delivery(found: DataFrame) -> DataFrame:
    """Whether what became of the messages is what was promised, with a row a group."""
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
    """Every range on every line: its layer, and where it was handed on, when and where."""
    promised = terms.promises.select(*TOPIC)
    clusters = terms.readers.join(promised, TOPIC, "left_semi")
    handled = lots(facts.events, "handled")
    standing = _standing(stored, terms, _places(facts, handled, terms))
    layers = (
        _sent(facts.events, terms),
        stored.join(clusters, ["run", "cluster", "topic"]).withColumn("layer", sql.lit("stored")),
        handled.join(promised, TOPIC, "left_semi").withColumn("layer", sql.lit("consumed")),
        _of_another(handled, terms, HAD),
        *(standing[name].join(promised, TOPIC, "left_semi") for name in ("past", "later")),
        _of_another(standing["later"], terms, COMING),
    )
    first, *others = map(_complete, layers)
    for one in others:
        first = first.unionByName(one)
    return first


def _complete(layer: DataFrame) -> DataFrame:
    """The columns of a range; where something is not known of a layer it is null."""
    kinds = {"partition": "string", "seq": "long", "nth": "int"}
    return layer.select(
        *(*LINE, "layer", "first", "end"),
        *(
            (sql.col(name) if name in layer.columns else sql.lit(None)).cast(kind).alias(name)
            for name, kind in kinds.items()
        ),
    )


def _sent(events: DataFrame, terms: Terms) -> DataFrame:
    """What producers were told of what they sent, for every group that it comes to."""
    home = sql.coalesce("cluster", server_cluster())
    due = terms.origins.where(sql.col("what") == SENT).withColumnRenamed("name", "cluster")
    told_of = (
        events.where("kind = 'sent'")
        .join(terms.homes, ["run", "node"], "left")
        .select(
            *("run", "topic", home.alias("cluster")),
            told("producer").alias("producer"),
            told("outcome").alias("layer"),
            told("first", "long").alias("first"),
            told("end", "long").alias("end"),
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
    """How each group stands in each partition: where it began, and how far it has come.

    To a group that goes on with the work of another all is due, wherever it begins.
    """
    deeds = handled.select(*CLAIM, "seq", sql.lit("consumed").alias("deed"), "to")
    offset = sql.coalesce(sql.col("data").try_cast("long"), sql.lit(0))
    committed = commits(facts.changes).select(
        *CLAIM,
        "seq",
        sql.lit("committed").alias("deed"),
        sql.greatest(offset, sql.lit(0)).alias("to"),
    )
    resets = (
        facts.events.where("kind = 'offset reset'")
        .withColumn("partition", partition_told())
        .select(*CLAIM, "seq", sql.lit("reset").alias("deed"), told("to", "long").alias("to"))
    )
    order = Window.partitionBy(*CLAIM).orderBy("seq")
    is_first = sql.row_number().over(order) == 1
    every = deeds.unionByName(committed).unionByName(resets).withColumn("is_first", is_first)
    counts = every.where("is_first OR deed <> 'reset'")
    goes_on = terms.origins.where(sql.col("what") == HAD).select(
        *TOPIC, sql.lit(0).alias("from_the_first")
    )
    begun = sql.max(sql.when(sql.col("deed") == "reset", sql.col("to")))
    return (
        counts.groupBy(*CLAIM)
        .agg(begun.alias("begun"), sql.max("to").alias("reached_to"))
        .join(goes_on.distinct(), TOPIC, "left")
        .withColumn("begun_at", sql.coalesce("from_the_first", "begun", sql.lit(0)))
        .drop("begun", "from_the_first")
    )


def _standing(stored: DataFrame, terms: Terms, places: DataFrame) -> dict[str, DataFrame]:
    """What lies before the place that a group has reached, and what behind, by partition."""
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
    """A layer in which each message counts once a partition, however often it lies there."""
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
    held = facts.events.where("kind = 'stored'").select(
        "run", server_cluster().alias("cluster"), "topic", partition_told().alias("partition")
    )
    sizes = stored.groupBy(*LOG).agg(sql.sum(sql.col("end") - sql.col("first")).alias("stored"))
    sums = shared.groupBy(*CLAIM).agg(
        *(sql.sum(one).alias(one) for one in ("skipped", "repeated", "unread"))
    )
    promised = terms.promises.select(*TOPIC)
    return (
        held.distinct()
        .join(terms.readers.join(promised, TOPIC, "left_semi"), ["run", "cluster", "topic"])
        .join(sizes, LOG, "left")
        .join(sums, CLAIM, "left")
        .select(*CLAIM, "stored", "skipped", "repeated", "unread")
        .na.fill(0)
    )
