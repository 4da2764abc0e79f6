"""The properties of what brokers know and hold, a second time."""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.brokers import (
    CLUSTER_ID,
    HANDED_OVER,
    LEADERS_LEAD,
    METADATA,
    NOTHING_LEFT,
    ONE_ID,
    RISING,
    SETTINGS,
)
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.requests import DELETED
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.control_plane.registry import (
    CLUSTER,
    PARTITION,
    Registry,
    overrides,
    versions,
)
from watchkeeper.pipeline.analysis.control_plane.replication import (
    END,
    at_the_end,
    calm_at_end,
    live_at_end,
)
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import NEVER, Facts, detail_field
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import found

BROKER = [*CLUSTER, "node"]


def judged(
    runs: DataFrame, facts: Facts, registry: Registry, plans: Plans, tables: Tables
) -> DataFrame:
    """The properties of brokers that replicate, each with a row a run."""
    clusters = plans.clusters.where("replicates").select(*CLUSTER)
    nodes = (
        plans.processes.where("role = 'broker'")
        .join(clusters, CLUSTER)
        .select(*BROKER, "broker_id")
    )
    events = tables.keep(
        "broker_events",
        facts.events.where(sql.col("kind").isin(*KINDS))
        .withColumn("seq", sql.col("seq").cast("long"))
        .join(nodes, ["run", "node"])
        .select(*BROKER, "broker_id", "seq", "kind", "topic", "detail"),
    )
    calm = calm_at_end(runs, facts.events)
    ours = live_at_end(facts.events, nodes)
    live = tables.keep("live_calm_brokers", ours.join(calm, "run"))
    assigned = tables.keep("assigned_at_end", _assigned(registry))
    return (
        _metadata(runs, registry, events, live, tables)
        .unionByName(_leaders_lead(runs, registry, events, live))
        .unionByName(_settings(runs, registry, events, live, assigned))
        .unionByName(_nothing_left(runs, events, live, assigned))
        .unionByName(_handed_over(runs, facts, registry, events, nodes))
        .unionByName(_rising(runs, events))
        .unionByName(_one_id(runs, events))
    )


KINDS = (
    EventKind.APPENDED,
    EventKind.REPLICA_OPENED,
    EventKind.REPLICA_DELETED,
    EventKind.BECAME_LEADER,
    EventKind.BECAME_FOLLOWER,
    EventKind.LEADER_UNKNOWN,
    EventKind.COMMITTED,
    EventKind.METADATA_UPDATED,
    EventKind.SETTINGS_APPLIED,
    EventKind.SHUT_DOWN,
    EventKind.CLUSTER_ID,
)


def _assigned(registry: Registry) -> DataFrame:
    """The replicas at the end: a row a partition and a broker."""
    return (
        registry.replicas.where(f"ends = {NEVER}")
        .select(*PARTITION, sql.explode("replicas").alias("broker_id"))
        .distinct()
    )


def _is_at_end(name: str) -> Column:
    return sql.lit(END).cast("long").alias(name)


# --- at the end ------------------------------------------------------------------------


def _of_last_process(events: DataFrame, live: DataFrame, *kinds: EventKind) -> DataFrame:
    """The events of some kinds since each live broker started: it knew nothing then."""
    return (
        events.where(sql.col("kind").isin(*kinds))
        .join(live.select(*BROKER, "started"), BROKER)
        .where("seq > started")
    )


def _metadata(
    runs: DataFrame, registry: Registry, events: DataFrame, live: DataFrame, tables: Tables
) -> DataFrame:
    said = sql.from_json(sql.get_json_object("detail", "$.leaders"), "array<array<string>>")
    told = (
        _of_last_process(events, live, EventKind.METADATA_UPDATED)
        .select(*BROKER, "seq", sql.posexplode(said).alias("at", "row"))
        .select(
            *BROKER,
            "seq",
            "at",
            sql.col("row")[0].alias("topic"),
            sql.col("row")[1].alias("partition"),
            sql.col("row")[2].cast("int").alias("leader"),
        )
    )
    known = tables.keep(
        "metadata_at_end",
        told.groupBy(*BROKER, "topic", "partition")
        .agg(sql.max_by("leader", sql.struct("seq", "at")).alias("told"))
        .where(f"told <> {DELETED}"),
    )
    who = known.select(*BROKER).distinct()
    leads = registry.versions.where(f"ends = {NEVER}").select(
        *PARTITION, sql.col("state.leader").alias("leads")
    )
    both = who.join(leads, CLUSTER).join(known, [*BROKER, "topic", "partition"], "full")
    wrong = both.where(
        f"NOT (told <=> leads) AND NOT (told IS NULL AND leads = {NO_LEADER})"
    ).select("run", _is_at_end("seq"))
    return at_the_end(found(runs, METADATA.name, wrong, who))


