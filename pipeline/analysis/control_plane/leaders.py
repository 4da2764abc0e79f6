"""Who leads at rest, a second time: by joins of looks with what was true then.

A request for a preferred replica is followed by what ends it: the first event after it by which
the replica is no longer the preferred one, is dead or leaves the ISR.
"""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.leaders import (
    CALM_ENDS,
    LARGEST_IMBALANCE_PERCENT,
    NO_DEAD_LEADERS,
    OF_BROKERS,
    PREFERRED,
    REQUESTS,
)
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.controllers import (
    able,
    deletions,
    with_brokers,
    without_controller,
)
from watchkeeper.pipeline.analysis.control_plane.plans import NO_CALM, Plans
from watchkeeper.pipeline.analysis.control_plane.registry import (
    CLUSTER,
    PARTITION,
    Registry,
    applied,
    registrations,
)
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import NEVER, Facts
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import found
from watchkeeper.pipeline.analysis.properties.quiescence import faults_in_force

LOOK = [*CLUSTER, "seq"]
WANTED = "struct<partitions: array<struct<topic: string, partition: int>>>"


def dead_leaders(
    runs: DataFrame, registry: Registry, plans: Plans, there: DataFrame, tables: Tables
) -> DataFrame:
    """The property that no dead broker is named; `there` has the looks with the live brokers."""
    unled = tables.keep(
        "unled",
        able(there, registry, plans).where(
            "size(able) = 0 AND state IS NOT NULL AND NOT array_contains(live, state.leader)"
        ),
    )
    return found(runs, NO_DEAD_LEADERS.name, unled.where(f"state.leader <> {NO_LEADER}"), unled)


def preferred(
    runs: DataFrame,
    facts: Facts,
    registry: Registry,
    plans: Plans,
    there: DataFrame,
    tables: Tables,
) -> DataFrame:
    """The property that preferred replicas lead, of clusters that replicate."""
    clusters = plans.clusters.where("replicates").select(*CLUSTER)
    looks = there.join(clusters, CLUSTER)
    requests = tables.keep("election_requests", _requests(registry.written))
    left = _at(looks, requests.where(sql.col("path") == paths.PREFERRED_REPLICA_ELECTION))
    due = tables.keep("due_elections", _due(looks, requests, registry))
    calm = tables.keep("calms", _calms(runs, facts, registry, plans, requests, tables))
    wrong = (
        left.select("run", "seq")
        .unionByName(due.where("leader <> preferred").select("run", "seq"))
        .unionByName(calm.where("leads_too_little AND leader <> preferred").select("run", "seq"))
    )
    seen = left.select("run").unionByName(due.select("run")).unionByName(calm.select("run"))
    return found(runs, PREFERRED.name, wrong, seen)


def _at(looks: DataFrame, spans: DataFrame) -> DataFrame:
    """The looks at which something is there."""
    return looks.join(spans.select(*CLUSTER, "begins", "ends"), CLUSTER).where(
        "begins <= seq AND seq < ends"
    )


# --- requests --------------------------------------------------------------------------


def _requests(written: DataFrame) -> DataFrame:
    """A row an interval in which a request is there, and whether a broker deletes it then."""
    order = Window.partitionBy(*CLUSTER, "path").orderBy("seq", "at")
    rows = (
        applied(written)
        .where(sql.col("path").isin(*sorted(REQUESTS)))
        .withColumns(
            {"begins": sql.col("seq").cast("long"), "gone": sql.col("what") == "deleted"}
        )
        .withColumns(
            {
                "ends": sql.coalesce(sql.lead("begins").over(order), sql.lit(NEVER)),
                "is_done": sql.coalesce(
                    sql.lead("gone").over(order) & (sql.lead("role").over(order) == "broker"),
                    sql.lit(False),
                ),
            }
        )
    )
    return rows.where("NOT gone").select(*CLUSTER, "path", "data", "begins", "ends", "is_done")


