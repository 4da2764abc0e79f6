"""The partition state machine: what each transition does, as one table.

Kafka 0.8.2.2: PartitionStateMachine. A transition that fails leaves its partition in the state
it is in and is written into the trace; the others go on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.errors import NodeExists
from watchkeeper.model.controller.state_machines.channel import Sender
from watchkeeper.model.controller.state_machines.reign import (
    CallbackFailed,
    Reign,
    TransitionFailed,
)
from watchkeeper.model.controller.state_machines.selectors import (
    Choice,
    NoLeader,
    NotNeeded,
    Selector,
    offline,
)
from watchkeeper.model.controller.state_machines.states import PartitionStatus
from watchkeeper.model.controller.state_machines.variants import ExistingState, Writes
from watchkeeper.model.controller.state_machines.writes import (
    StateWrite,
    elected,
    first_state,
    with_higher_epoch,
)
from watchkeeper.model.trace.kinds import EventKind

Action = Callable[[Reign, Partition, Selector], Awaitable[None]]


async def _nothing(reign: Reign, partition: Partition, select: Selector) -> None:
    """A transition in memory alone."""


async def _create(reign: Reign, partition: Partition, select: Selector) -> None:
    """Write the first state of a partition."""
    context = reign.context
    write = first_state(
        partition, context.assignment.get(partition, ()), context.live, context.epoch
    )
    if write is None:
        raise TransitionFailed("none of its replicas is alive")
    try:
        await reign.write(write)
        reign.lead(partition, write.state.isr)
    except NodeExists:
        if reign.me.variant.existing_state is ExistingState.FAILS:
            raise TransitionFailed("it has a state already") from None
        await _elect_if_leader_is_dead(reign, partition)


async def _elect_if_leader_is_dead(reign: Reign, partition: Partition) -> None:
    """Adopt the state of a partition; elect another leader only if this one is dead."""
    found = await reign.leadership_of(partition)
    if found is None:
        raise TransitionFailed("its state cannot be read")
    reign.keep(partition, *found)
    if found.state.leader not in reign.context.live:
        await _elect(reign, partition, offline)
    else:
        reign.lead(partition, _alive(reign, partition))


def _alive(reign: Reign, partition: Partition) -> list[int]:
    context = reign.context
    reachable = (*context.live, *context.shutting_down)
    return [one for one in context.assignment.get(partition, ()) if one in reachable]


async def _elect(reign: Reign, partition: Partition, select: Selector) -> None:
    """Elect the leader of a partition that has a state.

    Another write in between is no reason to give up: the state is read again.
    """
    was_refused = False
    while True:
        before = await reign.state_to_replace(partition, was_refused=was_refused)
        if before is None:
            raise TransitionFailed("it has no state")
        if before.state.controller_epoch > reign.context.epoch:
            raise TransitionFailed(
                f"its state was written in epoch {before.state.controller_epoch}"
            )
        unclean = await reign.allows_unclean(partition, before.state)
        try:
            choice = select(reign.context, partition, before.state, unclean)
        except NoLeader as why:
            if reign.may_be_stale(was_refused=was_refused):
                was_refused = True
                continue
            if isinstance(why, NotNeeded):
                reign.keep(partition, *before)
                return
            raise TransitionFailed(str(why)) from None
        if await reign.write(elected(partition, before, choice, reign.context.epoch)):
            await _note_election(partition, choice)
            reign.lead(partition, _alive(reign, partition))
            return
        was_refused = True


async def _note_election(partition: Partition, choice: Choice) -> None:
    """Write into the trace that messages may be lost."""
    if not choice.is_clean:
        await emit(
            EventKind.UNCLEAN_ELECTION,
            topic=partition.topic,
            partition=partition.name,
            leader=choice.leader,
        )


TRANSITIONS: Mapping[PartitionStatus, Mapping[PartitionStatus, Action]] = {
    PartitionStatus.NEW: {PartitionStatus.NON_EXISTENT: _nothing},
    PartitionStatus.ONLINE: {
        PartitionStatus.NEW: _create,
        PartitionStatus.ONLINE: _elect,
        PartitionStatus.OFFLINE: _elect,
    },
    PartitionStatus.OFFLINE: {
        PartitionStatus.NEW: _nothing,
        PartitionStatus.ONLINE: _nothing,
        PartitionStatus.OFFLINE: _nothing,
    },
    PartitionStatus.NON_EXISTENT: {PartitionStatus.OFFLINE: _nothing},
}
"""State to reach -> state to leave -> what it takes."""


async def move(
    reign: Reign,
    partitions: Iterable[Partition],
    to: PartitionStatus,
    *,
    select: Selector = offline,
) -> None:
    """Bring partitions into a state, one after the other."""
    waiting = list(partitions)
    if waiting and not await reign.can_send(Sender.PARTITIONS):
        return
    if to is PartitionStatus.ONLINE:
        waiting = await _move_together(reign, waiting, select)
    for partition in waiting:
        before = reign.context.partitions.get(partition, PartitionStatus.NON_EXISTENT)
        action = TRANSITIONS[to].get(before)
        if action is None:
            await reign.note_failure(partition, to.value, f"it is {before}")
            continue
        try:
            await action(reign, partition, select)
        except TransitionFailed as why:
            await reign.note_failure(partition, to.value, str(why))
        else:
            reign.mark(partition, to)
    await reign.send_of(Sender.PARTITIONS)


async def _move_together(
    reign: Reign, partitions: Sequence[Partition], select: Selector
) -> list[Partition]:
    """Write the states of many partitions in one batch; return the partitions that are left.

    Left is what cannot be decided by what is known, and what is refused.
    """
    if reign.me.variant.writes is Writes.ONE_BY_ONE or len(partitions) < 2:
        return list(partitions)
    planned: dict[Partition, tuple[StateWrite, Choice | None]] = {}
    for partition in partitions:
        found = _planned(reign, partition, select)
        if found is not None:
            planned[partition] = found
    if len(planned) < 2:
        return list(partitions)
    done = await reign.write_together([write for write, _ in planned.values()])
    for write in done:
        _, choice = planned[write.partition]
        reign.mark(write.partition, PartitionStatus.ONLINE)
        if choice is not None:
            await _note_election(write.partition, choice)
        reign.lead(write.partition, _alive(reign, write.partition))
    moved = {write.partition for write in done}
    return [partition for partition in partitions if partition not in moved]


def _planned(
    reign: Reign, partition: Partition, select: Selector
) -> tuple[StateWrite, Choice | None] | None:
    """The write that brings a partition online, as far as is known without a read."""
    context = reign.context
    status = context.partitions.get(partition, PartitionStatus.NON_EXISTENT)
    if status is PartitionStatus.NEW:
        replicas = context.assignment.get(partition, ())
        write = first_state(partition, replicas, context.live, context.epoch)
        return None if write is None else (write, None)
    known = context.leadership.get(partition)
    if status not in TRANSITIONS[PartitionStatus.ONLINE] or known is None:
        return None
    if known.state.controller_epoch > context.epoch or reign.depends_on_settings(known.state):
        return None
    try:
        choice = select(context, partition, known.state, reign.me.allows_unclean)
    except NoLeader:
        return None
    return elected(partition, known, choice, context.epoch), choice


async def start(reign: Reign) -> None:
    """Put each partition into the state that its leader implies, and elect where it is dead."""
    context = reign.context
    for partition in context.assigned():
        known = context.leadership.get(partition)
        if known is None:
            reign.mark(partition, PartitionStatus.NEW)
        elif known.state.leader in context.live:
            reign.mark(partition, PartitionStatus.ONLINE)
        else:
            reign.mark(partition, PartitionStatus.OFFLINE)
    await bring_online(reign)


async def bring_online(reign: Reign) -> None:
    """Elect a leader for every partition that has none."""
    context = reign.context
    waiting = context.with_status(PartitionStatus.NEW, PartitionStatus.OFFLINE)
    kept = [one for one in waiting if one.topic not in context.deletions]
    await move(reign, kept, PartitionStatus.ONLINE)


async def raise_epoch(reign: Reign, partition: Partition) -> None:
    """Raise the leader epoch, so that every replica takes what is sent to it.

    Raises CallbackFailed, as `Reign.send` does, and where the state is that of a later reign
    than one that is over.
    """
    reign.check_batch(Sender.CONTROLLER)
    was_refused = False
    while True:
        before = await reign.state_to_replace(partition, was_refused=was_refused)
        if before is None or before.state.controller_epoch > reign.context.epoch:
            await reign.note_failure(partition, "a higher epoch", "its state is another's")
            if reign.is_over:
                raise CallbackFailed(f"the state of {partition} is that of a later reign")
            return
        write = with_higher_epoch(partition, before, reign.context.epoch)
        if await reign.write(write):
            break
        was_refused = True
    reign.lead(partition, _alive(reign, partition))
    await reign.send()