def _leaders_lead(
    runs: DataFrame, registry: Registry, events: DataFrame, live: DataFrame
) -> DataFrame:
    """What the last request that a broker took says, beside what the registry says."""
    kinds = (EventKind.BECAME_LEADER, EventKind.BECAME_FOLLOWER, EventKind.REPLICA_DELETED)
    last = (
        _of_last_process(events, live, *kinds)
        .select(
            *(*BROKER, "topic", "seq", "kind"),
            detail_field("partition").alias("partition"),
            detail_field("epoch", "int").alias("epoch"),
        )
        .groupBy(*BROKER, "topic", "partition")
        .agg(
            sql.max_by("kind", "seq").alias("kind"), sql.max_by("epoch", "seq").alias("leads_in")
        )
        .where(sql.col("kind") == EventKind.BECAME_LEADER)
        .drop("kind")
    )
    state = registry.versions.where(f"ends = {NEVER}").select(
        *PARTITION,
        sql.col("state.leader").alias("leader"),
        sql.col("state.leader_epoch").alias("leader_epoch"),
    )
    both = (
        live.select(*BROKER, "broker_id")
        .join(state, CLUSTER)
        .join(last, [*BROKER, "topic", "partition"], "left")
    )
    is_leader = sql.col("leader") == sql.col("broker_id")
    wanted = sql.when(is_leader, sql.col("leader_epoch"))
    wrong = both.where(~wanted.eqNullSafe(sql.col("leads_in"))).select("run", _is_at_end("seq"))
    return at_the_end(found(runs, LEADERS_LEAD.name, wrong, both.where(is_leader)))


def _settings(
    runs: DataFrame, registry: Registry, events: DataFrame, live: DataFrame, assigned: DataFrame
) -> DataFrame:
    follows = sql.from_json(sql.get_json_object("detail", "$.settings"), "map<string,string>")
    applied = (
        _of_last_process(events, live, EventKind.SETTINGS_APPLIED)
        .groupBy(*BROKER, "topic")
        .agg(sql.max_by("detail", "seq").alias("detail"))
        .withColumn("follows", follows)
    )
    held = (
        assigned.select(*CLUSTER, "topic", "broker_id")
        .distinct()
        .join(live.select(*BROKER, "broker_id"), [*CLUSTER, "broker_id"])
    )
    due = held.join(_settings_at_end(registry), [*CLUSTER, "topic"])
    compared = due.join(applied.select(*BROKER, "topic", "follows"), [*BROKER, "topic"], "left")
    wrong = compared.where(~_entries("wanted").eqNullSafe(_entries("follows")))
    return at_the_end(found(runs, SETTINGS.name, wrong.withColumn("seq", _is_at_end("seq")), due))


def _settings_at_end(registry: Registry) -> DataFrame:
    """The settings of topics that have any or had some; not those that cannot be read."""
    config = sql.coalesce(overrides(), sql.lit(None).cast("map<string,string>"))
    there = registry.settings.where(f"ends = {NEVER}").withColumn("wanted", config)
    ever = registry.settings.select(*CLUSTER, "topic").distinct()
    gone = ever.join(there.select(*CLUSTER, "topic"), [*CLUSTER, "topic"], "left_anti")
    none = sql.map_from_arrays(
        sql.array().cast("array<string>"), sql.array().cast("array<string>")
    )
    return (
        there.where("wanted IS NOT NULL")
        .select(*CLUSTER, "topic", "wanted")
        .unionByName(gone.withColumn("wanted", none))
    )


def _entries(name: str) -> Column:
    """A map as sorted text, which can be compared; a missing one is empty."""
    rows = sql.transform(
        sql.map_entries(name), lambda row: sql.concat_ws("=", row["key"], row["value"])
    )
    return sql.coalesce(sql.array_join(sql.array_sort(rows), ","), sql.lit(""))


def _nothing_left(
    runs: DataFrame, events: DataFrame, live: DataFrame, assigned: DataFrame
) -> DataFrame:
    kinds = (EventKind.APPENDED, EventKind.REPLICA_OPENED, EventKind.REPLICA_DELETED)
    logs = (
        events.where(sql.col("kind").isin(*kinds))
        .withColumn("partition", detail_field("partition"))
        .groupBy(*BROKER, "broker_id", "topic", "partition")
        .agg(
            sql.max_by("kind", "seq").alias("last"),
            sql.max(sql.col("kind") != EventKind.REPLICA_DELETED).alias("had"),
        )
        .where("had")
    )
    strays = logs.join(live.select(*BROKER), BROKER).join(
        assigned, [*PARTITION, "broker_id"], "left_anti"
    )
    left = strays.where(sql.col("last") != EventKind.REPLICA_DELETED)
    return at_the_end(
        found(runs, NOTHING_LEFT.name, left.withColumn("seq", _is_at_end("seq")), strays)
    )


