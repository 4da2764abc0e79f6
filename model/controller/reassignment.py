"""A partition moves to other brokers, in steps that a later controller can go on with.

First the target brokers become replicas beside the old ones, and fetch. When all of them are in
the ISR, one of them leads, the old replicas leave the ISR and are deleted, and the assignment
names the targets alone. Every change of the partition's state in between, the start of a target
broker and each failover take the next step.

    not all targets in the ISR    1  the assignment names targets and old replicas
                                  2  the leader epoch rises, so that the leader knows of them
                                  3  the targets begin to fetch
    all targets in the ISR        4  a target leads
                                  5  the old replicas leave the ISR and are deleted
                                  6  the assignment names the targets alone
                                  7  the request loses the partition

A crash before step 6 leaves both in the assignment: the next controller starts again from
there, and takes for old whatever is not a target.

Kafka 0.8.2.2: KafkaController.onPartitionReassignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.errors import BadVersion, NoNode
from watchkeeper.model.actor.operations import Delete, SetData
from watchkeeper.model.controller.state_machines import partitions, replicas
from watchkeeper.model.controller.state_machines.channel import Sender
from watchkeeper.model.controller.state_machines.context import Replica
from watchkeeper.model.controller.state_machines.reign import CallbackFailed, Reign, assignment_in
from watchkeeper.model.controller.state_machines.selectors import reassigned
from watchkeeper.model.controller.state_machines.states import PartitionStatus, ReplicaStatus
from watchkeeper.model.controller.state_machines.variants import DeadTargets
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import Reassignment, TopicAssignment
from watchkeeper.model.trace.kinds import EventKind

Move = tuple[Partition, tuple[int, ...]]


async def reassignment_requested(reign: Reign) -> None:
    """Begin to move the partitions of a request that do not move yet."""
    for partition, targets in await _requested(reign):
        if partition in reign.context.moves:
            continue
        why = _why_refused(reign, partition, targets)
        if why is not None:
            await reign.note_failure(partition, f"replicas on {list(targets)}", why)
            await _drop(reign, partition)
        else:
            await _begin(reign, partition, targets)


async def reassignment_at_failover(reign: Reign) -> None:
    """Go on with what an earlier controller has begun."""
    for partition, targets in await _requested(reign):
        context = reign.context
        is_done = context.assignment.get(partition) == targets
        dead = not set(targets) <= set(context.live)
        drops = dead and reign.me.variant.dead_targets is DeadTargets.DROPPED
        if is_done or drops or partition not in context.assignment:
            await _drop(reign, partition)
        else:
            await _begin(reign, partition, targets)


async def targets_started(reign: Reign, brokers: Sequence[int]) -> None:
    """Take the next step of each move to one of these brokers."""
    for partition in sorted(reign.context.moves):
        if set(reign.context.moves[partition]) & set(brokers):
            await step(reign, partition)


async def _requested(reign: Reign) -> list[Move]:
    """Read the request. One that names no partition stays, as shipped (KAFKA-2234)."""
    path = paths.REASSIGN_PARTITIONS
    found = await reign.read_request(path, Reassignment.decode)
    if found is None:
        return []
    request, version = found
    if not request.moves and reign.me.variant.fenced:
        with suppress(NoNode, BadVersion):
            await reign.fenced(Delete(path, version, "reassign"))
    return [(Partition(topic, str(index)), targets) for topic, index, targets in request.moves]


def _why_refused(reign: Reign, partition: Partition, targets: tuple[int, ...]) -> str | None:
    context = reign.context
    if partition not in context.assignment:
        return "it does not exist"
    if partition.topic in context.deletions:
        return "its topic is being deleted"
    if context.assignment[partition] == targets:
        return "it is there already"
    dead = [broker for broker in targets if broker not in context.live]
    return f"the brokers {dead} are not alive" if dead else None


async def _begin(reign: Reign, partition: Partition, targets: tuple[int, ...]) -> None:
    context = reign.context
    reign.context = replace(context, moves=context.moves.set(partition, targets))
    try:
        await step(reign, partition)
    except CallbackFailed as why:
        await reign.note_failure(partition, f"replicas on {list(targets)}", str(why))
        await _drop(reign, partition)


# --- the steps -------------------------------------------------------------------------


async def state_changed(reign: Reign, partition: Partition) -> None:
    """Finish a move if the state says that the targets have caught up."""
    await step(reign, partition, begins=False)


async def step(reign: Reign, partition: Partition, *, begins: bool = True) -> None:
    """Take the next step of a move; afterwards its state is watched, or it is done.

    With `begins` the targets are sent once more what they have to do: one of them may have
    started since.
    """
    targets = reign.context.moves.get(partition)
    if targets is None:
        return
    found = await reign.leadership_of(partition, watch=True)
    if found is None:
        await reign.note_failure(partition, f"replicas on {list(targets)}", "it has no state")
        return
    reign.keep(partition, *found)
    if set(targets) <= set(found.state.isr):
        await _finish(reign, partition, targets)
    elif begins:
        await _add_targets(reign, partition, targets)


def _both(reign: Reign, partition: Partition, targets: tuple[int, ...]) -> tuple[int, ...]:
    """The targets, and after them the old replicas."""
    assigned = reign.context.assignment[partition]
    return (*targets, *(broker for broker in assigned if broker not in targets))


async def _add_targets(reign: Reign, partition: Partition, targets: tuple[int, ...]) -> None:
    old = reign.context.assignment[partition]
    both = _both(reign, partition, targets)
    if both != old or not reign.me.variant.fenced:
        await _write_assignment(reign, partition, both)
    reign.assign(partition, both)
    await emit(
        EventKind.REASSIGNING,
        topic=partition.topic,
        partition=partition.name,
        targets=list(targets),
        old=[broker for broker in old if broker not in targets],
    )
    await partitions.raise_epoch(reign, partition)
    fresh = [Replica(partition, broker) for broker in targets if broker not in old]
    await replicas.move(reign, fresh, ReplicaStatus.NEW)


async def _finish(reign: Reign, partition: Partition, targets: tuple[int, ...]) -> None:
    old = [one for one in reign.context.assignment[partition] if one not in targets]
    new = [Replica(partition, broker) for broker in targets]
    await replicas.move(reign, new, ReplicaStatus.ONLINE)
    reign.assign(partition, targets)
    leader = reign.context.leadership[partition].state.leader
    if leader not in targets or leader not in reign.context.live:
        await partitions.move(reign, [partition], PartitionStatus.ONLINE, select=reassigned)
    else:
        await partitions.raise_epoch(reign, partition)
    gone = [Replica(partition, broker) for broker in old]
    for status in (
        ReplicaStatus.OFFLINE,
        ReplicaStatus.DELETION_STARTED,
        ReplicaStatus.DELETION_SUCCESSFUL,
        ReplicaStatus.NON_EXISTENT,
    ):
        await replicas.move(reign, gone, status)
    await _write_assignment(reign, partition, targets)
    await _drop(reign, partition)
    await emit(
        EventKind.REASSIGNED,
        topic=partition.topic,
        partition=partition.name,
        replicas=list(targets),
    )
    said = reign.context.said_of(partition)
    if said is not None:
        reign.check_batch(Sender.CONTROLLER)
        reign.batch.tell(reign.context.live, (said,))
        await reign.send()


# --- the znodes ------------------------------------------------------------------------


async def _write_assignment(
    reign: Reign, partition: Partition, replicas_of: tuple[int, ...]
) -> None:
    """Write the replicas of a partition into the assignment of its topic.

    As shipped the whole assignment is what the controller remembers, and replaces whatever is
    there. `hardened` changes one partition of what is there.
    """
    path = paths.topic(partition.topic)
    if not reign.me.variant.fenced:
        known = {
            int(one.name): brokers
            for one, brokers in reign.context.assignment.items()
            if one.topic == partition.topic
        }
        await _set(reign, path, {**known, int(partition.name): replicas_of}, -1)
        return
    while True:
        [seen] = await reign.read_all([path], watch=False)
        found = assignment_in(path, seen)
        if seen is None or found is None:
            return
        rows = {**dict(found.replicas), int(partition.name): replicas_of}
        try:
            await _set(reign, path, rows, seen.version)
        except BadVersion:
            continue
        return


async def _set(reign: Reign, path: str, rows: dict[int, tuple[int, ...]], version: int) -> None:
    data = TopicAssignment(tuple(sorted(rows.items()))).encode()
    try:
        await reign.fenced(SetData(path, data, version, "reassign"))
    except NoNode:
        return


async def _drop(reign: Reign, partition: Partition) -> None:
    """Remove a partition from the request; delete the request with its last one."""
    context = reign.context
    if partition in context.moves:
        reign.context = replace(context, moves=context.moves.delete(partition))
    path = paths.REASSIGN_PARTITIONS
    while True:
        seen = await reign.read_and_watch(path)
        if seen is None:
            return
        version = seen.version if reign.me.variant.fenced else -1
        try:
            await reign.fenced(_without(seen.data, partition, version))
        except BadVersion:
            continue
        except NoNode:
            pass
        return


def _without(data: bytes | None, partition: Partition, version: int) -> SetData | Delete:
    path = paths.REASSIGN_PARTITIONS
    moves = Reassignment.decode(path, data).moves
    rest = tuple(
        move for move in moves if (move[0], move[1]) != (partition.topic, int(partition.name))
    )
    if not rest:
        return Delete(path, version, "reassign")
    return SetData(path, Reassignment(rest).encode(), version, "reassign")
