"""The replica state machine: what each transition does, as one table.

Kafka 0.8.2.2: ReplicaStateMachine. Of its actions the removal from the ISR concerns ZooKeeper;
the others are requests to brokers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.controller.state_machines.channel import Sender
from watchkeeper.model.controller.state_machines.context import Replica, place_of
from watchkeeper.model.controller.state_machines.reign import Reign, TransitionFailed
from watchkeeper.model.controller.state_machines.states import ReplicaStatus
from watchkeeper.model.controller.state_machines.variants import (
    DeadAtFailover,
    ReplicaWithoutState,
    Writes,
)
from watchkeeper.model.controller.state_machines.writes import StateWrite, without_replica

Action = Callable[[Reign, Replica], Awaitable[None]]


async def _nothing(reign: Reign, replica: Replica) -> None:
    """A transition in memory alone."""


async def _send_state(reign: Reign, replica: Replica) -> None:
    """Let a replica lead or follow, as far as the controller remembers."""
    reign.lead(replica.partition, (replica.broker,))


async def _create(reign: Reign, replica: Replica) -> None:
    """Let a new replica follow the leader that the registry names."""
    if not reign.me.sends:
        return
    found = await reign.leadership_of(replica.partition)
    if found is None:
        return
    if found.state.leader == replica.broker:
        raise TransitionFailed("it leads already")
    reign.keep(replica.partition, *found)
    reign.lead(replica.partition, (replica.broker,))


async def _append(reign: Reign, replica: Replica) -> None:
    """Let a new replica be one of the assigned ones."""
    assigned = reign.context.assignment.get(replica.partition, ())
    if replica.broker not in assigned:
        reign.assign(replica.partition, (*assigned, replica.broker))


async def _delete(reign: Reign, replica: Replica) -> None:
    """Let a broker delete a replica."""
    reign.batch.stop(replica.broker, replica.partition, deletes=True)


async def _forget(reign: Reign, replica: Replica) -> None:
    """Let a replica be none of the assigned ones."""
    assigned = reign.context.assignment.get(replica.partition, ())
    rest = tuple(broker for broker in assigned if broker != replica.broker)
    reign.assign(replica.partition, rest)


async def _stop(reign: Reign, replica: Replica) -> None:
    """Stop a replica, remove it from the ISR, and let the others know."""
    await _remove_from_isr(reign, replica)
    _tell_stopped(reign, replica)


def _tell_stopped(reign: Reign, replica: Replica) -> None:
    reign.batch.stop(replica.broker, replica.partition, deletes=False)
    if replica.partition.topic in reign.context.deletions:
        return
    assigned = reign.context.assignment.get(replica.partition, ())
    reign.lead(replica.partition, [one for one in assigned if one != replica.broker])


async def _remove_from_isr(reign: Reign, replica: Replica) -> None:
    """Write the state of the partition without this replica, unless it is not in the ISR."""
    partition, me = replica.partition, reign.me
    if partition not in reign.context.leadership:
        if me.variant.replica_without_state is ReplicaWithoutState.STOPS:
            return
        raise TransitionFailed("its partition has no known state")
    was_refused = False
    while True:
        before = await reign.state_to_replace(partition, was_refused=was_refused)
        if before is None:
            if _may_stop_without_state(reign, partition):
                return
            raise TransitionFailed("its partition has no state")
        if before.state.controller_epoch > reign.context.epoch:
            raise TransitionFailed(
                f"the state was written in epoch {before.state.controller_epoch}"
            )
        write = without_replica(
            partition,
            replica.broker,
            before,
            reign.context.epoch,
            me.variant.last_in_sync,
            allows_unclean=await reign.allows_unclean(partition, before.state),
        )
        if write is None and reign.may_be_stale(was_refused=was_refused):
            was_refused = True
            continue
        if write is None:
            reign.keep(partition, *before)
            return
        if await reign.write(write):
            return
        was_refused = True


def _may_stop_without_state(reign: Reign, partition: Partition) -> bool:
    """Whether a replica of a topic that goes may stop though its state has gone first."""
    stops = reign.me.variant.replica_without_state is ReplicaWithoutState.STOPS
    return stops and partition.topic in reign.context.deletions


TRANSITIONS: Mapping[ReplicaStatus, Mapping[ReplicaStatus, Action]] = {
    ReplicaStatus.NEW: {ReplicaStatus.NON_EXISTENT: _create},
    ReplicaStatus.ONLINE: {
        ReplicaStatus.NEW: _append,
        ReplicaStatus.ONLINE: _send_state,
        ReplicaStatus.OFFLINE: _send_state,
        ReplicaStatus.DELETION_INELIGIBLE: _send_state,
    },
    ReplicaStatus.OFFLINE: {
        ReplicaStatus.NEW: _stop,
        ReplicaStatus.ONLINE: _stop,
        ReplicaStatus.OFFLINE: _stop,
        ReplicaStatus.DELETION_INELIGIBLE: _stop,
    },
    ReplicaStatus.DELETION_STARTED: {ReplicaStatus.OFFLINE: _delete},
    ReplicaStatus.DELETION_SUCCESSFUL: {ReplicaStatus.DELETION_STARTED: _nothing},
    ReplicaStatus.DELETION_INELIGIBLE: {ReplicaStatus.DELETION_STARTED: _nothing},
    ReplicaStatus.NON_EXISTENT: {ReplicaStatus.DELETION_SUCCESSFUL: _forget},
}
"""State to reach -> state to leave -> what it takes."""


async def move(reign: Reign, replicas: Iterable[Replica], to: ReplicaStatus) -> None:
    """Bring replicas into a state, one after the other."""
    waiting = list(replicas)
    if waiting and not await reign.can_send(Sender.REPLICAS):
        return
    if to is ReplicaStatus.OFFLINE:
        waiting = await _stop_together(reign, waiting)
    for replica in waiting:
        before = reign.context.replicas.get(replica, ReplicaStatus.NON_EXISTENT)
        action = TRANSITIONS[to].get(before)
        wanted = f"replica {replica.broker} {to}"
        if action is None:
            await reign.note_failure(replica.partition, wanted, f"it is {before}")
            continue
        try:
            await action(reign, replica)
        except TransitionFailed as why:
            await reign.note_failure(replica.partition, wanted, str(why))
        else:
            _mark(reign, replica, to)
    await reign.send_of(Sender.REPLICAS)


async def _stop_together(reign: Reign, replicas: Sequence[Replica]) -> list[Replica]:
    """Remove replicas of many partitions from their ISRs in one batch; return those left.

    All states are read first, in one batch, since leaders may have changed them. One replica of
    each partition at most: each write depends on the one before. Left is what is refused, too.
    """
    if reign.me.variant.writes is Writes.ONE_BY_ONE or len(replicas) < 2:
        return list(replicas)
    chosen = {replica.partition: replica for replica in reversed(replicas)}
    legal = {
        partition: replica
        for partition, replica in chosen.items()
        if reign.context.replicas.get(replica) in TRANSITIONS[ReplicaStatus.OFFLINE]
    }
    known = await reign.read_states(sorted(legal, key=place_of))
    writes = {partition: _without(reign, legal[partition]) for partition in known}
    done = await reign.write_together([write for write in writes.values() if write is not None])
    unneeded = [partition for partition, write in writes.items() if write is None]
    stopped = [legal[one] for one in (*(write.partition for write in done), *unneeded)]
    for replica in stopped:
        _tell_stopped(reign, replica)
        _mark(reign, replica, ReplicaStatus.OFFLINE)
    return [replica for replica in replicas if replica not in stopped]


def _without(reign: Reign, replica: Replica) -> StateWrite | None:
    """The write that removes a replica from the ISR; None if it is not in it."""
    return without_replica(
        replica.partition,
        replica.broker,
        reign.context.leadership[replica.partition],
        reign.context.epoch,
        reign.me.variant.last_in_sync,
        allows_unclean=reign.me.allows_unclean,
    )


def _mark(reign: Reign, replica: Replica, status: ReplicaStatus) -> None:
    marked = reign.context.replicas.set(replica, status)
    reign.context = replace(reign.context, replicas=marked)


async def start(reign: Reign) -> None:
    """Put each replica into the state that its broker implies, and bring the live ones online."""
    for replica in reign.context.replicas_of(reign.context.assigned()):
        is_live = replica.broker in reign.context.live
        status = ReplicaStatus.ONLINE if is_live else ReplicaStatus.DELETION_INELIGIBLE
        _mark(reign, replica, status)
    live = reign.context.replicas_on(reign.context.live)
    await move(reign, live, ReplicaStatus.ONLINE)


async def end_dead(reign: Reign) -> None:
    """Let the replicas that are dead at a failover leave the ISR, where the variant says so."""
    if reign.me.variant.dead_at_failover is DeadAtFailover.LEAVE_ISR:
        ineligible = [
            replica
            for replica in reign.context.replicas_of(reign.context.assigned())
            if reign.context.replicas[replica] is ReplicaStatus.DELETION_INELIGIBLE
            and replica.partition in reign.context.leadership
        ]
        await move(reign, ineligible, ReplicaStatus.OFFLINE)