def _due(looks: DataFrame, requests: DataFrame, registry: Registry) -> DataFrame:
    """A row a look and a partition that a preferred replica was requested to lead before."""
    rows = sql.from_json("data", WANTED)["partitions"]
    known = requests.where(
        (sql.col("path") == paths.PREFERRED_REPLICA_ELECTION) & sql.col("is_done")
    ).withColumn("rows", rows)
    wanted = (
        known.where(
            ~sql.exists("rows", lambda one: one["topic"].isNull() | one["partition"].isNull())
        )
        .select(*CLUSTER, "begins", "ends", sql.explode("rows").alias("one"))
        .select(
            *CLUSTER,
            sql.col("begins").alias("asked"),
            sql.col("ends").alias("done"),
            sql.col("one.topic").alias("topic"),
            sql.col("one.partition").cast("string").alias("partition"),
        )
    )
    able_then = _able_to_lead(wanted, registry, "asked")
    lasting = _until_it_ends(able_then, registry)
    states = registry.versions.select(
        *PARTITION, sql.col("state.leader").alias("leader"), "begins", "ends"
    )
    due = (
        looks.select(*LOOK)
        .join(lasting, CLUSTER)
        .where("done <= seq AND seq < over")
        .join(states, PARTITION)
        .where("begins <= seq AND seq < ends")
        .drop("begins", "ends")
    )
    return _without_deletions(due, registry)


def _able_to_lead(rows: DataFrame, registry: Registry, at: str) -> DataFrame:
    """The partitions whose preferred replica is alive and in the ISR at an event."""
    assigned = registry.replicas.select(
        *PARTITION,
        sql.col("replicas")[0].alias("preferred"),
        sql.col("begins").alias("assigned"),
        sql.col("ends").alias("reassigned"),
    )
    states = registry.versions.select(*PARTITION, "state.isr", "begins", "ends")
    live = registrations(registry.written).select(
        *CLUSTER, sql.col("id").alias("preferred"), sql.col("begins").alias("born"), "ends"
    )
    return (
        rows.join(assigned, PARTITION)
        .where(f"assigned <= {at} AND {at} < reassigned")
        .join(states, PARTITION)
        .where(f"begins <= {at} AND {at} < ends AND array_contains(isr, preferred)")
        .drop("begins", "ends", "assigned", "reassigned", "isr")
        .join(live, [*CLUSTER, "preferred"])
        .where(f"born <= {at} AND {at} < ends")
        .withColumnRenamed("ends", "died")
        .drop("born")
    )


def _until_it_ends(wanted: DataFrame, registry: Registry) -> DataFrame:
    """When the preferred replica of each partition cannot lead any more: the column `over`."""
    out = registry.states.select(
        *PARTITION,
        sql.col("seq").alias("at"),
        sql.when(~sql.col("gone"), sql.col("state.isr")).alias("isr"),
        sql.lit(None).cast("int").alias("head"),
    )
    moved = registry.replicas.select(
        *PARTITION,
        sql.col("begins").alias("at"),
        sql.lit(None).cast("array<int>").alias("isr"),
        sql.col("replicas")[0].alias("head"),
    )
    key = [*PARTITION, "asked", "done", "preferred", "died"]
    is_out = "head IS NULL AND NOT coalesce(array_contains(isr, preferred), false)"
    ended = (
        wanted.join(out.unionByName(moved), PARTITION)
        .where(f"at > asked AND ({is_out} OR head <> preferred)")
        .groupBy(*key)
        .agg(sql.min("at").alias("ended"))
    )
    return wanted.join(ended, key, "left").withColumn(
        "over", sql.least("died", sql.coalesce("ended", sql.lit(NEVER)))
    )


def _without_deletions(rows: DataFrame, registry: Registry) -> DataFrame:
    """Without the partitions of topics that are to be deleted at a look."""
    goes = deletions(registry.written).withColumnsRenamed({"begins": "since", "ends": "till"})
    going = rows.join(goes, [*CLUSTER, "topic"]).where("since <= seq AND seq < till")
    key = [*LOOK, "topic"]
    return rows.join(going.select(*key).distinct(), key, "left_anti")


# --- calms -----------------------------------------------------------------------------


