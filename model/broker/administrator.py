"""The administrator of a cluster in the 0.8 layout.

There, topics belong to the cluster and not to a broker. Their partitions, replicas and
leaders have to be written by a process; later versions have a controller for it. This
program does what an administrator's commands did, and moves leaders to live brokers. In a
cluster whose brokers elect a controller, it only writes the assignments of topics.

The state of a partition is written when its leader changes. Its `isr` and `leader_epoch` do not
follow the death or the return of another replica, as those of a controller would; its
`controller_epoch` stays 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from watchkeeper.model.actor.effects import (
    Partition,
    close_session,
    connected,
    new_session,
    next_event,
)
from watchkeeper.model.actor.errors import (
    BadVersion,
    ConnectionLoss,
    NodeExists,
    NoNode,
    SessionExpired,
)
from watchkeeper.model.actor.events import LEAVE, Command, CommandKind, Notification, SessionEvent
from watchkeeper.model.actor.operations import (
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    SetData,
    ZooKeeper,
)
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.retry import Direct, create_with_parents
from watchkeeper.model.broker.registration import CHANGES
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import NO_LEADER, PartitionState, TopicAssignment


@dataclass(frozen=True, slots=True)
class Administrator:
    """The configuration of an administrator."""

    node: str
    topics: tuple[tuple[str, TopicAssignment], ...]
    elects_leaders: bool = True
    """Whether it writes the states of partitions; otherwise a controller does."""
    adds_to_what_is_there: bool = False
    """Whether it changes an assignment under its version, and leaves other partitions as they
    are. Tools of 0.8 write what they read before, over whatever is there."""
    takes_ids_for_places: bool = False
    """Whether new partitions begin at the place whose number is the id of a broker, as tools of
    0.8 place them (KAFKA-2146)."""


@dataclass(frozen=True, slots=True)
class AdministratorState:
    """What an administrator knows from one turn to the next."""

    topics: tuple[tuple[str, TopicAssignment], ...]
    """The topics that the registry has to have."""
    commands: tuple[Command, ...] = ()
    """Commands that are not executed yet."""
    has_session: bool = False
    is_dirty: bool = True
    is_leaving: bool = False
    moves: tuple[tuple[Partition, int], ...] = ()
    """Requested leaders: partition, broker id."""
    deleted: tuple[str, ...] = ()
    """Topics to delete."""
    written: tuple[tuple[str, TopicAssignment], ...] = ()
    """With a controller: assignments that it has written. They may have changed since."""


def administrator(me: Administrator) -> Program:
    """The program of an administrator."""
    return Program(turn, me, AdministratorState(me.topics))


async def turn(
    zk: ZooKeeper, me: Administrator, state: AdministratorState
) -> AdministratorState | Ended:
    """Take one turn of an administrator's life."""
    try:
        return await _turn(me, state)
    except ConnectionLoss:
        try:
            await connected()
        except SessionExpired:
            await new_session()
    except SessionExpired:
        await new_session()
    return replace(state, is_dirty=True)


async def _turn(me: Administrator, state: AdministratorState) -> AdministratorState | Ended:
    if not state.has_session:
        await new_session()
        return replace(state, has_session=True)
    if state.is_leaving:
        await close_session()
        return Ended("left")
    if state.commands:
        first, *others = state.commands
        planned = await _after_command(me, state, first)
        return replace(planned, commands=tuple(others), is_dirty=True)
    if state.is_dirty:
        written = await _bring_about(me, state)
        return replace(state, is_dirty=False, moves=(), deleted=(), written=written)
    return await _take(state, await next_event())


async def _take(
    state: AdministratorState, notification: Notification | None
) -> AdministratorState:
    if notification is SessionEvent.EXPIRED:
        await new_session()
    elif notification == LEAVE:
        return replace(state, is_leaving=True)
    elif isinstance(notification, Command):
        return replace(state, commands=(*state.commands, notification))
    return replace(state, is_dirty=True)


async def _after_command(
    me: Administrator, state: AdministratorState, command: Command
) -> AdministratorState:
    """Return the state with the wanted topics after a command."""
    if command.kind is CommandKind.MOVE_LEADER:
        partition = Partition(command.topic, str(command.number))
        return replace(state, moves=(*state.moves, (partition, command.broker)))
    is_deletion = command.kind is CommandKind.DELETE_TOPIC
    brokers = () if is_deletion else await _brokers(watch=False)
    after = assigned_after(
        dict(state.topics), command, brokers, takes_ids_for_places=me.takes_ids_for_places
    )
    deleted = (command.topic,) if is_deletion else ()
    return replace(state, topics=tuple(after.items()), deleted=(*state.deleted, *deleted))


def assigned_after(
    assigned: Mapping[str, TopicAssignment],
    command: Command,
    brokers: tuple[int, ...],
    *,
    takes_ids_for_places: bool = False,
) -> dict[str, TopicAssignment]:
    """Return the assignment of each topic after a command; `brokers` are those that live."""
    if command.kind not in CHANGES:
        return dict(assigned)
    found = {topic: one for topic, one in assigned.items() if topic != command.topic}
    if command.kind is not CommandKind.DELETE_TOPIC:
        before = assigned.get(command.topic, TopicAssignment(()))
        start = _first_leader(before) if takes_ids_for_places else 0
        found[command.topic] = _spread(before, command.number, brokers, start)
    return found


