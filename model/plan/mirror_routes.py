"""The cluster of an event, and the messages that mirrors carry between clusters.

Partitions of two clusters may have the same name, and the messages of one producer may be in
both. So messages are tracked by cluster, and the messages due to a group on the target of a
mirror are those that producers sent to its sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from watchkeeper.model.plan.plan import GroupPlan, Plan
from watchkeeper.model.registry.topic_filter import compiled, normalise

ALONE = ""
"""The name of the cluster in a run that names none."""


class Route(NamedTuple):
    """The topics that a mirror carries from one of its sources to its target."""

    source: str
    group: str
    """The group with which it reads there."""
    target: str
    expression: str
    """Of the topics."""

    def carries(self, topic: str) -> bool:
        """Whether it carries the messages of a topic."""
        return compiled(normalise(self.expression)).fullmatch(topic) is not None


class Routes:
    """The clusters of a run, and the routes between them."""

    def __init__(self, plan: Plan | None = None) -> None:
        clusters = plan.clusters if plan is not None else ()
        groups = plan.groups if plan is not None else ()
        self.clusters = [cluster.name for cluster in clusters] or [ALONE]
        self.of_group = {group.name: group.cluster for group in groups}
        self.of_producer: dict[str, str] = {}
        """A producer's name in its messages -> the cluster that it sends to."""
        self.followers: dict[str, list[str]] = {}
        """Group -> those that go on with its work."""
        self._of_node: dict[str, str] = {}
        self.ways = tuple(_ways(groups))
        for cluster in clusters:
            self._of_node |= {broker.node: cluster.name for broker in cluster.brokers}
            if plan is not None and cluster.replication is not None:
                self._of_node[cluster.writer(plan.prefix_of(cluster.name))] = cluster.name
        for group in groups:
            self._of_node |= {member.node: group.cluster for member in group.consumers}
            if group.follows:
                self.followers.setdefault(group.follows, []).append(group.name)
        for producer in plan.producers if plan is not None else ():
            self._of_node[producer.node] = producer.cluster
            self.of_producer[producer.name] = producer.cluster

    def cluster_of(self, node: str) -> str:
        """The cluster that a process belongs to; servers bear its name before their own."""
        if len(self.clusters) == 1:
            return self.clusters[0]
        return self._of_node.get(node, node.partition(":")[0])

    def cluster_of_group(self, group: str) -> str:
        """The cluster that a group reads."""
        return self.of_group.get(group, self.clusters[0])

    def ways_to(self, target: str, topic: str) -> list[Route]:
        """The routes by which the messages of a topic reach a cluster."""
        return [way for way in self.ways if way.target == target and way.carries(topic)]

    def reached_from(self, cluster: str, topic: str) -> list[str]:
        """A cluster, and every other that its messages of a topic reach."""
        found = [cluster]
        for reached in found:
            for way in self.ways:
                if way.source == reached and way.target not in found and way.carries(topic):
                    found.append(way.target)
        return found


def _ways(groups: tuple[GroupPlan, ...]) -> Iterator[Route]:
    for group in groups:
        if group.forwards is not None:
            forwards = group.forwards
            yield Route(group.cluster, group.name, forwards.to, forwards.expression)
