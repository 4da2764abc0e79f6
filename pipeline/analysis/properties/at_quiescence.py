"""The properties that hold at rest, a second time: cover, consensus, agreed view, balance."""

from __future__ import annotations

from functools import reduce

from watchkeeper.model.actor.events import CommandKind
from watchkeeper.model.properties.at_quiescence import AGREED, BALANCE, CONSENSUS, COVER
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import (
    MEMBERS,
    NEVER,
    Facts,
    detail_field,
    holding_at,
    serving,
)
from watchkeeper.pipeline.analysis.facts.plan_facts import Terms
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import found

LOOK = ["run", "group", "seq"]
OF_TOPIC = [*LOOK, "topic"]
TOPIC = rf"^{paths.TOPICS}/([^/]+)$"


def calm(
    runs: DataFrame, facts: Facts, looks: DataFrame, terms: Terms, tables: Tables
) -> DataFrame:
    """The properties that are looked at when a group rests, each with a row a run."""
    events, fetched = facts.events, facts.fetches
    takers = tables.keep("takers", _takers(facts, looks, terms))
    there = _served(facts, looks, terms).join(
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
        found(runs, CONSENSUS.name, _shared(events, takers), served),
        found(runs, AGREED.name, _dissent(events, takers), served),
        found(runs, BALANCE.name, unbalanced, served),
    )
    return reduce(lambda one, other: one.unionByName(other), parts)


def _served(facts: Facts, looks: DataFrame, terms: Terms) -> DataFrame:
    """Every partition that a broker of the group's cluster serves, at every look.

    Not those of topics that were deleted from the registry by then.
    """
    brokers = terms.nodes.where("role = 'broker'").drop("role")
    there = looks.join(brokers, ["run", "group"])
    at = holding_at(there, serving(facts.events), ["run", "node"])
    named = looks.join(terms.groups.select("run", "group", "prefix"), ["run", "group"])
    gone = holding_at(named, _deleted_topics(facts.changes), ["run", "prefix"])
    return (
        at.select(*OF_TOPIC, "partition")
        .distinct()
        .join(gone.select(*OF_TOPIC).distinct(), OF_TOPIC, "left_anti")
    )


def _deleted_topics(changes: DataFrame) -> DataFrame:
    """A row an interval in which an ensemble's registry has not got a topic that it had."""
    following = sql.lead("seq").over(
        Window.partitionBy("run", "prefix", "topic").orderBy("seq", "at")
    )
    return (
        changes.where(sql.col("kind") == EventKind.APPLIED)
        .where(sql.col("path").rlike(TOPIC))
        .select(
            *("run", "what", "seq", "at"),
            sql.regexp_extract("node", "^(.*)zookeeper", 1).alias("prefix"),
            sql.regexp_extract("path", TOPIC, 1).alias("topic"),
        )
        .select(
            *("run", "prefix", "topic", "what"),
            sql.col("seq").cast("long").alias("begins"),
            sql.coalesce(following.cast("long"), sql.lit(NEVER)).alias("ends"),
        )
        .where("what = 'deleted' AND begins < ends")
        .drop("what")
    )


def _takers(facts: Facts, looks: DataFrame, terms: Terms) -> DataFrame:
    """Every live member at a look, with the topics of which it takes streams.

    It is registered, or its process runs without a command to leave; and its program is not
    over while its process goes on.
    """
    wanted = looks.join(terms.streams, ["run", "group"])
    there = _lives(facts.events).unionByName(_registrations(facts))
    outlived = holding_at(wanted, _abandonments(facts.events), ["run", "node"])
    at_look = [*LOOK, "node"]
    return (
        holding_at(wanted, there, ["run", "node"])
        .distinct()
        .join(outlived.select(*at_look).distinct(), at_look, "left_anti")
    )


def _abandonments(events: DataFrame) -> DataFrame:
    """A row an interval from the end of a program whose process goes on to the next start."""
    following = sql.lead("seq").over(Window.partitionBy("run", "node").orderBy("seq"))
    return (
        events.where(sql.col("kind").isin(EventKind.STARTED, EventKind.ABANDONED))
        .select(
            *("run", "node", "kind"),
            sql.col("seq").cast("long").alias("begins"),
            sql.coalesce(following.cast("long"), sql.lit(NEVER)).alias("ends"),
        )
        .where(f"kind = '{EventKind.ABANDONED}'")
        .drop("kind")
    )


