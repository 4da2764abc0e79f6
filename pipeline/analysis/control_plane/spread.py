"""How tools spread the partitions that they add, a second time."""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.spread import SPREAD
from watchkeeper.pipeline.analysis.control_plane.registry import (
    CLUSTER,
    TOPIC,
    Registry,
    applied,
    assignment,
    part_of,
    registrations,
)
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import found


def judged(runs: DataFrame, registry: Registry, tables: Tables) -> DataFrame:
    """The property, with a row a run."""
    added = tables.keep("added_partitions", _added(registry))
    live = (
        added.select(*CLUSTER, "seq")
        .distinct()
        .join(registrations(registry.written), CLUSTER)
        .where("begins < seq AND seq < ends")
        .groupBy(*CLUSTER, "seq")
        .agg(sql.array_sort(sql.collect_set("id")).alias("live"))
    )
    seen = added.join(live, [*CLUSTER, "seq"]).withColumns(
        {"earlier": _heads("before"), "later": _heads("said")}
    )
    due = seen.where(
        (sql.size(sql.array_except("earlier", "live")) == 0) & (_spread("earlier") <= 1)
    )
    return found(runs, SPREAD.name, due.where(_spread("later") > 1), due)


def _added(registry: Registry) -> DataFrame:
    """The writes by tools that only add partitions, to topics that nothing else has written."""
    gone = sql.col("what") == "deleted"
    is_tool = sql.coalesce(sql.col("role") == "administrator", sql.lit(False))
    order = Window.partitionBy(*CLUSTER, "path").orderBy("seq", "at")
    in_life = Window.partitionBy(*CLUSTER, "path", "life").orderBy("seq", "at")
    rows = (
        applied(registry.written)
        .where(sql.col("path").rlike(TOPIC))
        .withColumns(
            {
                "topic": part_of(TOPIC),
                "seq": sql.col("seq").cast("long"),
                "said": sql.when(~gone, assignment()),
                "life": sql.sum(gone.cast("int")).over(order),
            }
        )
        .where(~gone)
    )
    foreign = (~is_tool | sql.col("said").isNull()).cast("int")
    return (
        rows.withColumns(
            {
                "foreign": sql.max(foreign).over(in_life),
                "before": sql.lag("said").over(in_life),
            }
        )
        .where("foreign = 0 AND before IS NOT NULL")
        .where(sql.size(sql.map_keys("said")) > sql.size(sql.map_keys("before")))
        .where(sql.forall(sql.map_keys("before"), _is_unchanged))
        .select(*CLUSTER, "topic", "seq", "said", "before")
    )


def _is_unchanged(key: Column) -> Column:
    return sql.col("said")[key].eqNullSafe(sql.col("before")[key])


def _heads(name: str) -> Column:
    """The first replica of each partition that has one."""
    lists = sql.filter(sql.map_values(name), lambda replicas: sql.size(replicas) > 0)
    return sql.transform(lists, lambda replicas: replicas[0])


def _spread(heads: str) -> Column:
    """By how much the numbers of partitions differ that live brokers should lead."""
    shares = sql.transform(
        "live",
        lambda broker: sql.size(sql.filter(heads, lambda head: head == broker)),
    )
    return sql.array_max(shares) - sql.array_min(shares)
