"""Which partitions of a cluster a broker has on its disk, in every world."""

from __future__ import annotations

from collections.abc import Mapping

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command
from watchkeeper.model.broker.administrator import assigned_after
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.model.registry.paths import Layout, partition_07
from watchkeeper.model.registry.payloads import TopicAssignment

Disks = dict[int, dict[str, int]]
"""0.7: broker -> topic -> partitions it has on disk."""


def disks_of(plan: ClusterPlan) -> Disks:
    """The partitions on each broker's disk when a cluster starts."""
    disks: Disks = {}
    for topic in plan.topics:
        for broker_id, count in topic.by_broker:
            disks.setdefault(broker_id, {})[topic.name] = count
    return disks


def reassign(
    homes: dict[str, TopicAssignment],
    command: Command,
    brokers: tuple[int, ...],
    *,
    takes_ids_for_places: bool = False,
) -> None:
    """Change the homes of a topic as the administrator does for a command (0.8)."""
    after = assigned_after(homes, command, brokers, takes_ids_for_places=takes_ids_for_places)
    # The other topics stay in place: live, leaders are watched while this runs.
    if command.topic in after:
        homes[command.topic] = after[command.topic]
    else:
        homes.pop(command.topic, None)


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