def _calms(
    runs: DataFrame,
    facts: Facts,
    registry: Registry,
    plans: Plans,
    requests: DataFrame,
    tables: Tables,
) -> DataFrame:
    """A row a calm and a partition that its preferred replica could lead, with the leader."""
    long = tables.keep("long_calms", _long_calms(runs, facts, plans))
    busy = _at(long, requests).select(*LOOK).distinct()
    there = tables.keep(
        "calms_with_brokers", with_brokers(long.join(busy, LOOK, "left_anti"), registry)
    )
    idle = without_controller(there, facts, registry, plans).select(*LOOK)
    looks = there.join(idle, LOOK, "left_anti")
    own = _without_deletions(_own(looks, registry), registry)
    of_broker = Window.partitionBy(*LOOK, "preferred")
    away = sql.sum(_is_away().cast("int")).over(of_broker)
    too_little = 100 * away > LARGEST_IMBALANCE_PERCENT * sql.count("*").over(of_broker)
    return own.withColumn("leads_too_little", too_little).where(
        "leader IS NOT NULL AND array_contains(isr, preferred)"
    )


def _is_away() -> Column:
    return sql.coalesce(sql.col("leader") != sql.col("preferred"), sql.lit(False))


def _own(looks: DataFrame, registry: Registry) -> DataFrame:
    """A row a look and a partition whose preferred replica is alive, with its state if any."""
    assigned = registry.replicas.select(
        *PARTITION, sql.col("replicas")[0].alias("preferred"), "begins", "ends"
    )
    at_look = [*PARTITION, "seq"]
    own = (
        looks.join(assigned, CLUSTER)
        .where("begins <= seq AND seq < ends AND array_contains(live, preferred)")
        .drop("begins", "ends")
    )
    states = registry.versions.select(
        *PARTITION, sql.col("state.leader").alias("leader"), "state.isr", "begins", "ends"
    )
    of_state = (
        own.select(*at_look)
        .join(states, PARTITION)
        .where("begins <= seq AND seq < ends")
        .select(*at_look, "leader", "isr")
    )
    return own.join(of_state, at_look, "left")


def _long_calms(runs: DataFrame, facts: Facts, plans: Plans) -> DataFrame:
    """The events after which nothing happened that concerns a controller, for long enough."""
    kinds = sql.col("kind").isin(*sorted(CALM_ENDS))
    of_kinds = facts.events.where(kinds).select("run", "seq")
    is_ours = sql.lit(False)
    for above in OF_BROKERS:
        is_ours = is_ours | sql.col("path").startswith(above)
    of_znodes = facts.changes.where(sql.col("kind") == EventKind.APPLIED).where(is_ours)
    ends = of_kinds.unionByName(of_znodes.select("run", "seq")).distinct()
    began = facts.events.select("run", "seq", "t_us")
    following = sql.lead("t_us").over(Window.partitionBy("run").orderBy("seq"))
    calms = (
        ends.join(began, ["run", "seq"])
        .join(runs.select("run", "end_us"), "run")
        .withColumn("lasts_us", sql.coalesce(following, sql.col("end_us")) - sql.col("t_us"))
        .select("run", sql.col("seq").cast("long").alias("seq"), "lasts_us")
    )
    long = plans.clusters.where(f"calm_us <> {NO_CALM}").select(*CLUSTER, "calm_us")
    return (
        _without_faults(calms, facts).join(long, "run").where("lasts_us >= calm_us").select(*LOOK)
    )


def _without_faults(calms: DataFrame, facts: Facts) -> DataFrame:
    """The calms in which no fault is in force."""
    steps = faults_in_force(facts.events).select(
        "run", sql.col("seq").cast("long").alias("seq"), "step"
    )
    so_far = (
        Window.partitionBy("run")
        .orderBy("seq")
        .rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    both = calms.withColumn("step", sql.lit(0)).unionByName(steps, allowMissingColumns=True)
    return (
        both.withColumn("in_force", sql.sum("step").over(so_far))
        .where("lasts_us IS NOT NULL AND in_force = 0")
        .select("run", "seq", "lasts_us")
    )
