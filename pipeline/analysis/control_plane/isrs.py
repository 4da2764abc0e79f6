"""Whether brokers know the ISRs, a second time."""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.isrs import KNOWN_ISRS, LATEST_US
from watchkeeper.model.replication.requests import DELETED
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.control_plane.registry import CLUSTER, PARTITION, Registry
from watchkeeper.pipeline.analysis.control_plane.replication import (
    END,
    at_the_end,
    calm_at_end,
    live_at_end,
)
from watchkeeper.pipeline.analysis.engine.api import DataFrame, sql
from watchkeeper.pipeline.analysis.facts.intervals import NEVER, Facts
from watchkeeper.pipeline.analysis.properties.ownership import found

BROKER = [*CLUSTER, "node"]


def judged(runs: DataFrame, facts: Facts, registry: Registry, plans: Plans) -> DataFrame:
    """The property, with a row a run; `runs` has `end_us`."""
    clusters = plans.clusters.where("knows_isrs").select(*CLUSTER)
    nodes = (
        plans.processes.where("role = 'broker'")
        .join(clusters, CLUSTER)
        .select(*BROKER, "broker_id")
    )
    live = live_at_end(facts.events, nodes).join(calm_at_end(runs, facts.events), "run")
    known = _known(facts, live)
    wanted = (
        registry.versions.where(f"ends = {NEVER}")
        .join(runs.select("run", "end_us"), "run")
        .where(f"t_us <= end_us - {LATEST_US}")
        .select(*PARTITION, sql.array_sort("state.isr").alias("wanted"))
    )
    due = (
        known.select(*BROKER)
        .distinct()
        .join(wanted, CLUSTER)
        .join(known, [*BROKER, "topic", "partition"], "left")
    )
    wrong = due.where(~sql.col("wanted").eqNullSafe(sql.col("told")))
    seq = sql.lit(END).cast("long")
    return at_the_end(found(runs, KNOWN_ISRS.name, wrong.withColumn("seq", seq), due))


def _known(facts: Facts, live: DataFrame) -> DataFrame:
    """The ISR of each partition that each live broker has learned last, and not forgotten."""
    said = (
        facts.events.where(sql.col("kind") == EventKind.METADATA_UPDATED)
        .select("run", "node", sql.col("seq").cast("long").alias("seq"), "detail")
        .join(live.select(*BROKER, "started"), ["run", "node"])
        .where("seq > started")
    )
    leaders = _rows(said, "leaders").where(sql.col("what").cast("int") == DELETED)
    gone = leaders.withColumns({"order": sql.lit(0), "told": sql.lit(None).cast("array<int>")})
    isrs = _rows(said, "isrs").withColumns(
        {
            "order": sql.lit(1),
            "told": sql.array_sort(sql.from_json("what", "array<int>")),
        }
    )
    last = sql.max_by("told", sql.struct("seq", "order")).alias("told")
    return (
        gone.unionByName(isrs)
        .groupBy(*BROKER, "topic", "partition")
        .agg(last)
        .where("told IS NOT NULL")
    )


def _rows(said: DataFrame, name: str) -> DataFrame:
    """The rows of a list in the detail: topic, partition, and what is said of it."""
    rows = sql.from_json(sql.get_json_object("detail", f"$.{name}"), "array<string>")
    cells = sql.from_json("row", "array<string>")
    return (
        said.select(*BROKER, "seq", sql.explode(rows).alias("row"))
        .withColumn("cells", cells)
        .select(
            *BROKER,
            "seq",
            sql.col("cells")[0].alias("topic"),
            sql.col("cells")[1].alias("partition"),
            sql.col("cells")[2].alias("what"),
        )
    )