def _first_leader(before: TopicAssignment) -> int:
    """The id of the broker that should lead the first partition."""
    return next((homes[0] for _, homes in before.replicas if homes), 0)


def _spread(
    before: TopicAssignment, number: int, brokers: tuple[int, ...], start: int
) -> TopicAssignment:
    """Return the assignment with `number` partitions, the new ones on the brokers in turn."""
    replicas = list(before.replicas)
    for index in range(len(replicas), number):
        homes = (brokers[(index + start) % len(brokers)],) if brokers else ()
        replicas.append((index, homes))
    return TopicAssignment(tuple(replicas))


async def _brokers(*, watch: bool) -> tuple[int, ...]:
    """Return the ids of the live brokers, sorted."""
    try:
        names = await GetChildren(paths.BROKER_IDS, watch, "administer")
    except NoNode:
        if watch and await Exists(paths.BROKER_IDS, True, "administer") is not None:
            return await _brokers(watch=True)
        return ()
    return tuple(sorted(int(name) for name in names if name.isdigit()))


async def _bring_about(
    me: Administrator, state: AdministratorState
) -> tuple[tuple[str, TopicAssignment], ...]:
    """Write topics into the registry, and leaders unless a controller does.

    Returns the assignments that are written. Where a controller is, each is written once: the
    controller reassigns partitions and deletes topics.
    """
    written = dict(state.written)
    alive = await _brokers(watch=True)
    for topic in state.deleted:
        await _delete_below(paths.topic(topic))
    for topic, assignment in state.topics:
        if me.elects_leaders:
            await _lead_all(topic, assignment, alive, dict(state.moves))
        elif written.get(topic) == assignment or not await _can_create(topic, assignment, alive):
            continue
        if me.adds_to_what_is_there:
            await _add_to(paths.topic(topic), assignment)
        else:
            await _write(paths.topic(topic), assignment.encode())
        if not me.elects_leaders:
            written[topic] = assignment
    return tuple(written.items())


async def _can_create(topic: str, assignment: TopicAssignment, alive: tuple[int, ...]) -> bool:
    """Whether a topic exists, or all of its brokers are alive.

    Tools place a new topic on live brokers. A topic that is created before its brokers have
    started begins with a smaller ISR.
    """
    homes = {broker for _, replicas in assignment.replicas for broker in replicas}
    return homes <= set(alive) or (
        await Exists(paths.topic(topic), purpose="administer") is not None
    )


async def _lead_all(
    topic: str,
    assignment: TopicAssignment,
    alive: tuple[int, ...],
    moves: Mapping[Partition, int],
) -> None:
    for index, replicas in assignment.replicas:
        partition = Partition(topic, str(index))
        await _lead(partition, replicas, alive, moves.get(partition))


async def _lead(
    partition: Partition, replicas: tuple[int, ...], alive: tuple[int, ...], asked: int | None
) -> None:
    """Give a partition a live replica as its leader, or none."""
    path = paths.partition_state(partition)
    try:
        state = PartitionState.decode(path, (await GetData(path, False, "administer")).data)
    except NoNode:
        state = None
    in_sync = tuple(broker for broker in replicas if broker in alive)
    leader = _leader(state, in_sync, asked)
    if state is not None and state.leader == leader:
        return
    epoch = 0 if state is None else state.leader_epoch + 1
    await _write(path, PartitionState(leader, in_sync, leader_epoch=epoch).encode())


def _leader(state: PartitionState | None, in_sync: tuple[int, ...], asked: int | None) -> int:
    if asked is not None and asked in in_sync:
        return asked
    if state is not None and state.leader in in_sync:
        return state.leader
    return in_sync[0] if in_sync else NO_LEADER


async def _write(path: str, data: bytes) -> None:
    """Write a znode unless it has this data already."""
    try:
        if (await GetData(path, False, "administer")).data != data:
            await SetData(path, data, purpose="administer")
    except NoNode:
        try:
            await create_with_parents(Direct(), Create(path, data, purpose="administer"))
        except NodeExists:
            await SetData(path, data, purpose="administer")


async def _add_to(path: str, assignment: TopicAssignment) -> None:
    """Create a topic, or add the partitions that it does not have."""
    while True:
        try:
            seen = await GetData(path, False, "administer")
        except NoNode:
            with suppress(NodeExists):
                creation = Create(path, assignment.encode(), purpose="administer")
                await create_with_parents(Direct(), creation)
                return
            continue
        there = TopicAssignment.decode(path, seen.data)
        rows = {**dict(assignment.replicas), **dict(there.replicas)}
        merged = TopicAssignment(tuple(sorted(rows.items())))
        if merged == there:
            return
        with suppress(BadVersion, NoNode):
            await SetData(path, merged.encode(), seen.version, "administer")
            return


async def _delete_below(path: str) -> None:
    """Delete a znode and all that is below it."""
    try:
        for name in sorted(await GetChildren(path, False, "administer")):
            await _delete_below(f"{path}/{name}")
        await Delete(path, purpose="administer")
    except NoNode:
        return
