"""Which clusters messages come from, and through which groups, as tables.

A plan says which producer sends to which cluster, which groups carry messages from one to
another, and which go on with the work of others. What a group is owed follows from it: on the
target of a mirror that is what producers sent to its sources, and what a group on the way has
yet to read is not lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import StringType, StructField, StructType

from model.plan import GroupPlan, Plan
from model.routes import Routes

Row = tuple[Any, ...]


def _names(*names: str) -> StructType:
    return StructType([StructField(name, StringType(), False) for name in names])


HOMES = _names("run", "node", "cluster")
"""A row a process of a run of several clusters. The only cluster of a run has no name."""

READERS = _names("run", "group", "topic", "cluster")
"""A row a topic of which it matters how far a group has come: one of whose messages something
is promised, or one that it mirrors for such a group."""

ORIGINS = _names("run", "group", "topic", "what", "name")
"""A row a thing that counts for what a group was promised: by `what`, and its `name`."""
SENT, COMING, HAD = "sent", "coming", "had"
"""What producers sent to a cluster; what a group has yet to mirror; what a group has had, with
whose work this one goes on."""


def promised_groups(plan: Plan) -> Iterator[tuple[GroupPlan, str]]:
    """Every group and topic of whose messages something is promised, where logs hold any."""
    if any(cluster.storage is not None for cluster in plan.clusters):
        for group in plan.groups:
            topics = () if group.promise is None else group.promise.topics
            yield from ((group, topic) for topic in sorted(topics))


def homes(plan: Plan) -> Iterator[Row]:
    """The rows of a plan in HOMES."""
    if len(plan.clusters) > 1:
        for cluster in plan.clusters:
            yield from ((broker.node, cluster.name) for broker in cluster.brokers)
        yield from ((member.node, group.cluster) for group, member in plan.consumers())
        yield from ((producer.node, producer.cluster) for producer in plan.producers)


def readers(plan: Plan) -> Iterator[Row]:
    """The rows of a plan in READERS."""
    routes = Routes(plan)
    found = dict.fromkeys(
        row
        for group, topic in promised_groups(plan)
        for row in [
            (group.name, topic, _name(plan, group.cluster)),
            *((by, topic, source) for by, source in _upstream(routes, group.cluster, topic)),
        ]
    )
    yield from found


def origins(plan: Plan) -> Iterator[Row]:
    """The rows of a plan in ORIGINS."""
    routes = Routes(plan)
    for group, topic in promised_groups(plan):
        for cluster in routes.clusters:
            if group.cluster in routes.reached_from(cluster, topic):
                yield group.name, topic, SENT, _name(plan, cluster)
        for by, _ in _upstream(routes, group.cluster, topic):
            yield group.name, topic, COMING, by
        if group.follows:
            yield group.name, topic, HAD, group.follows


def _name(plan: Plan, cluster: str) -> str:
    return cluster if len(plan.clusters) > 1 else ""


def _upstream(routes: Routes, cluster: str, topic: str) -> dict[tuple[str, str], None]:
    """The groups that carry messages of a topic to a cluster, and where each of them reads."""
    found: dict[tuple[str, str], None] = {}
    for way in routes.ways_to(cluster, topic):
        found[way.group, way.source] = None
        found |= _upstream(routes, way.source, topic)
    return found
