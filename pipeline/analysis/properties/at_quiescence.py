"""What must hold at rest, a second time: cover, consensus and balance."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, MapType, StringType

from model.calm import BALANCE, CONSENSUS, COVER
from pipeline.analysis.owning import found
from pipeline.analysis.spans import NEVER, Facts, holding_at, serving, told
from pipeline.analysis.tables import Tables
from pipeline.analysis.terms import Terms

LOOK = ["run", "group", "seq"]
OF_TOPIC = [*LOOK, "topic"]


def calm(
    runs: DataFrame, facts: Facts, looks: DataFrame, terms: Terms, tables: Tables
) -> DataFrame:
    """The properties that are looked at when a group rests, each with a row a run."""
    events, fetched = facts.events, facts.fetches
    takers = tables.keep("takers", _takers(events, looks, terms))
    there = _served(events, looks, terms).join(
        takers.select(*OF_TOPIC).distinct(), OF_TOPIC, "left_semi"
    )
    served = tables.keep("served", there)
    uncovered = tables.keep("uncovered", _uncovered(served, fetched))
    covered = tables.keep("covered", served.join(uncovered, OF_TOPIC, "left_anti"))
    unbalanced = _unbalanced(takers, fetched, covered).unionByName(
        _badly_connected(takers, fetched, covered, terms.groups)
    )
    parts = (
        found(runs, COVER.name, uncovered, served),
        found(runs, CONSENSUS.name, _dissent(events, takers), served),
        found(runs, BALANCE.name, unbalanced, served),
    )
    return parts[0].unionByName(parts[1]).unionByName(parts[2])


def _served(events: DataFrame, looks: DataFrame, terms: Terms) -> DataFrame:
    """Every partition that a broker of the group's cluster serves, at every look."""
    brokers = terms.nodes.where("role = 'broker'").drop("role")
    there = looks.join(brokers, ["run", "group"])
    at = holding_at(there, serving(events), ["run", "node"])
    return at.select(*OF_TOPIC, "partition").distinct()


def _takers(events: DataFrame, looks: DataFrame, terms: Terms) -> DataFrame:
    """Every member that runs at a look, with the topics of which it takes streams."""
    wanted = looks.join(terms.streams, ["run", "group"])
    return holding_at(wanted, _lives(events), ["run", "node"])


def _lives(events: DataFrame) -> DataFrame:
    """A row a stretch in which a process runs."""
    following = sql.lead("seq").over(Window.partitionBy("run", "node").orderBy("seq"))
    return (
        events.where(sql.col("kind").isin("starts", "ends"))
        .select(
            "run",
            "node",
            "kind",
            sql.col("seq").cast("long").alias("begins"),
            sql.coalesce(following.cast("long"), sql.lit(NEVER)).alias("ends"),
        )
        .where("kind = 'starts'")
        .drop("kind")
    )


# --- cover and consensus ---------------------------------------------------------------


def _uncovered(served: DataFrame, fetched: DataFrame) -> DataFrame:
    """The looks at which a partition of a topic is not fetched by exactly one member."""
    keys = ["run", "group", "topic", "partition"]
    taken = holding_at(served, fetched, keys).select(*OF_TOPIC, "partition", "node")
    counted = taken.groupBy(*OF_TOPIC, "partition").agg(sql.countDistinct("node").alias("number"))
    return (
        served.join(counted, [*OF_TOPIC, "partition"], "left")
        .where("number IS NULL OR number <> 1")
        .select(*OF_TOPIC)
        .distinct()
    )


_PLANS = MapType(StringType(), ArrayType(StringType()))


