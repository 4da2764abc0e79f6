"""The registry of a cluster with a controller, as it was at each event of a run.

A version of a fact is true from the event `begins` on, up to the event `ends`. Where one event
changes several znodes, all of them change at once here; no transaction of a controller writes
one znode twice.
"""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.text import LONGEST_DATA
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import NEVER, Facts
from watchkeeper.pipeline.analysis.facts.tables import Tables

CLUSTER = ["run", "cluster"]
PARTITION = [*CLUSTER, "topic", "partition"]

STATE = rf"^{paths.TOPICS}/([^/]+)/partitions/([^/]+)/state$"
TOPIC = rf"^{paths.TOPICS}/([^/]+)$"
BROKER = rf"^{paths.BROKER_IDS}/([0-9]+)$"
DELETION = rf"^{paths.DELETE_TOPICS}/(.+)$"
SETTINGS = rf"^{paths.TOPIC_CONFIGS}/(.+)$"


class Registry(NamedTuple):
    """The tables of the registry."""

    written: DataFrame
    """A row a change of a znode by a process of a cluster, or by hand in the only one.

    The other tables have what was changed by hand only if `sees_hand`.
    """
    states: DataFrame
    """A row a state of a partition that can be read, with the state before it."""
    versions: DataFrame
    """A row an interval in which a partition has a state."""
    replicas: DataFrame
    """A row an interval in which a partition has its assigned replicas."""
    settings: DataFrame
    """A row an interval in which a topic has settings, with their data."""


def registry(
    facts: Facts, plans: Plans, tables: Tables, *, alone: str, sees_hand: bool
) -> Registry:
    """The registry of every cluster with a controller.

    What was changed by hand belongs to the cluster for which the column `alone` is true.
    """
    name = "seen_by_all" if sees_hand else "seen"
    written = tables.keep(f"written_{name}", _written(facts.changes, plans, alone))
    ours = written if sees_hand else written.where("NOT is_by_hand")
    states = tables.keep(f"states_{name}", _states(ours))
    return Registry(
        written,
        states,
        tables.keep(f"state_versions_{name}", versions(states, PARTITION)),
        tables.keep(f"replicas_{name}", _replicas(ours, plans)),
        _settings(written),
    )


def _written(changes: DataFrame, plans: Plans, alone: str) -> DataFrame:
    """Changes with their cluster; those of a session that has ended are by its holder."""
    ours = plans.processes.select(*CLUSTER, sql.col("node").alias("by"), "broker_id", "role")
    only = plans.clusters.where(alone).select("run", sql.col("cluster").alias("only"))
    known = (
        changes.drop("node")
        .join(ours, ["run", "by"], "left")
        .join(only, "run", "left")
        .withColumn("is_by_hand", sql.col("cluster").isNull())
        .withColumn("cluster", sql.coalesce("cluster", "only"))
    )
    return known.where("cluster IS NOT NULL").drop("only")


def applied(written: DataFrame) -> DataFrame:
    """The changes that a request has made, not the end of a session."""
    return written.where(sql.col("kind") == EventKind.APPLIED)


def _field(name: str) -> Column:
    return sql.get_json_object("data", f"$.{name}").try_cast("int")


def part_of(pattern: str, group: int = 1) -> Column:
    """A part of the path of a znode."""
    return sql.regexp_extract("path", pattern, group)


