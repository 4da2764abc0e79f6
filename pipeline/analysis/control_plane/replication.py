"""The properties of replicas, a second time: by joins of their logs with what was committed."""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.replication import (
    CARRIED_OUT,
    CAUGHT_UP,
    IN_ISR,
    KEPT,
    ONE_LEADER,
    READ,
    REQUESTS,
    UNCHANGED,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.logs import (
    LIFE,
    REPLICA,
    Logs,
    is_there,
    with_life,
)
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.control_plane.registry import (
    CLUSTER,
    DELETION,
    PARTITION,
    Registry,
)
from watchkeeper.pipeline.analysis.engine.api import DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import NEVER, Facts, detail_field
from watchkeeper.pipeline.analysis.facts.stored_ranges import ranges
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import found
from watchkeeper.pipeline.analysis.properties.quiescence import faults_in_force

END = NEVER - 1
"""The number of an event after the last one: what is true at the end of a run."""


def judged(
    runs: DataFrame,
    facts: Facts,
    registry: Registry,
    logs: Logs,
    plans: Plans,
    tables: Tables,
) -> DataFrame:
    """The properties of replicas, each with a row a run."""
    nodes = plans.processes.where("role = 'broker'").select(*CLUSTER, "node", "broker_id")
    calm = tables.keep("calm_runs", calm_at_end(runs, facts.events))
    live = tables.keep("live_at_end", live_at_end(facts.events, nodes))
    led = tables.keep("led_at_end", _led_at_end(registry, live, calm))
    return (
        _one_leader(runs, logs)
        .unionByName(_unchanged(runs, logs))
        .unionByName(_read(runs, facts, logs, plans))
        .unionByName(_in_isr(runs, registry, logs, nodes, tables))
        .unionByName(_kept(runs, registry, logs, led, tables))
        .unionByName(_caught_up(runs, registry, logs, led, live))
        .unionByName(_carried_out(runs, facts.changes, plans, calm, live))
    )


def _one_leader(runs: DataFrame, logs: Logs) -> DataFrame:
    taken = logs.events.where(sql.col("kind") == EventKind.APPENDED).where(
        detail_field("leads", "boolean")
    )
    epoch = [*LIFE, "epoch"]
    first = sql.first("node").over(Window.partitionBy(*epoch).orderBy("seq"))
    of_epoch = taken.withColumn("epoch", detail_field("epoch", "int")).withColumn("first", first)
    return found(runs, ONE_LEADER.name, of_epoch.where("node <> first"), of_epoch)


def _unchanged(runs: DataFrame, logs: Logs) -> DataFrame:
    """An entry that differs from the committed one, below a high watermark of its broker."""
    marks = logs.events.where(sql.col("kind") == EventKind.COMMITTED).withColumn(
        "mark", detail_field("high_watermark", "long")
    )
    committed = logs.committed.select(
        *LIFE,
        "offset",
        sql.col("epoch").alias("first_epoch"),
        sql.col("number").alias("first_number"),
        sql.col("seq").alias("first_seq"),
    )
    other = (
        logs.entries.join(committed, [*PARTITION, "offset"])
        .where("epoch <> first_epoch OR number <> first_number")
        .where("ends > first_seq")
    )
    wrong = other.join(marks.select(*REPLICA, "life", "seq", "mark"), [*REPLICA, "life"]).where(
        is_there() & sql.expr("seq > first_seq AND offset < mark")
    )
    return found(runs, UNCHANGED.name, wrong, marks)


def _read(runs: DataFrame, facts: Facts, logs: Logs, plans: Plans) -> DataFrame:
    """A message that was handed on, and that no leader had committed at its offset."""
    handed = (
        ranges(facts.events, EventKind.CONSUMED)
        .drop("cluster")
        .join(plans.readers, ["run", "group"])
        .withColumn("seq", sql.col("seq").cast("long"))
        .select(
            *(*PARTITION, "seq", "first", "at"),
            sql.explode(sql.expr("sequence(`at`, `to` - 1)")).alias("offset"),
        )
        .withColumn("number", sql.expr("first + offset - `at`"))
    )
    message = [*PARTITION, "offset", "number"]
    committed = logs.committed.select(*message, sql.col("seq").alias("since"))
    seen = handed.join(committed, message).where("since < seq")
    unseen = handed.join(seen, [*message, "seq"], "left_anti")
    return found(runs, READ.name, unseen, handed)


# --- the ISR ---------------------------------------------------------------------------


def _in_isr(
    runs: DataFrame, registry: Registry, logs: Logs, nodes: DataFrame, tables: Tables
) -> DataFrame:
    """At each look at an ISR: the committed entries that a member does not have."""
    looks = tables.keep("isr_looks", _isr_looks(registry, logs))
    members = looks.select(*LIFE, "seq", "from", sql.explode("isr").alias("broker_id")).join(
        nodes, [*CLUSTER, "broker_id"], "left"
    )
    due = members.join(
        logs.committed.select(
            *LIFE,
            "offset",
            sql.col("epoch").alias("wanted_epoch"),
            sql.col("number").alias("wanted_number"),
            sql.col("seq").alias("committed_seq"),
        ),
        LIFE,
    ).where("committed_seq <= seq")
    wanted = tables.keep("isr_due", due.where("offset >= `from`"))
    has = (
        wanted.join(logs.entries, [*REPLICA, "offset"])
        .where(is_there() & sql.expr("epoch = wanted_epoch AND number = wanted_number"))
        .select(*LIFE, "seq", "broker_id", "offset")
    )
    lacking = wanted.join(has, [*LIFE, "seq", "broker_id", "offset"], "left_anti")
    return found(runs, IN_ISR.name, lacking, due)


def _isr_looks(registry: Registry, logs: Logs) -> DataFrame:
    """A row an event after which members of an ISR are compared, from an offset on."""
    written = with_life(
        registry.states.where("NOT gone").select(
            *PARTITION, "seq", sql.col("state.isr").alias("isr")
        ),
        registry,
    ).withColumn("from", sql.lit(0).cast("long"))
    isrs = registry.versions.select(
        *PARTITION, sql.col("state.isr").alias("isr"), "begins", "ends"
    )
    kind = sql.col("kind")
    first = logs.committed.groupBy(*LIFE, "seq").agg(sql.min("offset").alias("first"))
    changed = (
        logs.events.where(kind.isin(EventKind.COMMITTED, EventKind.TRUNCATED))
        .join(first, [*LIFE, "seq"], "left")
        .withColumn(
            "from",
            sql.when(kind == EventKind.TRUNCATED, detail_field("end", "long")).otherwise(
                sql.coalesce("first", sql.lit(NEVER))
            ),
        )
        .join(isrs, PARTITION)
        .where(is_there())
        .select(*LIFE, "seq", "isr", "from")
    )
    return written.select(*LIFE, "seq", "isr", "from").unionByName(changed)


# --- confirmed messages ----------------------------------------------------------------


def _kept(
    runs: DataFrame, registry: Registry, logs: Logs, led: DataFrame, tables: Tables
) -> DataFrame:
    """At each new leader, and at the end: the confirmed messages that it does not have."""
    begun = logs.events.where(sql.col("kind") == EventKind.BECAME_LEADER).select(
        *LIFE, "seq", "node"
    )
    at_end = with_life(
        led.select(*PARTITION, sql.lit(END).cast("long").alias("seq"), "node"), registry
    )
    looks = begun.unionByName(at_end.select(*LIFE, "seq", "node"))
    unclean = (
        logs.events.where(sql.col("kind") == EventKind.UNCLEAN_ELECTION)
        .groupBy(*LIFE)
        .agg(sql.min("seq").alias("unclean_seq"))
    )
    clean = looks.join(unclean, LIFE, "left").where("unclean_seq IS NULL OR unclean_seq > seq")
    said = logs.confirmed.select(*LIFE, "offset", "number", sql.col("seq").alias("confirmed_seq"))
    last = sql.max_by("number", "confirmed_seq").alias("wanted")
    due = tables.keep(
        "kept_due",
        clean.join(said, LIFE)
        .where("confirmed_seq < seq")
        .groupBy(*LIFE, "seq", "node", "offset")
        .agg(last),
    )
    has = (
        due.join(logs.entries, [*REPLICA, "offset"])
        .where(is_there() & sql.expr("number = wanted"))
        .select(*LIFE, "seq", "node", "offset")
    )
    lost = due.join(has, [*LIFE, "seq", "node", "offset"], "left_anti")
    return found(runs, KEPT.name, lost, due)


# --- at the end ------------------------------------------------------------------------


def calm_at_end(runs: DataFrame, events: DataFrame) -> DataFrame:
    """The runs at whose end no fault is in force."""
    left = faults_in_force(events).groupBy("run").agg(sql.sum("step").alias("left"))
    return runs.join(left, "run", "left").where("coalesce(left, 0) = 0").select("run")


def live_at_end(events: DataFrame, nodes: DataFrame) -> DataFrame:
    """The brokers whose process runs at the end, and the event at which it started."""
    last = (
        events.where(sql.col("kind").isin(EventKind.STARTED, EventKind.ENDED))
        .groupBy("run", "node")
        .agg(sql.max_by("kind", "seq").alias("kind"), sql.max("seq").alias("started"))
    )
    return (
        nodes.join(last, ["run", "node"])
        .where(sql.col("kind") == EventKind.STARTED)
        .select(*CLUSTER, "node", "broker_id", sql.col("started").cast("long").alias("started"))
    )


def _led_at_end(registry: Registry, live: DataFrame, calm: DataFrame) -> DataFrame:
    """The partitions that have a live leader at the end, with ISR and leader."""
    states = registry.versions.where(f"ends = {NEVER}").select(*PARTITION, "state")
    leader = live.select(*CLUSTER, "node", sql.col("broker_id").alias("leader"))
    return (
        states.withColumn("leader", sql.col("state.leader"))
        .join(leader, [*CLUSTER, "leader"])
        .join(calm, "run")
        .select(*PARTITION, "leader", "node", sql.col("state.isr").alias("isr"))
    )


def _caught_up(
    runs: DataFrame, registry: Registry, logs: Logs, led: DataFrame, live: DataFrame
) -> DataFrame:
    """The live replicas of led partitions that are outside of the ISR, or have another log."""
    assigned = registry.replicas.where(f"ends = {NEVER}").select(
        *PARTITION, sql.explode("replicas").alias("broker_id")
    )
    followers = (
        led.withColumnRenamed("node", "leader_node")
        .join(assigned.distinct(), PARTITION)
        .join(live.select(*CLUSTER, "node", "broker_id"), [*CLUSTER, "broker_id"])
        .where("node <> leader_node")
    )
    whole = _log_digests(logs)
    compared = followers.join(whole, REPLICA, "left").join(
        whole.select(
            *PARTITION,
            sql.col("node").alias("leader_node"),
            sql.col("digest").alias("leader_digest"),
        ),
        [*PARTITION, "leader_node"],
        "left",
    )
    behind = compared.where(
        "NOT array_contains(isr, broker_id) OR NOT (digest <=> leader_digest)"
    ).withColumn("seq", sql.lit(END).cast("long"))
    return at_the_end(found(runs, CAUGHT_UP.name, behind, followers))


def _log_digests(logs: Logs) -> DataFrame:
    """The whole log of each replica at the end, in order."""
    left = logs.entries.where(f"ends = {NEVER}")
    entry = sql.struct("offset", "epoch", "number")
    return left.groupBy(*REPLICA).agg(sql.sort_array(sql.collect_list(entry)).alias("digest"))


def _carried_out(
    runs: DataFrame, changes: DataFrame, plans: Plans, calm: DataFrame, live: DataFrame
) -> DataFrame:
    """The requests of administrators that are left, where every broker is alive."""
    only = plans.clusters.where("replicates_alone").select("run").join(calm, "run")
    brokers = plans.processes.where("role = 'broker'").join(
        plans.clusters.where("replicates"), CLUSTER
    )
    dead = brokers.join(live.select(*CLUSTER, "node"), [*CLUSTER, "node"], "left_anti")
    whole = only.join(dead.select("run").distinct(), "run", "left_anti")
    requested = (
        changes.where(sql.col("kind") == EventKind.APPLIED)
        .where(sql.col("path").isin(*sorted(REQUESTS)) | sql.col("path").rlike(DELETION))
        .join(whole, "run")
        .groupBy("run", "path")
        .agg(sql.max_by("what", sql.struct("seq", "at")).alias("what"))
    )
    left = requested.where("what <> 'deleted'").withColumn("seq", sql.lit(END).cast("long"))
    return at_the_end(found(runs, CARRIED_OUT.name, left, requested))


def at_the_end(found: DataFrame) -> DataFrame:
    """Verdicts of the end of a run: no event violates them."""
    return found.withColumn("seq", sql.lit(None).cast("long"))
