"""What controllers send to brokers, a second time: by the first sender of each epoch, and by the
extremes of what each process of a broker has carried out before."""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.requests import NONE_DEPOSED, ONE_SENDER
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.control_plane.registry import CLUSTER
from watchkeeper.pipeline.analysis.engine.api import DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import Facts, detail_field
from watchkeeper.pipeline.analysis.properties.ownership import found


def judged(runs: DataFrame, facts: Facts, plans: Plans) -> DataFrame:
    """The two properties, each with a row a run."""
    brokers = (
        plans.processes.where("role = 'broker'")
        .join(plans.clusters.where("replicates").select(*CLUSTER), CLUSTER)
        .select(*CLUSTER, "node")
    )
    kinds = (EventKind.STARTED, EventKind.CONTROL_SENT, EventKind.CONTROL_TAKEN)
    events = (
        facts.events.where(sql.col("kind").isin(*kinds))
        .join(brokers, ["run", "node"])
        .select(
            *(*CLUSTER, "node", "kind"),
            sql.col("seq").cast("long").alias("seq"),
            detail_field("epoch", "int").alias("epoch"),
        )
    )
    return _one_sender(runs, events).unionByName(_none_deposed(runs, events))


def _one_sender(runs: DataFrame, events: DataFrame) -> DataFrame:
    in_epoch = Window.partitionBy(*CLUSTER, "epoch").orderBy("seq")
    sent = events.where(sql.col("kind") == EventKind.CONTROL_SENT).withColumn(
        "sender", sql.first("node").over(in_epoch)
    )
    return found(runs, ONE_SENDER.name, sent.where("node <> sender"), sent)


def _none_deposed(runs: DataFrame, events: DataFrame) -> DataFrame:
    """A process begins with each start of a broker, and knows what it has carried out so far."""
    so_far = Window.partitionBy("run", "node").orderBy("seq")
    of_process = Window.partitionBy("run", "node", "process").orderBy("seq")
    taken = (
        events.withColumn(
            "process", sql.sum((sql.col("kind") == EventKind.STARTED).cast("int")).over(so_far)
        )
        .where(sql.col("kind") == EventKind.CONTROL_TAKEN)
        .withColumns(
            {
                "least": sql.min("epoch").over(of_process),
                "greatest": sql.max("epoch").over(of_process),
            }
        )
    )
    late = taken.where("least < greatest")
    return found(runs, NONE_DEPOSED.name, late.where("epoch < greatest"), late)
