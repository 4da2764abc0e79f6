"""High watermarks that last, a second time: by the least of what came before each look."""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.marks import HOST_LOSS, MARKS
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.control_plane.registry import CLUSTER, PARTITION
from watchkeeper.pipeline.analysis.engine.api import DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import Facts, detail_field, struck
from watchkeeper.pipeline.analysis.properties.ownership import found

LOG = [*PARTITION, "node"]


def judged(runs: DataFrame, facts: Facts, plans: Plans) -> DataFrame:
    """The property, with a row a run."""
    nodes = plans.processes.where("role = 'broker'").select(*CLUSTER, "node")
    kinds = (EventKind.REPLICA_OPENED, EventKind.TRUNCATED, EventKind.REPLICA_DELETED)
    of_logs = (
        facts.events.where(sql.col("kind").isin(*kinds))
        .join(nodes, ["run", "node"])
        .select(
            *(*CLUSTER, "node", "topic", "seq", "kind"),
            detail_field("partition").alias("partition"),
            sql.when(sql.col("kind") == EventKind.REPLICA_OPENED, detail_field("high_watermark"))
            .otherwise(detail_field("end"))
            .cast("long")
            .alias("at"),
        )
    )
    looks = _with_floor(of_logs.unionByName(_losses(facts, of_logs)))
    unclean = _unclean(facts, nodes)
    due = (
        looks.where("floor IS NOT NULL")
        .join(unclean, PARTITION, "left")
        .where("unclean_seq IS NULL OR seq < unclean_seq")
    )
    return found(runs, MARKS.name, due.where("at < floor"), due)


def _losses(facts: Facts, of_logs: DataFrame) -> DataFrame:
    """A row a replica on a host that was lost."""
    lost = (
        struck(facts.events.where(sql.col("kind") == EventKind.FAULT))
        .where(detail_field("verb") == HOST_LOSS)
        .select("run", "node", "seq", "kind", sql.lit(None).cast("long").alias("at"))
    )
    return lost.join(of_logs.select(*LOG).distinct(), ["run", "node"])


def _with_floor(rows: DataFrame) -> DataFrame:
    """The looks at replicas that a broker has opened before, each with the floor of then.

    A replica that is deleted or lost begins another life. In a life the floor is the least since
    it was opened last; a cut before it was ever opened says nothing.
    """
    kind = sql.col("kind")
    opened = (kind == EventKind.REPLICA_OPENED).cast("int")
    ends = (~kind.isin(EventKind.REPLICA_OPENED, EventKind.TRUNCATED)).cast("int")
    in_order = Window.partitionBy(*LOG).orderBy("seq")
    in_life = Window.partitionBy(*LOG, "life").orderBy("seq")
    since_opened = Window.partitionBy(*LOG, "life", "opening").orderBy("seq")
    return (
        rows.withColumn("seq", sql.col("seq").cast("long"))
        .withColumn("life", sql.sum(ends).over(in_order))
        .where(kind.isin(EventKind.REPLICA_OPENED, EventKind.TRUNCATED))
        .withColumn("opening", sql.sum(opened).over(in_life))
        .where("opening > 0")
        .withColumn("least", sql.min("at").over(since_opened))
        .withColumn("floor", sql.lag("least").over(in_life))
    )


def _unclean(facts: Facts, nodes: DataFrame) -> DataFrame:
    """The first unclean election of each partition."""
    return (
        facts.events.where(sql.col("kind") == EventKind.UNCLEAN_ELECTION)
        .join(nodes, ["run", "node"])
        .withColumn("partition", detail_field("partition"))
        .groupBy(*PARTITION)
        .agg(sql.min(sql.col("seq").cast("long")).alias("unclean_seq"))
    )
