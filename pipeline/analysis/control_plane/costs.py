"""The work of controllers, a second time: counted by cluster, against its causes."""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.costs import (
    CONTROLLER_WORK,
    OF_CONTROLLERS,
    REQUESTED,
    REQUESTS_OF_A_FAILOVER,
    REQUESTS_OF_A_MOVE,
    WRITES_OF_A_PARTITION,
)
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.control_plane.registry import (
    CLUSTER,
    DELETION,
    STATE,
    TOPIC,
    Registry,
    applied,
)
from watchkeeper.pipeline.analysis.control_plane.replication import END, at_the_end
from watchkeeper.pipeline.analysis.engine.api import DataFrame, sql
from watchkeeper.pipeline.analysis.facts.intervals import NEVER, Facts, detail_field
from watchkeeper.pipeline.analysis.properties.ownership import found

OF_BROKERS = {
    EventKind.STARTED: "causes",
    EventKind.SUSPENDED: "causes",
    EventKind.SHUT_DOWN: "causes",
    EventKind.CONTROLLER_ELECTED: "reigns",
    EventKind.CONTROL_SENT: "requests",
}
"""Kind of event at a broker -> what it counts for."""
COUNTED = ("causes", "reigns", "requests", "writes", "announced")


def judged(runs: DataFrame, facts: Facts, registry: Registry, plans: Plans) -> DataFrame:
    """The property, with a row a run."""
    brokers = plans.processes.where("role = 'broker'").select(*CLUSTER, "node")
    rows = _at_brokers(facts, brokers).unionByName(_applied(facts, registry))
    sums = [sql.sum((sql.col("what") == what).cast("int")).alias(what) for what in COUNTED]
    work = (
        rows.groupBy(*CLUSTER)
        .agg(*sums)
        .join(brokers.groupBy(*CLUSTER).agg(sql.count("*").alias("brokers")), CLUSTER)
        .join(_partitions(registry), CLUSTER, "left")
        .withColumn("partitions", sql.coalesce("partitions", sql.lit(0)))
        .where("reigns > 0")
    )
    wrong = work.where(
        "reigns > causes "
        f"OR writes > ({WRITES_OF_A_PARTITION} + brokers) * partitions * causes "
        f"OR requests > (({REQUESTS_OF_A_MOVE} * partitions + {REQUESTS_OF_A_FAILOVER}) "
        "* causes + coalesce(announced, 0)) * brokers"
    ).withColumn("seq", sql.lit(END).cast("long"))
    return at_the_end(found(runs, CONTROLLER_WORK.name, wrong, work))


def _at_brokers(facts: Facts, brokers: DataFrame) -> DataFrame:
    """What brokers do and what becomes of them, and of their sessions."""
    named = sql.create_map(*(sql.lit(text) for pair in OF_BROKERS.items() for text in pair))
    events = facts.events.where(sql.col("kind").isin(*OF_BROKERS)).select(
        "run", "node", named[sql.col("kind")].alias("what")
    )
    ended = facts.sessions.where(f"ends < {NEVER}").select(
        "run", sql.col("holder").alias("node"), sql.lit("causes").alias("what")
    )
    return events.unionByName(ended).join(brokers, ["run", "node"]).select(*CLUSTER, "what")


def _applied(facts: Facts, registry: Registry) -> DataFrame:
    """Writes of states by controllers, and what other programs have changed."""
    purposes = facts.events.where(sql.col("kind") == EventKind.APPLIED).select(
        "run", "seq", detail_field("purpose").alias("purpose")
    )
    path, gone = sql.col("path"), sql.col("what") == "deleted"
    is_state, is_topic = path.rlike(STATE), path.rlike(TOPIC)
    of_broker = sql.coalesce(sql.col("role") == "broker", sql.lit(False))
    is_write = is_state & ~gone & of_broker & sql.col("purpose").isin(*sorted(OF_CONTROLLERS))
    is_cause = ~of_broker & sql.when(gone, is_topic | (path == paths.CONTROLLER)).otherwise(
        is_topic | path.isin(*REQUESTED) | path.rlike(DELETION)
    )
    is_announced = path.startswith(paths.ISR_CHANGE) & (sql.col("what") == "created")
    counts = sql.when(is_write, "writes").when(is_cause, "causes").when(is_announced, "announced")
    return (
        applied(registry.written)
        .join(purposes, ["run", "seq"])
        .select(*CLUSTER, counts.alias("what"))
        .where("what IS NOT NULL")
    )


def _partitions(registry: Registry) -> DataFrame:
    """How many partitions of each cluster ever had a state."""
    return (
        applied(registry.written)
        .where(sql.col("path").rlike(STATE) & (sql.col("what") != "deleted"))
        .groupBy(*CLUSTER)
        .agg(sql.countDistinct("path").alias("partitions"))
    )
