"""The deletion of topics: replicas first, and the znodes when every broker has confirmed.

A topic whose replicas are not all on live brokers, or that is being reassigned, is *ineligible*
until that is over. While it is queued nothing else is done with it.

Kafka 0.8.2.2: TopicDeletionManager. There the znodes are deleted in three steps: a topic that is
created again in between loses its settings, and a controller that crashes in between leaves a
request that ends the deletions of every successor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.errors import NoNode, NotEmpty
from watchkeeper.model.actor.operations import Delete, GetChildren
from watchkeeper.model.controller.state_machines import partitions, replicas
from watchkeeper.model.controller.state_machines.channel import Sender
from watchkeeper.model.controller.state_machines.context import Context, Replica
from watchkeeper.model.controller.state_machines.reign import Reign, children_of
from watchkeeper.model.controller.state_machines.states import PartitionStatus, ReplicaStatus
from watchkeeper.model.controller.state_machines.variants import DisabledDeletion, UnknownDeletion
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.replication.requests import DELETED, LeaderState
from watchkeeper.model.trace.kinds import EventKind

DELETING = (ReplicaStatus.DELETION_STARTED, ReplicaStatus.DELETION_SUCCESSFUL)


async def deletions_requested(reign: Reign) -> None:
    """Queue the topics that are to be deleted, and go on."""
    if not reign.me.deletes_topics:
        await _refuse(reign)
        return
    for topic in await children_of(reign.requests, paths.DELETE_TOPICS):
        context = reign.context
        if topic in context.deletions:
            continue
        if topic not in context.topics:
            await _delete(reign, [f"{paths.DELETE_TOPICS}/{topic}"])
            continue
        reign.context = replace(context, deletions=(*context.deletions, topic))
    await resume_deletions(reign)


async def read_deletions(reign: Reign) -> None:
    """Queue what an earlier controller has left; it goes on at the end of the failover."""
    if not reign.me.deletes_topics:
        await _hide(reign)
        await _refuse(reign)
        return
    for topic in await children_of(reign.requests, paths.DELETE_TOPICS):
        context = reign.context
        known = any(partition.topic == topic for partition in context.assignment)
        if not known and reign.me.variant.unknown_deletion is UnknownDeletion.ENDS_DELETIONS:
            await emit(EventKind.DELETIONS_ENDED, topic=topic)
            reign.context = replace(context, deletes=False)
        reign.context = replace(reign.context, deletions=(*context.deletions, topic))


async def _refuse(reign: Reign) -> None:
    """Deletion is switched off: remove the requests, where the variant looks at them."""
    if reign.me.variant.disabled_deletion is DisabledDeletion.HIDES:
        return
    for topic in await children_of(reign.requests, paths.DELETE_TOPICS):
        await _delete(reign, [paths.topic_deletion(topic)])
        await emit(EventKind.DELETION_REFUSED, topic=topic)


async def _hide(reign: Reign) -> None:
    """As shipped a new controller reads the requests all the same, and tells brokers of them."""
    if reign.me.variant.disabled_deletion is DisabledDeletion.HIDES:
        try:
            topics = await reign.requests(GetChildren(paths.DELETE_TOPICS, False, "read cluster"))
        except NoNode:
            return
        reign.context = replace(reign.context, hidden=tuple(sorted(topics)))


async def resume_deletions(reign: Reign) -> None:
    """Take the next step of each deletion that can go on."""
    for topic in reign.context.deletions:
        if reign.context.deletes:
            await _resume(reign, topic)


async def _resume(reign: Reign, topic: str) -> None:
    homes = reign.context.replicas_of(reign.context.partitions_of(topic))
    status = {home: reign.context.replicas.get(home) for home in homes}
    if all(one is ReplicaStatus.DELETION_SUCCESSFUL for one in status.values()):
        await _complete(reign, topic)
        return
    if ReplicaStatus.DELETION_STARTED in status.values():
        return
    retried = [one for one in homes if status[one] is ReplicaStatus.DELETION_INELIGIBLE]
    alive = [one for one in homes if one.broker in reign.context.live]
    if len(alive) < len(homes) or any(one.topic == topic for one in reign.context.moves):
        return
    await replicas.move(reign, retried, ReplicaStatus.OFFLINE)
    await _tell_deleted(reign, topic)
    waiting = [one for one in homes if status[one] not in DELETING]
    await replicas.move(reign, waiting, ReplicaStatus.OFFLINE)
    await replicas.move(reign, waiting, ReplicaStatus.DELETION_STARTED)


async def _tell_deleted(reign: Reign, topic: str) -> None:
    """Let every broker forget who leads the partitions of a topic."""
    reign.check_batch(Sender.CONTROLLER)
    context = reign.context
    reign.batch.tell(context.live, deleted_states(context, context.partitions_of(topic)))
    await reign.send()


def deleted_states(context: Context, gone: Iterable[Partition]) -> list[LeaderState]:
    """What brokers learn of partitions that are deleted."""
    state = PartitionState(DELETED, (), controller_epoch=context.epoch)
    return [LeaderState(partition, state, 0, ()) for partition in gone]


async def replicas_deleted(
    reign: Reign, broker: int, stopped: Iterable[Partition], *, succeeded: bool
) -> None:
    """A broker has answered that it has deleted replicas, or could not."""
    status = ReplicaStatus.DELETION_SUCCESSFUL if succeeded else ReplicaStatus.DELETION_INELIGIBLE
    started = [
        replica
        for replica in (Replica(partition, broker) for partition in stopped)
        if reign.context.replicas.get(replica) is ReplicaStatus.DELETION_STARTED
    ]
    await replicas.move(reign, started, status)
    await resume_deletions(reign)


def deletions_failed(reign: Reign, brokers: Iterable[int]) -> list[Replica]:
    """Return the replicas on dead brokers whose deletion cannot go on now."""
    deletions = reign.context.deletions
    return [
        replica
        for replica in reign.context.replicas_on(brokers)
        if replica.partition.topic in deletions
        and reign.context.replicas.get(replica) is ReplicaStatus.DELETION_STARTED
    ]


# --- the znodes ------------------------------------------------------------------------


async def _complete(reign: Reign, topic: str) -> None:
    """Forget a topic, and delete its znodes."""
    await _delete_znodes(reign, topic)
    gone = reign.context.partitions_of(topic)
    homes = reign.context.replicas_of(gone)
    await replicas.move(reign, homes, ReplicaStatus.NON_EXISTENT)
    await partitions.move(reign, gone, PartitionStatus.OFFLINE)
    await partitions.move(reign, gone, PartitionStatus.NON_EXISTENT)
    context = reign.context.without_partitions(gone)
    reign.context = replace(
        context,
        topics=tuple(one for one in context.topics if one != topic),
        deletions=tuple(one for one in context.deletions if one != topic),
    )
    await emit(EventKind.TOPIC_DELETED, topic=topic)


async def _delete_znodes(reign: Reign, topic: str) -> None:
    """As shipped one after the other; in `hardened` all at once."""
    if not reign.me.variant.fenced:
        for path in _roots(topic):
            await _delete(reign, await _below(reign, path))
        return
    while not await _delete_at_once(reign, topic):
        continue


def _roots(topic: str) -> tuple[str, str, str]:
    """The znodes of a topic, in the order in which they are deleted."""
    return (
        paths.topic(topic),
        f"{paths.TOPIC_CONFIGS}/{topic}",
        f"{paths.DELETE_TOPICS}/{topic}",
    )


async def _below(reign: Reign, path: str) -> list[str]:
    """Return a znode and all that is below it, children before their parents."""
    try:
        names = await reign.requests(GetChildren(path, False, "delete topic"))
    except NoNode:
        return []
    found: list[str] = []
    for name in sorted(names):
        found += await _below(reign, f"{path}/{name}")
    return [*found, path]


async def _delete(reign: Reign, znodes: Iterable[str]) -> None:
    for path in znodes:
        try:
            await reign.fenced(Delete(path, purpose="delete topic"))
        except NoNode:
            continue


async def _delete_at_once(reign: Reign, topic: str) -> bool:
    """Delete all znodes of a topic in one multi; False if one of them was gone by then."""
    znodes = [path for root in _roots(topic) for path in await _below(reign, root)]
    deletes = tuple(Delete(path, purpose="delete topic") for path in znodes)
    try:
        await reign.fenced_together(deletes)
    except (NoNode, NotEmpty):
        return False
    return True