# --- always ----------------------------------------------------------------------------


def _handed_over(
    runs: DataFrame, facts: Facts, registry: Registry, events: DataFrame, nodes: DataFrame
) -> DataFrame:
    leaving = events.where(sql.col("kind") == EventKind.SHUT_DOWN).select(
        *CLUSTER, "seq", "broker_id"
    )
    leader = sql.when(sql.col("state.leader") != NO_LEADER, sql.col("state.leader"))
    so_far = Window.partitionBy(*PARTITION).orderBy("begins")
    states = registry.versions.select(
        *PARTITION,
        "state",
        "begins",
        "ends",
        sql.last(leader, ignorenulls=True).over(so_far).alias("last_leader"),
    )
    led = (
        leaving.join(states, CLUSTER)
        .where("begins <= seq AND seq < ends AND last_leader = broker_id")
        .select(*PARTITION, "seq", "broker_id", "state.isr")
    )
    alive = _alive(facts, nodes).withColumnsRenamed({"broker_id": "other", "node": "other_node"})
    others = led.join(alive, CLUSTER).where("begins <= seq AND seq < ends AND other <> broker_id")
    able = others.where("array_contains(isr, other)").select("run", "seq")
    return found(
        runs, HANDED_OVER.name, able.unionByName(_without_address(others, events)), leaving
    )


def _without_address(others: DataFrame, events: DataFrame) -> DataFrame:
    """The last word that each of them had of the partition: the leader, but not where it is."""
    kinds = (
        EventKind.LEADER_UNKNOWN,
        EventKind.BECAME_FOLLOWER,
        EventKind.BECAME_LEADER,
        EventKind.REPLICA_DELETED,
    )
    words = events.where(sql.col("kind").isin(*kinds)).select(
        *CLUSTER,
        sql.col("node").alias("other_node"),
        "topic",
        detail_field("partition").alias("partition"),
        "kind",
        detail_field("said", "int").alias("said"),
        sql.col("seq").alias("word_seq"),
    )
    word = sql.struct("kind", "said")
    return (
        others.join(words, [*PARTITION, "other_node"])
        .where("begins <= word_seq AND word_seq < seq")
        .groupBy(*PARTITION, "seq", "broker_id", "other_node")
        .agg(sql.max_by(word, "word_seq").alias("last"))
        .where(f"last.kind = '{EventKind.LEADER_UNKNOWN}' AND last.said = broker_id")
        .select("run", "seq")
    )


def _alive(facts: Facts, nodes: DataFrame) -> DataFrame:
    """A row an interval in which the process of a broker runs."""
    rows = (
        facts.events.where(sql.col("kind").isin(EventKind.STARTED, EventKind.ENDED))
        .join(nodes, ["run", "node"])
        .select(
            *BROKER,
            "broker_id",
            "seq",
            sql.lit(0).alias("at"),
            (sql.col("kind") == EventKind.ENDED).alias("gone"),
        )
    )
    return versions(rows, BROKER)


def _rising(runs: DataFrame, events: DataFrame) -> DataFrame:
    """A replica that was deleted begins anew."""
    log = [*BROKER, "topic", "partition"]
    kinds = (EventKind.COMMITTED, EventKind.REPLICA_DELETED)
    deleted = (sql.col("kind") == EventKind.REPLICA_DELETED).cast("int")
    so_far = Window.partitionBy(*log).orderBy("seq")
    rows = (
        events.where(sql.col("kind").isin(*kinds))
        .withColumns(
            {
                "partition": detail_field("partition"),
                "epoch": detail_field("epoch", "int"),
                "mark": detail_field("high_watermark", "long"),
            }
        )
        .withColumn("life", sql.sum(deleted).over(so_far))
        .where(sql.col("kind") == EventKind.COMMITTED)
    )
    before = sql.lag("mark").over(Window.partitionBy(*log, "life", "epoch").orderBy("seq"))
    marked = rows.withColumn("before", before)
    return found(runs, RISING.name, marked.where("mark < before"), marked)


def _one_id(runs: DataFrame, events: DataFrame) -> DataFrame:
    read = events.where(sql.col("kind") == EventKind.CLUSTER_ID).withColumn(
        "id", detail_field("id")
    )
    first = sql.first("id").over(Window.partitionBy(*CLUSTER).orderBy("seq"))
    named = read.withColumn("first", first)
    legal = sql.col("id").rlike(f"^{CLUSTER_ID.pattern}$")
    wrong = named.where((sql.col("id") != sql.col("first")) | ~legal)
    return found(runs, ONE_ID.name, wrong, named)
