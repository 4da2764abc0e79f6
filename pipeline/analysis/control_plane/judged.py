"""Every property of clusters with a controller, for the runs that they are about."""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.pipeline.analysis.control_plane import (
    brokers,
    controllers,
    costs,
    halts,
    isrs,
    leaders,
    marks,
    replication,
    requests,
    spread,
    updates,
)
from watchkeeper.pipeline.analysis.control_plane.logs import logs
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.control_plane.registry import CLUSTER, registry
from watchkeeper.pipeline.analysis.engine.api import DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import Facts
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import no_verdicts
from watchkeeper.pipeline.analysis.properties.quiescence import rests_of


class _Clusters(NamedTuple):
    """The clusters as groups of processes that rest together."""

    groups: DataFrame
    nodes: DataFrame


def of_control_planes(
    runs: DataFrame, facts: Facts, restless: DataFrame, plans: Plans, tables: Tables
) -> DataFrame:
    """A row a property and a run whose brokers elect a controller, and of replicas if they
    replicate; `runs` has `end_us`. No row without such a run."""
    elect = runs.join(plans.clusters.select("run").distinct(), "run", "left_semi")
    replicate = runs.join(plans.clusters.where("replicates").select("run"), "run", "left_semi")
    own = Tables(tables.engine, tables.home / "control_plane")
    if elect.isEmpty():
        return no_verdicts(elect)
    seen = registry(facts, plans, own, alone="is_alone", sees_hand=False)
    looks = own.keep("looks_at_ends", _looks(facts, restless, elect, plans, own))
    there = own.keep("looks_with_brokers", controllers.with_brokers(looks, seen))
    found = (
        own.keep("always", controllers.always(elect, seen, own))
        .unionByName(
            own.keep("at_rest", controllers.at_rest(elect, facts, seen, plans, there, own))
        )
        .unionByName(
            own.keep("dead_leaders", leaders.dead_leaders(elect, seen, plans, there, own))
        )
        .unionByName(own.keep("updates", updates.judged(elect, facts, seen, plans, own)))
        .unionByName(own.keep("costs", costs.judged(elect, facts, seen, plans)))
        .unionByName(own.keep("spread", spread.judged(elect, seen, own)))
    )
    if replicate.isEmpty():
        return found
    all_seen = registry(facts, plans, own, alone="replicates_alone", sees_hand=True)
    stored = logs(facts, seen, plans, own)
    return (
        found.unionByName(
            own.keep(
                "replication", replication.judged(replicate, facts, seen, stored, plans, own)
            )
        )
        .unionByName(own.keep("brokers", brokers.judged(replicate, facts, all_seen, plans, own)))
        .unionByName(own.keep("marks", marks.judged(replicate, facts, plans)))
        .unionByName(
            own.keep("preferred", leaders.preferred(replicate, facts, seen, plans, there, own))
        )
        .unionByName(own.keep("requests", requests.judged(replicate, facts, plans)))
        .unionByName(own.keep("halts", halts.judged(replicate, facts, plans)))
        .unionByName(own.keep("known_isrs", isrs.judged(replicate, facts, all_seen, plans)))
    )


def _looks(
    facts: Facts, restless: DataFrame, runs: DataFrame, plans: Plans, tables: Tables
) -> DataFrame:
    """The last event before each moment at which a rest of a cluster is judged."""
    clusters = _Clusters(
        plans.clusters.select("run", sql.col("cluster").alias("group"), "quiet_us"),
        plans.processes.where(controllers.CONTROLLER_ROLES).select(
            "run", sql.col("cluster").alias("group"), "node", "role"
        ),
    )
    looks = rests_of(facts, restless, runs, clusters, tables).looks
    began = facts.events.select("run", "seq", "t_us")
    due = (
        looks.join(began, ["run", "seq"])
        .join(clusters.groups, ["run", "group"])
        .select(
            "run",
            sql.col("group").alias("cluster"),
            (sql.col("t_us") + sql.col("quiet_us")).alias("t_us"),
            sql.lit(None).cast("long").alias("seq"),
        )
    )
    moments = began.select(
        "run",
        sql.lit(None).cast("string").alias("cluster"),
        "t_us",
        sql.col("seq").cast("long").alias("seq"),
    ).unionByName(due)
    # At the same time, a look comes before an event: what it changes is not seen.
    order = (
        Window.partitionBy("run")
        .orderBy("t_us", sql.col("seq").asc_nulls_first())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        moments.withColumn("last", sql.last("seq", ignorenulls=True).over(order))
        .where("cluster IS NOT NULL")
        .select(*CLUSTER, sql.col("last").alias("seq"))
        .where("seq IS NOT NULL")
        .distinct()
    )
