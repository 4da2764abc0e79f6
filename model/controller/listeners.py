"""What a controller does about a change that it sees: of brokers, of topics, of assignments.

A watch reports that a list changed, not how. So each listener reads the list again, sets the
watch with the read, and compares the list with what it knows; several changes are seen as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.controller.deletion import (
    deleted_states,
    deletions_failed,
    resume_deletions,
)
from watchkeeper.model.controller.failover import (
    Brokers,
    brokers_of,
    connect,
    read_assignments,
    watch_assignments,
)
from watchkeeper.model.controller.reassignment import targets_started
from watchkeeper.model.controller.state_machines import partitions, replicas
from watchkeeper.model.controller.state_machines.context import Context, Replica, partitions_in
from watchkeeper.model.controller.state_machines.reign import Reign, assignment_in, children_of
from watchkeeper.model.controller.state_machines.states import PartitionStatus, ReplicaStatus
from watchkeeper.model.controller.state_machines.variants import RestartedBroker, VanishedTopics
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import TopicAssignment

# --- brokers ---------------------------------------------------------------------------


async def brokers_changed(reign: Reign) -> None:
    """Bring what new brokers hold online, and elect new leaders for what dead ones led."""
    known = (*reign.context.live, *reign.context.shutting_down)
    seen = await brokers_of(reign)
    bounced = _bounced(reign, seen)
    new = tuple(broker for broker in seen.listed if broker not in known)
    dead = tuple(broker for broker in known if broker not in seen.listed)
    leaving = tuple(
        broker
        for broker in reign.context.shutting_down
        if broker not in dead and broker not in bounced
    )
    live = tuple(broker for broker in seen.live if broker not in leaving)
    reign.context = replace(
        reign.context,
        live=tuple(broker for broker in live if broker not in bounced),
        shutting_down=leaving,
    )
    await connect(reign, seen.registrations)
    if bounced:
        await _died(reign, bounced)
        reign.context = replace(reign.context, live=live)
    if new or bounced:
        await _started(reign, (*new, *bounced))
    if dead:
        await _died(reign, dead)


def _bounced(reign: Reign, seen: Brokers) -> tuple[int, ...]:
    """Return the brokers whose process is another one, where the variant looks at that.

    Such a broker has forgotten every request, and the list of ids is the same as before.
    """
    if reign.me.variant.restarted_broker is RestartedBroker.NOT_SEEN:
        return ()
    known = reign.context.registrations
    return tuple(
        broker
        for broker in sorted(seen.registrations)
        if broker in known and known[broker] != seen.registrations[broker]
    )


async def _started(reign: Reign, brokers: Sequence[int]) -> None:
    reign.tell_all(brokers)
    reign.drop_strays(brokers)
    await reign.send()
    homes = _kept(reign, brokers)
    await replicas.move(reign, homes, ReplicaStatus.ONLINE)
    await partitions.bring_online(reign)
    await targets_started(reign, brokers)
    await resume_deletions(reign)


def _kept(reign: Reign, brokers: Sequence[int]) -> list[Replica]:
    """Return the replicas on brokers whose topics are not being deleted."""
    deletions = reign.context.deletions
    return [
        one for one in reign.context.replicas_on(brokers) if one.partition.topic not in deletions
    ]


async def _died(reign: Reign, brokers: Sequence[int]) -> None:
    deletions = reign.context.deletions
    led = [one for one in reign.context.led_by(brokers) if one.topic not in deletions]
    await partitions.move(reign, led, PartitionStatus.OFFLINE)
    await partitions.bring_online(reign)
    await replicas.move(reign, _kept(reign, brokers), ReplicaStatus.OFFLINE)
    failed = deletions_failed(reign, brokers)
    await replicas.move(reign, failed, ReplicaStatus.DELETION_INELIGIBLE)


# --- topics ----------------------------------------------------------------------------


async def topics_changed(reign: Reign) -> None:
    """Create the partitions of new topics, and forget topics that were deleted."""
    known = reign.context.topics
    topics = await children_of(reign.requests, paths.TOPICS)
    new = tuple(topic for topic in topics if topic not in known)
    gone = tuple(topic for topic in known if topic not in topics)
    if reign.me.variant.vanished_topics is VanishedTopics.ALL:
        await _delete_replicas(reign, _known_of(reign, gone))
    kept = _without(reign.context, gone, reign.me.variant.vanished_topics)
    reign.context = replace(kept, topics=topics)
    await read_assignments(reign, new)
    await watch_assignments(reign, new)
    await _create(reign, reign.context.partitions_of(*new))


async def assignment_changed(reign: Reign, topic: str) -> None:
    """Create the partitions that a topic has gained."""
    path = paths.topic(topic)
    [seen] = await reign.read_all([path], watch=True)
    found = assignment_in(path, seen)
    if reign.me.variant.vanished_topics is VanishedTopics.ALL:
        await _forget_what_vanished(reign, topic, found if seen is not None else None)
    if found is None or topic in reign.context.deletions:
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
        await _delete_replicas(
            reign, [one for one in reign.context.known() if one.topic == topic]
        )
        kept = _without(reign.context, (topic,), VanishedTopics.ALL)
        topics = tuple(known for known in kept.topics if known != topic)
        reign.context = replace(kept, topics=topics)
        return
    known = [one for one, _ in partitions_in(topic, found) if one in reign.context.leadership]
    names = [paths.partition_state(partition) for partition in known]
    seen = await reign.read_all(names, watch=False)
    lost = [one for one, znode in zip(known, seen, strict=True) if znode is None]
    if lost:
        await _delete_replicas(reign, lost)
        reign.context = reign.context.without_partitions(lost)


def _known_of(reign: Reign, topics: Sequence[str]) -> list[Partition]:
    return [one for one in reign.context.known() if one.topic in topics]


async def _delete_replicas(reign: Reign, gone: Sequence[Partition]) -> None:
    """Let brokers delete the replicas of partitions that were deleted by hand.

    They would else refuse the first state of a new partition of that name, as an old one, and
    tell clients who has led it.
    """
    reign.batch.tell(reign.context.live, deleted_states(reign.context, gone))
    for replica in reign.context.replicas_of(gone):
        reign.batch.stop(replica.broker, replica.partition, deletes=True)
    await reign.send()


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
        context = context.without_partitions(
            one for one in context.known() if one.topic in topics
        )
    assignment = context.assignment
    for partition in context.assigned():
        if partition.topic in topics:
            assignment = assignment.delete(partition)
    return replace(context, assignment=assignment)
