"""The replica state machine: what each transition does, as one table.

Kafka 0.8.2.2: ReplicaStateMachine. Of its actions only the removal from the ISR concerns
ZooKeeper; the others are requests to brokers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace

from watchkeeper.model.controller.context import Replica
from watchkeeper.model.controller.reign import Reign, TransitionFailed
from watchkeeper.model.controller.states import ReplicaStatus
from watchkeeper.model.controller.variants import DeadAtFailover
from watchkeeper.model.controller.writes import without_replica

Action = Callable[[Reign, Replica], Awaitable[None]]


async def _nothing(reign: Reign, replica: Replica) -> None:
    """A transition in memory alone."""


async def _remove_from_isr(reign: Reign, replica: Replica) -> None:
    """Write the state of the partition without this replica, unless it is not in the ISR."""
    partition, me = replica.partition, reign.me
    if partition not in reign.context.leadership:
        raise TransitionFailed("its partition has no known state")
    was_refused = False
    while True:
        before = await reign.state_to_replace(partition, was_refused=was_refused)
        if before is None:
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
            allows_unclean=me.allows_unclean,
        )
        if write is None:
            reign.keep(partition, *before)
            return
        if await reign.write(write):
            return
        was_refused = True


TRANSITIONS: Mapping[ReplicaStatus, Mapping[ReplicaStatus, Action]] = {
    ReplicaStatus.NEW: {ReplicaStatus.NON_EXISTENT: _nothing},
    ReplicaStatus.ONLINE: {
        ReplicaStatus.NEW: _nothing,
        ReplicaStatus.ONLINE: _nothing,
        ReplicaStatus.OFFLINE: _nothing,
        ReplicaStatus.DELETION_INELIGIBLE: _nothing,
    },
    ReplicaStatus.OFFLINE: {
        ReplicaStatus.NEW: _remove_from_isr,
        ReplicaStatus.ONLINE: _remove_from_isr,
        ReplicaStatus.OFFLINE: _remove_from_isr,
        ReplicaStatus.DELETION_INELIGIBLE: _remove_from_isr,
    },
}
"""State to reach -> state to leave -> what it takes."""


async def move(reign: Reign, replicas: Iterable[Replica], to: ReplicaStatus) -> None:
    """Bring replicas into a state, one after the other."""
    for replica in replicas:
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


def _mark(reign: Reign, replica: Replica, status: ReplicaStatus) -> None:
    marked = reign.context.replicas.set(replica, status)
    reign.context = replace(reign.context, replicas=marked)


def start(reign: Reign) -> None:
    """Put each replica into the state that its broker implies."""
    for replica in reign.context.replicas_of(reign.context.assigned()):
        is_live = replica.broker in reign.context.live
        status = ReplicaStatus.ONLINE if is_live else ReplicaStatus.DELETION_INELIGIBLE
        _mark(reign, replica, status)


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
