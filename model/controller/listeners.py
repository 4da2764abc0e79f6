"""What a controller does about a change that it sees: of brokers, of topics, of assignments.

A watch reports that a list changed, not how. So each listener reads the list again, sets the
watch with the read, and compares the list with what it knows; several changes are seen as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.controller import partitions, replicas
from watchkeeper.model.controller.context import Context, partitions_in
from watchkeeper.model.controller.failover import brokers_of, read_assignments, watch_assignments
from watchkeeper.model.controller.reign import Reign, assignment_in, children_of
from watchkeeper.model.controller.states import PartitionStatus, ReplicaStatus
from watchkeeper.model.controller.variants import VanishedTopics
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import TopicAssignment

# --- brokers ---------------------------------------------------------------------------


async def brokers_changed(reign: Reign) -> None:
    """Bring what new brokers hold online, and elect new leaders for what dead ones led."""
    known = reign.context.live
    listed, live = await brokers_of(reign)
    reign.context = replace(reign.context, live=live)
    new = tuple(broker for broker in listed if broker not in known)
    dead = tuple(broker for broker in known if broker not in listed)
    if new:
        await _started(reign, new)
    if dead:
        await _died(reign, dead)


async def _started(reign: Reign, brokers: Sequence[int]) -> None:
    await replicas.move(reign, reign.context.replicas_on(brokers), ReplicaStatus.ONLINE)
    await partitions.bring_online(reign)


async def _died(reign: Reign, brokers: Sequence[int]) -> None:
    await partitions.move(reign, reign.context.led_by(brokers), PartitionStatus.OFFLINE)
    await partitions.bring_online(reign)
    await replicas.move(reign, reign.context.replicas_on(brokers), ReplicaStatus.OFFLINE)


# --- topics ----------------------------------------------------------------------------


async def topics_changed(reign: Reign) -> None:
    """Create the partitions of new topics, and forget topics that were deleted."""
    known = reign.context.topics
    topics = await children_of(reign.requests, paths.TOPICS)
    new = tuple(topic for topic in topics if topic not in known)
    gone = tuple(topic for topic in known if topic not in topics)
    kept = _without(reign.context, gone, reign.me.variant.vanished_topics)
    reign.context = replace(kept, topics=topics)
    await read_assignments(reign, new)
    await watch_assignments(reign, new)
    await _create(reign, [one for one in reign.context.assigned() if one.topic in new])


async def assignment_changed(reign: Reign, topic: str) -> None:
    """Create the partitions that a topic has gained."""
    path = paths.topic(topic)
    [seen] = await reign.read_all([path], watch=True)
    found = assignment_in(path, seen)
    if reign.me.variant.vanished_topics is VanishedTopics.ALL:
        await _forget_what_vanished(reign, topic, found if seen is not None else None)
    if found is None:
        return
    before = reign.context.assignment
    reign.context = reign.context.with_assignment(topic, found)
    await _create(
        reign,
        [one for one in reign.context.assigned() if one.topic == topic and one not in before],
    )


async def _forget_what_vanished(reign: Reign, topic: str, found: TopicAssignment | None) -> None:
    """Forget a topic that was deleted, or its partitions if it was created again since.

    The list of topics may look the same before and after.
    """
    if found is None:
        kept = _without(reign.context, (topic,), VanishedTopics.ALL)
        topics = tuple(known for known in kept.topics if known != topic)
        reign.context = replace(kept, topics=topics)
        return
    known = [one for one, _ in partitions_in(topic, found) if one in reign.context.leadership]
    names = [paths.partition_state(partition) for partition in known]
    seen = await reign.read_all(names, watch=False)
    lost = {one: None for one, znode in zip(known, seen, strict=True) if znode is None}
    if lost:
        reign.context = _without_partitions(reign.context, lost)


async def _create(reign: Reign, new: Sequence[Partition]) -> None:
    """Bring new partitions and their replicas into existence."""
    homes = reign.context.replicas_of(new)
    await partitions.move(reign, new, PartitionStatus.NEW)
    await replicas.move(reign, homes, ReplicaStatus.NEW)
    await partitions.move(reign, new, PartitionStatus.ONLINE)
    await replicas.move(reign, homes, ReplicaStatus.ONLINE)


def _without(context: Context, topics: Sequence[str], forgets: VanishedTopics) -> Context:
    """Return a context that has forgotten topics, or their assignments alone."""
    if forgets is VanishedTopics.ALL:
        gone = {one: None for one in context.known() if one.topic in topics}
        context = _without_partitions(context, gone)
    assignment = context.assignment
    for partition in context.assigned():
        if partition.topic in topics:
            assignment = assignment.delete(partition)
    return replace(context, assignment=assignment)


def _without_partitions(context: Context, gone: dict[Partition, None]) -> Context:
    assignment, leadership = context.assignment, context.leadership
    statuses, homes = context.partitions, context.replicas
    for replica in sorted(homes):
        if replica.partition in gone:
            homes = homes.delete(replica)
    for partition in gone:
        assignment = assignment.delete(partition) if partition in assignment else assignment
        leadership = leadership.delete(partition) if partition in leadership else leadership
        statuses = statuses.delete(partition) if partition in statuses else statuses
    return replace(
        context,
        assignment=assignment,
        leadership=leadership,
        partitions=statuses,
        replicas=homes,
    )
