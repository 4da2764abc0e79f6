"""Brokers that end themselves, a second time."""

from __future__ import annotations

from watchkeeper.model.properties.control_plane.halts import GO_ON
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.engine.api import DataFrame, sql
from watchkeeper.pipeline.analysis.facts.intervals import Facts
from watchkeeper.pipeline.analysis.properties.ownership import found


def judged(runs: DataFrame, facts: Facts, plans: Plans) -> DataFrame:
    """The property, with a row a run."""
    clusters = plans.clusters.where("replicates").select("run", "cluster")
    nodes = plans.processes.where("role = 'broker'").join(clusters, ["run", "cluster"])
    events = facts.events.select("run", "node", "seq", "kind").join(
        nodes.select("run", "node"), ["run", "node"]
    )
    halted = events.where(sql.col("kind") == EventKind.FOLLOWER_HALTED)
    follows = events.where(sql.col("kind") == EventKind.BECAME_FOLLOWER)
    return found(runs, GO_ON.name, halted, follows)
