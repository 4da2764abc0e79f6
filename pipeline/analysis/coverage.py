"""Which step of the protocol was interrupted by which fault, how often, and which never was."""

from __future__ import annotations

from typing import get_args

from watchkeeper.model.actor.operations import Purpose
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import DataFrame, Window, sql
from watchkeeper.pipeline.analysis.engine.engine import Engine, Schema
from watchkeeper.pipeline.analysis.facts.intervals import detail_field, struck

IDLE = {
    EventKind.WAITING: "waiting",
    EventKind.SLEEPING: "backing off",
    EventKind.WOKEN: "awake",
    EventKind.NOTIFIED: "awake",
}
"""The activity of a process without an open request."""
MOMENTS = ("during", "after")
"""A step is interrupted while its response is pending, or before the next request."""
STEPS = (
    *(f"{moment} {purpose}" for purpose in get_args(Purpose) for moment in MOMENTS),
    *dict.fromkeys(IDLE.values()),
)


def coverage(events: DataFrame) -> DataFrame:
    """A row a fault that struck a process: its verb, and the step it interrupted.

    A fault of a process concerns that one; a fault of the service concerns every member.
    """
    struck = _struck(events)
    steps = _steps(events)
    both = steps.select("run", "node", "seq", "step", sql.lit(None).cast("string").alias("fault"))
    both = both.unionByName(
        struck.select("run", "node", "seq", sql.lit(None).cast("string").alias("step"), "fault")
    )
    so_far = Window.partitionBy("run", "node").orderBy("seq", sql.col("fault").asc_nulls_first())
    return (
        both.withColumn("step", sql.last("step", ignorenulls=True).over(so_far))
        .where("fault IS NOT NULL AND step IS NOT NULL AND step <> ''")
        .select("run", "node", "seq", "fault", "step")
    )


def _steps(events: DataFrame) -> DataFrame:
    """The activity of each process from an event on; null once it has ended."""
    kind, purpose = sql.col("kind"), detail_field("purpose")
    step = sql.when(
        kind == EventKind.REQUEST, sql.concat(sql.lit(f"{MOMENTS[0]} "), purpose)
    ).when(kind == EventKind.RESPONSE, sql.concat(sql.lit(f"{MOMENTS[1]} "), purpose))
    for name, words in IDLE.items():
        step = step.when(kind == name, words)
    over = (EventKind.ENDED, EventKind.ABANDONED)
    step = step.when(kind.isin(*over), "")
    return events.where(kind.isin(EventKind.REQUEST, EventKind.RESPONSE, *over, *IDLE)).select(
        "run", "node", "seq", step.alias("step")
    )


def _struck(events: DataFrame) -> DataFrame:
    """Every fault, with each process that it concerns."""
    started = events.where(f"kind = '{EventKind.STARTED}'")
    processes = started.select("run", "node").distinct()
    members = started.where("group <> ''").select("run", "node").distinct()
    faults = struck(events.where(f"kind = '{EventKind.FAULT}'")).select(
        "run", "node", "seq", detail_field("verb").alias("fault")
    )
    of_one = faults.join(processes, ["run", "node"], "left_semi")
    of_all = faults.join(processes, ["run", "node"], "left_anti").drop("node")
    return of_one.unionByName(of_all.join(members, "run").select("run", "node", "seq", "fault"))


def counted(engine: Engine, covered: DataFrame, faults: DataFrame) -> DataFrame:
    """How often each fault that there was has interrupted each step, never included."""
    steps = engine.made([(step,) for step in STEPS], Schema({"step": "string"}))
    seen = covered.groupBy("fault", "step").agg(
        sql.count("*").alias("times"), sql.countDistinct("run").alias("runs")
    )
    everything = faults.select("fault").distinct().crossJoin(steps)
    return everything.join(seen, ["fault", "step"], "left").na.fill(0, ["times", "runs"])


def faults_of(events: DataFrame) -> DataFrame:
    """The verbs of all faults that there were."""
    return events.where(f"kind = '{EventKind.FAULT}'").select(detail_field("verb").alias("fault"))
