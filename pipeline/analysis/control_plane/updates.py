"""Lost updates, a second time: by a join of each blind write with the reads of its writer."""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.updates import (
    DATA_READS,
    DELETED_BY_MANY,
    NO_LOST_UPDATES,
    WRITTEN_BY_MANY,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.control_plane.registry import (
    CLUSTER,
    SETTINGS,
    STATE,
    TOPIC,
    Registry,
    applied,
)
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import Facts, detail_field
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import found

READER = ["run", "by"]


def judged(
    runs: DataFrame, facts: Facts, registry: Registry, plans: Plans, tables: Tables
) -> DataFrame:
    """The property, with a row a run."""
    processes = plans.processes.where("role IN ('broker', 'administrator')").select(
        "run", sql.col("node").alias("by")
    )
    requests = facts.events.where(sql.col("kind") == EventKind.APPLIED).select(
        "run",
        sql.col("seq").cast("long").alias("seq"),
        detail_field("purpose").alias("purpose"),
        detail_field("version").alias("version"),
    )
    written = _written_over(registry.written).join(processes, READER)
    known_requests = written.join(requests, ["run", "seq"]).where("purpose IS NOT NULL")
    over = tables.keep("written_over", known_requests)
    blind = over.where("version IS NULL")
    reads = tables.keep("data_reads", _reads(facts.events, processes))
    key = [*READER, "seq", "path"]
    known = blind.join(reads, READER).where(
        "read_seq < seq AND (data_read = before_data OR (is_cut AND read_seq > before_seq))"
    )
    lost = blind.join(known.select(*key).distinct(), key, "left_anti")
    return found(runs, NO_LOST_UPDATES.name, lost, over)


def _written_over(written: DataFrame) -> DataFrame:
    """The writes and deletions by requests of what another process has written."""
    order = Window.partitionBy(*CLUSTER, "path").orderBy("seq", "at")
    path = sql.col("path")
    shared = written.where(
        path.isin(*sorted(WRITTEN_BY_MANY))
        | path.rlike(STATE)
        | path.rlike(TOPIC)
        | path.rlike(SETTINGS)
    ).withColumns(
        {
            "seq": sql.col("seq").cast("long"),
            "text": sql.coalesce("data", sql.lit("")),
            "gone": sql.col("what") == "deleted",
        }
    )
    after = shared.withColumns(
        {
            "before_data": sql.lag("text").over(order),
            "before_by": sql.lag("by").over(order),
            "before_seq": sql.lag("seq").over(order),
            "was_gone": sql.lag("gone").over(order),
        }
    )
    deletes = sql.col("gone") & path.isin(*sorted(DELETED_BY_MANY))
    replaces = ~sql.col("gone") & (sql.col("text") != sql.col("before_data"))
    return (
        applied(after)
        .where("NOT was_gone AND by <> before_by")
        .where(deletes | replaces)
        .select(*READER, "seq", "path", "before_data", "before_seq")
    )


def _reads(events: DataFrame, processes: DataFrame) -> DataFrame:
    """A row a znode that a read has brought a process; `is_cut` where the trace left some out."""
    answer = sql.get_json_object("detail", "$.answer")
    parts = sql.when(answer.startswith("["), sql.from_json(answer, "array<string>")).otherwise(
        sql.array(answer)
    )
    return (
        events.where(sql.col("kind") == EventKind.RESPONSE)
        .where(detail_field("op").isin(*sorted(DATA_READS)))
        .withColumn("by", sql.col("node"))
        .join(processes, READER)
        .select(
            *READER,
            sql.col("seq").cast("long").alias("read_seq"),
            sql.explode(parts).alias("part"),
        )
        .select(
            *READER,
            "read_seq",
            _data().alias("data_read"),
            sql.coalesce(~sql.col("part").startswith("{"), sql.lit(False)).alias("is_cut"),
        )
        .where("is_cut OR data_read IS NOT NULL")
    )


def _data() -> Column:
    """The data of a znode in an answer; null for an error."""
    is_znode = sql.get_json_object("part", "$.mine").isNotNull()
    data = sql.coalesce(sql.get_json_object("part", "$.data"), sql.lit(""))
    return sql.when(is_znode, data)
