"""The clusters and groups that messages pass through, as tables.

A plan states which producer sends to which cluster, which groups carry messages between
clusters, and which take over from others. What is due to a group follows from it: on the target
of a mirror that is what producers sent to its sources, and messages that a group on the way has
yet to read are not lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from watchkeeper.model.plan.mirror_routes import Routes
from watchkeeper.model.plan.plan import GroupPlan, Plan
from watchkeeper.pipeline.analysis.engine.engine import Schema

Row = tuple[Any, ...]


def _names(*names: str) -> Schema:
    return Schema(dict.fromkeys(names, "string"))


HOMES = _names("run", "node", "cluster")
"""A row a process of a run of several clusters. The only cluster of a run has no name."""

READERS = _names("run", "group", "topic", "cluster")
"""One row per topic whose progress is judged: topics with a delivery guarantee, and topics
mirrored to a group that has one."""

ORIGINS = _names("run", "group", "topic", "what", "name")
"""A row an origin of messages that count for a guarantee: its kind, `what`, and its `name`."""
SENT, COMING, HAD = "sent", "coming", "had"
"""Messages sent to a cluster; messages a group has yet to mirror; messages that a group consumed
from which this one takes over."""


def guaranteed_groups(plan: Plan) -> Iterator[tuple[GroupPlan, str]]:
    """Every group and topic with a delivery guarantee, if logs hold messages."""
    if any(cluster.storage is not None for cluster in plan.clusters):
        for group in plan.groups:
            topics = () if group.guarantee is None else group.guarantee.topics
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
        for group, topic in guaranteed_groups(plan)
        for row in [
            (group.name, topic, _name(plan, group.cluster)),
            *((by, topic, source) for by, source in _upstream(routes, group.cluster, topic)),
        ]
    )
    yield from found


def origins(plan: Plan) -> Iterator[Row]:
    """The rows of a plan in ORIGINS."""
    routes = Routes(plan)
    for group, topic in guaranteed_groups(plan):
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
