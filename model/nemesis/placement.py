"""Which partitions of a cluster a broker has on its disk, in every world."""

from __future__ import annotations

from collections.abc import Mapping

from model.asks import Partition
from model.payloads import TopicAssignment
from model.plan import ClusterPlan
from model.registry import Layout, partition_07

Disks = dict[int, dict[str, int]]
"""0.7: broker -> topic -> partitions it has on disk."""


def disks_of(plan: ClusterPlan) -> Disks:
    """What is on the disks when a cluster begins."""
    disks: Disks = {}
    for topic in plan.topics:
        for broker_id, count in topic.by_broker:
            disks.setdefault(broker_id, {})[topic.name] = count
    return disks


def partitions_on(
    broker_id: int, layout: Layout, disks: Disks, homes: Mapping[str, TopicAssignment]
) -> list[Partition]:
    """The partitions that a broker has on its disk: of 0.7 by the disks, of 0.8 by the homes."""
    if layout == "0.7":
        return [
            partition_07(topic, broker_id, index)
            for topic, count in sorted(disks.get(broker_id, {}).items())
            for index in range(count)
        ]
    return [
        Partition(topic, str(index))
        for topic, assignment in sorted(homes.items())
        for index, brokers in assignment.replicas
        if broker_id in brokers
    ]
