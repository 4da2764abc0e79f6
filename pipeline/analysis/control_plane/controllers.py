"""The properties of controllers, a second time: epochs, who writes states, and who leads.

`always` compares each state with what was written before it. The properties at rest look at the
registry at the moment at which a rest of the cluster has lasted long enough.
"""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.controllers import (
    ACTING,
    DEPOSED,
    EPOCHS,
    IN_SYNC,
    LED,
    ONE_CONTROLLER,
)
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.control_plane.registry import (
    CLUSTER,
    DELETION,
    PARTITION,
    Registry,
    applied,
    overrides,
    part_of,
    registrations,
    versions,
)
from watchkeeper.pipeline.analysis.engine.api import DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import Facts
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import found

CONTROLLER_ROLES = "role IN ('broker', 'administrator')"


def always(runs: DataFrame, registry: Registry, tables: Tables) -> DataFrame:
    """The four properties that hold at every write."""
    epochs = _epochs(registry.written)
    signed = tables.keep("signed_states", _signed(registry.states, epochs))
    judged = signed.where("NOT is_of_leader")
    raised_before = epochs.where("before IS NOT NULL")
    epoch_fell = raised_before.where("epoch < before").select("run", "seq")
    later = judged.where("last IS NOT NULL")
    state_fell = later.where(
        "state.signed < last.signed OR state.leader_epoch <= last.leader_epoch"
    )
    of_epochs = found(
        runs,
        EPOCHS.name,
        epoch_fell.unionByName(state_fell.select("run", "seq")),
        raised_before.select("run").unionByName(later.select("run")),
    )
    strangers = judged.where("NOT (raised_by <=> by)")
    deposed = judged.where("state.signed < coalesce(present, 0)")
    isrs = tables.keep("isrs", _with_replicas(signed, registry.replicas))
    return (
        found(runs, ONE_CONTROLLER.name, strangers, judged)
        .unionByName(of_epochs)
        .unionByName(found(runs, DEPOSED.name, deposed, judged.where("present > 1")))
        .unionByName(found(runs, IN_SYNC.name, isrs.where(_is_wrong_isr()), isrs))
    )


def _epochs(written: DataFrame) -> DataFrame:
    """A row a write of the controller epoch, with the epoch before."""
    order = Window.partitionBy(*CLUSTER).orderBy("seq", "at")
    return (
        applied(written)
        .where(sql.col("path") == paths.CONTROLLER_EPOCH)
        .where("what <> 'deleted' AND NOT is_by_hand")
        .withColumn("epoch", sql.col("data").try_cast("int"))
        .withColumn("before", sql.lag("epoch").over(order))
        .select(*CLUSTER, "seq", "at", "by", "epoch", "before")
    )


def _signed(states: DataFrame, epochs: DataFrame) -> DataFrame:
    """A row a state of a process, with the epoch of that moment and who has raised its own."""
    order = Window.partitionBy(*CLUSTER).orderBy("seq", "at")
    of_epoch = Window.partitionBy(*CLUSTER, "signed").orderBy("seq", "at")
    ours = states.where("NOT gone").withColumn("signed", sql.col("state.signed"))
    raises = epochs.select(
        *CLUSTER,
        "seq",
        "at",
        sql.col("epoch").alias("signed"),
        sql.col("epoch").alias("present"),
        sql.col("by").alias("raised_by"),
    )
    both = ours.unionByName(raises, allowMissingColumns=True)
    is_of_leader = (
        sql.col("before").isNotNull()
        & (sql.col("broker_id") == sql.col("state.leader"))
        & (sql.col("before.leader") == sql.col("state.leader"))
        & (sql.col("before.leader_epoch") == sql.col("state.leader_epoch"))
        & (sql.col("before.signed") == sql.col("state.signed"))
    )
    return (
        both.withColumns(
            {
                "present": sql.last("present", ignorenulls=True).over(order),
                "raised_by": sql.last("raised_by", ignorenulls=True).over(of_epoch),
                "is_of_leader": sql.coalesce(is_of_leader, sql.lit(False)),
            }
        )
        .where("state IS NOT NULL")
        .drop("signed")
    )


def _with_replicas(states: DataFrame, replicas: DataFrame) -> DataFrame:
    """States with the assigned replicas of that moment; null where they are unknown."""
    spans = replicas.select(*PARTITION, "replicas", "begins", "ends")
    return states.join(spans, PARTITION, "left").where(
        "begins IS NULL OR (begins <= seq AND seq < ends)"
    )


def _is_wrong_isr() -> str:
    return (
        "size(state.isr) = 0 "
        f"OR (state.leader <> {NO_LEADER} AND NOT array_contains(state.isr, state.leader)) "
        "OR (replicas IS NOT NULL AND size(array_except(state.isr, replicas)) > 0)"
    )


# --- at rest ---------------------------------------------------------------------------


def at_rest(
    runs: DataFrame,
    facts: Facts,
    registry: Registry,
    plans: Plans,
    there: DataFrame,
    tables: Tables,
) -> DataFrame:
    """The two properties at rest; `there` has the looks with the brokers that are alive."""
    idle = without_controller(there, facts, registry, plans)
    partitions = tables.keep("able", able(there, registry, plans).where("size(able) > 0"))
    unled = partitions.where("state IS NULL OR NOT array_contains(live, state.leader)")
    return found(runs, ACTING.name, idle, there).unionByName(
        found(runs, LED.name, unled, partitions)
    )