def _dissent(events: DataFrame, takers: DataFrame) -> DataFrame:
    """The looks at which members had seen, or decided, different things about a topic."""
    decided = (
        events.where("kind = 'assigned'")
        .select(
            *("run", "node", "seq"),
            sql.explode(sql.from_json(told("plans"), _PLANS)).alias("topic", "plan"),
        )
        .select("run", "node", "topic", "seq", sql.concat_ws("/", "plan").alias("plan"))
    )
    before = takers.join(
        decided.withColumnRenamed("seq", "decided_at"), ["run", "node", "topic"], "left"
    ).where("decided_at IS NULL OR decided_at < seq")
    started = events.where("kind = 'starts'").select(
        "run", "node", sql.col("seq").alias("started_at")
    )
    begun = (
        takers.select(*LOOK, "node")
        .distinct()
        .join(started, ["run", "node"])
        .where("started_at < seq")
        .groupBy(*LOOK, "node")
        .agg(sql.max("started_at").alias("started_at"))
    )
    latest = (
        before.join(begun, [*LOOK, "node"])
        .where("decided_at > started_at")
        .groupBy(*OF_TOPIC, "node")
        .agg(sql.max_by("plan", "decided_at").alias("plan"))
    )
    said = takers.join(latest, [*OF_TOPIC, "node"], "left")
    plan = sql.coalesce("plan", sql.lit("none"))
    return said.groupBy(*OF_TOPIC).agg(sql.countDistinct(plan).alias("n")).where("n > 1")


# --- balance ---------------------------------------------------------------------------


def _unbalanced(takers: DataFrame, fetched: DataFrame, covered: DataFrame) -> DataFrame:
    """The looks at which two streams of a topic differ by more than one partition."""
    judged = _judged(takers, covered)
    streams = judged.select(
        *OF_TOPIC,
        "node",
        sql.explode(sql.sequence(sql.lit(0), sql.col("streams") - 1)).alias("stream"),
    ).withColumn("number", sql.lit(0))
    taken = holding_at(judged, fetched, ["run", "group", "topic", "node"]).select(
        *OF_TOPIC, "node", "stream", sql.lit(1).alias("number")
    )
    of_streams = (
        streams.unionByName(taken)
        .groupBy(*OF_TOPIC, "node", "stream")
        .agg(sql.sum("number").alias("number"))
    )
    spread = sql.max("number") - sql.min("number")
    return (
        of_streams.groupBy(*OF_TOPIC).agg(spread.alias("n")).where("n > 1").select("run", "seq")
    )


def _judged(takers: DataFrame, covered: DataFrame) -> DataFrame:
    """Members whose shares of a topic can be compared: that is in whole, and dealt out alone."""
    whole = takers.join(covered.select(*OF_TOPIC).distinct(), OF_TOPIC, "left_semi")
    dealt = whole.where("deals_over_topics").select(*OF_TOPIC).distinct()
    return whole.join(dealt, OF_TOPIC, "left_anti")


def _badly_connected(
    takers: DataFrame, fetched: DataFrame, covered: DataFrame, groups: DataFrame
) -> DataFrame:
    """0.7: the looks at which a topic's connections to brokers are fewer or more than due."""
    counting = groups.where("counts_connections").select("run", "group")
    judged = _judged(takers, covered).join(counting, ["run", "group"], "left_semi")
    broker = sql.split("partition", "-")[0].alias("broker")
    pairs = (
        holding_at(judged, fetched, ["run", "group", "topic", "node"])
        .select(*OF_TOPIC, "node", broker)
        .distinct()
        .groupBy(*OF_TOPIC)
        .agg(sql.count("*").alias("pairs"), sql.countDistinct("node").alias("members"))
    )
    brokers = covered.groupBy(*OF_TOPIC).agg(
        sql.countDistinct(sql.split("partition", "-")[0]).alias("brokers")
    )
    known = judged.select(*OF_TOPIC).distinct().join(brokers, OF_TOPIC)
    counted = known.join(pairs, OF_TOPIC, "left").na.fill(0, ["pairs", "members"])
    least, most = sql.greatest("members", "brokers"), sql.col("members") + sql.col("brokers") - 1
    return counted.where((sql.col("pairs") < least) | (sql.col("pairs") > most)).select(
        "run", "seq"
    )