def _registrations(facts: Facts) -> DataFrame:
    """A row an interval in which a process is registered as a member."""
    following = sql.lead("seq").over(Window.partitionBy("run", "path").orderBy("seq", "at"))
    return (
        facts.changes.where(sql.col("path").rlike(MEMBERS))
        .select(
            *("run", "what", "owner"),
            sql.col("seq").cast("long").alias("begins"),
            sql.coalesce(following.cast("long"), sql.lit(NEVER)).alias("ends"),
        )
        .where("what <> 'deleted' AND begins < ends")
        .join(
            facts.sessions.select(
                "run", sql.col("session").alias("owner"), sql.col("holder").alias("node")
            ),
            ["run", "owner"],
        )
        .select("run", "node", "begins", "ends")
    )


def _lives(events: DataFrame) -> DataFrame:
    """A row an interval in which a process runs without a command to leave."""
    is_command = (sql.col("kind") == EventKind.NOTIFIED) & (
        detail_field("what") == CommandKind.LEAVE.value
    )
    following = sql.lead("seq").over(Window.partitionBy("run", "node").orderBy("seq"))
    return (
        events.where(sql.col("kind").isin(EventKind.STARTED, EventKind.ENDED) | is_command)
        .select(
            "run",
            "node",
            "kind",
            sql.col("seq").cast("long").alias("begins"),
            sql.coalesce(following.cast("long"), sql.lit(NEVER)).alias("ends"),
        )
        .where(f"kind = '{EventKind.STARTED}'")
        .drop("kind")
    )


# --- cover, consensus and agreed view --------------------------------------------------


def _uncovered(served: DataFrame, fetched: DataFrame) -> DataFrame:
    """The rests at which a partition of a topic is not fetched by exactly one member."""
    keys = ["run", "group", "topic", "partition"]
    taken = holding_at(served, fetched, keys).select(*OF_TOPIC, "partition", "node")
    counted = taken.groupBy(*OF_TOPIC, "partition").agg(sql.countDistinct("node").alias("number"))
    return (
        served.join(counted, [*OF_TOPIC, "partition"], "left")
        .where("number IS NULL OR number <> 1")
        .select(*OF_TOPIC)
        .distinct()
    )


_PLANS = "map<string,array<string>>"


def _dissent(events: DataFrame, takers: DataFrame) -> DataFrame:
    """The rests at which members had seen different things of a topic."""
    plan = sql.coalesce(sql.array_join("told", "/"), sql.lit(""))
    latest = _latest(events, takers, "plans").withColumn("plan", plan)
    return latest.groupBy(*OF_TOPIC).agg(sql.countDistinct("plan").alias("n")).where("n > 1")


def _shared(events: DataFrame, takers: DataFrame) -> DataFrame:
    """The rests at which a partition was in the shares of two members."""
    taken = _latest(events, takers, "shares").select(
        *OF_TOPIC, "node", sql.explode("told").alias("partition")
    )
    return (
        taken.groupBy(*OF_TOPIC, "partition")
        .agg(sql.countDistinct("node").alias("n"))
        .where("n > 1")
        .select(*OF_TOPIC)
        .distinct()
    )


def _latest(events: DataFrame, takers: DataFrame, what: str) -> DataFrame:
    """The takers at every look, with what they had computed last about a topic, in `told`."""
    decided = events.where(f"kind = '{EventKind.ASSIGNED}'").select(
        *("run", "node"),
        sql.col("seq").alias("decided_at"),
        sql.explode(sql.from_json(detail_field(what), _PLANS)).alias("topic", "told"),
    )
    before = takers.join(decided, ["run", "node", "topic"], "left").where(
        "decided_at IS NULL OR decided_at < seq"
    )
    started = events.where(f"kind = '{EventKind.STARTED}'").select(
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
        .agg(sql.max_by("told", "decided_at").alias("told"))
    )
    return takers.join(latest, [*OF_TOPIC, "node"], "left")


# --- balance ---------------------------------------------------------------------------


def _unbalanced(takers: DataFrame, fetched: DataFrame, covered: DataFrame) -> DataFrame:
    """The rests at which two streams of a topic differ by more than one partition."""
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
    """Members whose shares of a topic can be compared."""
    taking = takers.join(covered.select(*OF_TOPIC).distinct(), OF_TOPIC, "left_semi")
    dealt = taking.where("deals_over_topics").select(*OF_TOPIC).distinct()
    return taking.join(dealt, OF_TOPIC, "left_anti")


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