def with_brokers(looks: DataFrame, registry: Registry) -> DataFrame:
    """The looks at which a broker is alive, with all of them.

    `looks` has run, cluster, seq: the last event before one.
    """
    live = registrations(registry.written).select(*CLUSTER, "id", "begins", "ends")
    known = looks.join(live, CLUSTER).where("begins <= seq AND seq < ends")
    return known.groupBy(*CLUSTER, "seq").agg(sql.array_sort(sql.collect_set("id")).alias("live"))


def without_controller(
    looks: DataFrame, facts: Facts, registry: Registry, plans: Plans
) -> DataFrame:
    """The looks at which the broker that `/controller` names does not act."""
    named = versions(
        registry.written.where(sql.col("path") == paths.CONTROLLER)
        .where("NOT is_by_hand")
        .withColumn("gone", sql.col("what") == "deleted")
        .select(*CLUSTER, "by", "seq", "at", "gone"),
        CLUSTER,
    )
    acting = _acting(facts.events, plans)
    there = looks.join(named, CLUSTER).where("begins <= seq AND seq < ends")
    works = (
        there.drop("begins", "ends")
        .join(acting, [*CLUSTER, "by"])
        .where("begins <= seq AND seq < ends")
    )
    return looks.join(works.select(*CLUSTER, "seq"), [*CLUSTER, "seq"], "left_anti")


def _acting(events: DataFrame, plans: Plans) -> DataFrame:
    """A row an interval in which a broker acts as the controller."""
    kinds = (EventKind.CONTROLLER_RESIGNED, EventKind.STARTED, EventKind.ENDED)
    rows = (
        events.where(sql.col("kind").isin(EventKind.FAILOVER_COMPLETED, *kinds))
        .join(plans.processes.select(*CLUSTER, "node"), ["run", "node"])
        .select(
            *CLUSTER,
            sql.col("node").alias("by"),
            "seq",
            sql.lit(0).alias("at"),
            (sql.col("kind") != EventKind.FAILOVER_COMPLETED).alias("gone"),
        )
    )
    return versions(rows, [*CLUSTER, "by"])


def able(looks: DataFrame, registry: Registry, plans: Plans) -> DataFrame:
    """A row a look and a partition, with the state of then and the live replicas that may lead.

    Without those of topics that are to be deleted.
    """
    at_look = [*CLUSTER, "topic", "partition", "seq"]
    assigned = (
        looks.join(registry.replicas, CLUSTER)
        .where("begins <= seq AND seq < ends")
        .drop("begins", "ends")
        .join(deletions(registry.written), [*CLUSTER, "topic"], "left")
        .groupBy(*at_look, "live", "replicas")
        .agg(sql.max(sql.expr("coalesce(begins <= seq AND seq < ends, false)")).alias("goes"))
        .where("NOT goes")
        .drop("goes")
    )
    versions = registry.versions.select(*PARTITION, "state", "begins", "ends")
    of_state = (
        assigned.select(*at_look)
        .join(versions, PARTITION)
        .where("begins <= seq AND seq < ends")
        .select(*at_look, "state")
    )
    with_state = assigned.join(of_state, at_look, "left")
    unclean = _unclean(with_state, registry, plans, at_look)
    may_lead = sql.when(
        sql.col("state").isNull() | sql.col("unclean"), sql.col("replicas")
    ).otherwise(sql.col("state.isr"))
    return unclean.withColumn("able", sql.array_intersect(may_lead, "live"))


def _unclean(
    partitions: DataFrame, registry: Registry, plans: Plans, at_look: list[str]
) -> DataFrame:
    """Whether an unclean election is allowed: the topic's setting before that of the brokers."""
    said = sql.lower(overrides()["unclean.leader.election.enable"])
    own = sql.when(said == "true", sql.lit(True)).when(said == "false", sql.lit(False))
    settings = registry.settings.select(
        *CLUSTER, "topic", own.alias("own"), "begins", "ends"
    ).where("own IS NOT NULL")
    of_topic = (
        partitions.select(*at_look)
        .join(settings, [*CLUSTER, "topic"])
        .where("begins <= seq AND seq < ends")
        .select(*at_look, "own")
    )
    return (
        partitions.join(of_topic, at_look, "left")
        .join(plans.clusters.select(*CLUSTER, "allows_unclean"), CLUSTER)
        .withColumn("unclean", sql.coalesce("own", "allows_unclean"))
    )


def deletions(written: DataFrame) -> DataFrame:
    """A row an interval in which a topic is to be deleted."""
    rows = (
        applied(written)
        .where(sql.col("path").rlike(DELETION))
        .withColumns({"topic": part_of(DELETION), "gone": sql.col("what") == "deleted"})
        .where("NOT (is_by_hand AND gone)")
    )
    return versions(rows.select(*CLUSTER, "topic", "seq", "at", "gone"), [*CLUSTER, "topic"])