def _states(written: DataFrame) -> DataFrame:
    """States that can be read, and deletions of states, each with the state before.

    A write that cannot be read changes nothing here. `last` is the state before, also if that has
    ended with a session (`is_request` is false in the row of its end).
    """
    isr = sql.from_json(sql.get_json_object("data", "$.isr"), "array<int>")
    named = (
        written.where(sql.col("path").rlike(STATE))
        .withColumns(
            {
                "is_request": sql.col("kind") == EventKind.APPLIED,
                "topic": part_of(STATE, 1),
                "partition": part_of(STATE, 2),
                "gone": sql.col("what") == "deleted",
                "leader": _field("leader"),
                "leader_epoch": _field("leader_epoch"),
                "signed": _field("controller_epoch"),
                "isr": isr,
            }
        )
        .where(
            sql.expr(
                "gone OR (leader IS NOT NULL AND leader_epoch IS NOT NULL AND signed IS NOT NULL "
                "AND isr IS NOT NULL)"
            )
            & (sql.col("gone") | ~sql.exists("isr", lambda one: one.isNull()))
        )
    )
    state = sql.when(~sql.col("gone"), sql.struct("leader", "leader_epoch", "signed", "isr"))
    order = Window.partitionBy(*PARTITION).orderBy("seq", "at")
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    requested = sql.when(sql.col("is_request"), sql.struct("state"))
    return (
        named.withColumns({"state": state, "seq": sql.col("seq").cast("long")})
        .withColumns(
            {
                "before": sql.lag("state").over(order),
                "last": sql.last(requested, ignorenulls=True).over(earlier)["state"],
            }
        )
        .select(
            *PARTITION,
            *("seq", "at", "t_us", "by", "broker_id", "is_by_hand", "is_request"),
            *("gone", "state", "before", "last"),
        )
    )


def versions(rows: DataFrame, keys: list[str]) -> DataFrame:
    """From rows in which something is written or gone: the intervals in which it is there."""
    following = sql.lead("seq").over(Window.partitionBy(*keys).orderBy("seq", "at"))
    return (
        rows.withColumns(
            {
                "begins": sql.col("seq").cast("long"),
                "ends": sql.coalesce(following.cast("long"), sql.lit(NEVER)),
            }
        )
        .where("NOT gone AND begins < ends")
        .drop("seq", "at", "gone")
    )


def assignment() -> Column:
    """The assignment in the data of a topic's znode; null where it is cut or cannot be read."""
    is_whole = sql.length(sql.coalesce("data", sql.lit(""))) < LONGEST_DATA
    said = sql.from_json(sql.get_json_object("data", "$.partitions"), "map<string,array<int>>")
    return sql.when(is_whole, said)


def _replicas(written: DataFrame, plans: Plans) -> DataFrame:
    """The replicas of each partition; a write that is cut is read from the plan."""
    topics = (
        applied(written)
        .where(sql.col("path").rlike(TOPIC))
        .withColumns({"topic": part_of(TOPIC), "gone": sql.col("what") == "deleted"})
    )
    told = topics.where("NOT gone").withColumn("said", assignment())
    columns = [*PARTITION, "seq", "at", "replicas"]
    read = told.where("said IS NOT NULL").select(
        *CLUSTER, "topic", "seq", "at", sql.explode("said").alias("partition", "replicas")
    )
    planned = told.where("said IS NULL").join(plans.planned, [*CLUSTER, "topic"])
    found = read.select(*columns).unionByName(planned.select(*columns))
    known = found.select(*PARTITION).distinct()
    gone = topics.where("gone").join(known, [*CLUSTER, "topic"])
    rows = found.withColumn("gone", sql.lit(False)).unionByName(
        gone.select(*PARTITION, "seq", "at", "gone"), allowMissingColumns=True
    )
    return versions(rows, PARTITION)


def _settings(written: DataFrame) -> DataFrame:
    rows = (
        applied(written)
        .where(sql.col("path").rlike(SETTINGS))
        .withColumns({"topic": part_of(SETTINGS), "gone": sql.col("what") == "deleted"})
        .select(*CLUSTER, "topic", "seq", "at", "gone", "data", "is_by_hand")
    )
    return versions(rows, [*CLUSTER, "topic"])


def overrides() -> Column:
    """The settings in the data of a topic's znode; null where they cannot be read."""
    return sql.from_json(sql.get_json_object("data", "$.config"), "map<string,string>")


def registrations(written: DataFrame) -> DataFrame:
    """A row an interval in which a broker id is registered."""
    rows = (
        written.where(sql.col("path").rlike(BROKER))
        .where("NOT is_by_hand")
        .withColumns({"id": part_of(BROKER).cast("int"), "gone": sql.col("what") == "deleted"})
        .select(*CLUSTER, "id", "seq", "at", "gone")
    )
    return versions(rows, [*CLUSTER, "id"])
