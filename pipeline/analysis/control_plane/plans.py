"""The facts of plans about clusters with a controller, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from watchkeeper.model.plan.plan import ClusterPlan, Plan
from watchkeeper.model.properties.control_plane.leaders import calm_us
from watchkeeper.model.properties.quiescence import QUIET_TICKS
from watchkeeper.pipeline.analysis.engine.api import DataFrame
from watchkeeper.pipeline.analysis.engine.engine import Engine, Schema

NO_CALM = -1
"""In place of the length of a calm: controllers do not look at who leads by themselves."""

CLUSTERS = Schema(
    {
        "run": "string",
        "cluster": "string",
        "allows_unclean": "boolean",
        "replicates": "boolean",
        "knows_isrs": "boolean",
        "is_alone": "boolean",
        "replicates_alone": "boolean",
        "quiet_us": "long",
        "calm_us": "long",
    }
)
"""A row a cluster with a controller; `knows_isrs` if *ISRs are known* is judged, `is_alone` if no
other cluster of the run has one, `replicates_alone` if no other one replicates."""

PROCESSES = Schema(
    {
        "run": "string",
        "cluster": "string",
        "node": "string",
        "role": "string",
        "broker_id": "int",
    }
)
"""A row a process of such a cluster; `broker_id` is -1 for one that is no broker."""

READERS = Schema({"run": "string", "cluster": "string", "group": "string"})
"""A row a group that reads from brokers that replicate."""

PLANNED = Schema(
    {
        "run": "string",
        "cluster": "string",
        "topic": "string",
        "partition": "string",
        "replicas": "array<int>",
    }
)
"""A row a partition that the scenario has: a trace cuts long assignments."""


class Plans(NamedTuple):
    """The tables of all plans."""

    clusters: DataFrame
    processes: DataFrame
    planned: DataFrame
    readers: DataFrame


def plans(engine: Engine, known: Mapping[str, Plan]) -> Plans:
    """The plans of runs, by the names of these, as tables."""

    def made(rows: Any, schema: Schema) -> DataFrame:
        found = [
            (run, cluster.name, *row)
            for run, plan in known.items()
            for cluster in plan.clusters
            if cluster.controller is not None
            for row in rows(plan, cluster)
        ]
        return engine.made(found, schema)

    return Plans(
        made(_clusters, CLUSTERS),
        made(_processes, PROCESSES),
        made(_planned, PLANNED),
        made(_readers, READERS),
    )


Row = tuple[Any, ...]


def _clusters(plan: Plan, cluster: ClusterPlan) -> Iterator[Row]:
    assert cluster.controller is not None, "other clusters have no row"
    replicates = cluster.replication is not None
    calm = calm_us(cluster)
    yield (
        cluster.controller.allows_unclean,
        replicates,
        cluster.replication is not None and cluster.replication.isr_in_metadata,
        sum(one.controller is not None for one in plan.clusters) == 1,
        replicates and sum(one.replication is not None for one in plan.clusters) == 1,
        QUIET_TICKS * cluster.zookeeper.tick_us,
        NO_CALM if calm is None else calm,
    )


def _processes(plan: Plan, cluster: ClusterPlan) -> Iterator[Row]:
    prefix = plan.prefix_of(cluster.name)
    yield cluster.administrator(prefix), "administrator", -1
    if cluster.replication is not None:
        yield cluster.writer(prefix), "writer", -1
        yield from ((one.node, "producer", -1) for one in plan.senders_to(cluster.name))
    yield from ((broker.node, "broker", broker.broker_id) for broker in cluster.brokers)


def _readers(plan: Plan, cluster: ClusterPlan) -> Iterator[Row]:
    if cluster.replication is not None:
        yield from ((group.name,) for group in plan.groups if group.cluster == cluster.name)


def _planned(plan: Plan, cluster: ClusterPlan) -> Iterator[Row]:
    for topic in cluster.topics:
        for index, replicas in topic.replicas:
            yield topic.name, str(index), list(replicas)
