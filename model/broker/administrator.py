"""The administrator of a cluster in the 0.8 layout.

There, topics belong to the cluster and not to a broker, and somebody has to write them:
which partitions a topic has, which brokers hold them, and who leads. Later versions have
a controller for it. This program does what an administrator's commands did, and keeps
the leaders in step with the brokers that are alive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from model import registry
from model.answers import LEAVE, Note, Order, Ordered, SessionNote
from model.asks import Partition, close_session, connected, new_session, next_note
from model.errors import ConnectionLoss, NodeExists, NoNode, SessionExpired
from model.operations import Create, Delete, Exists, GetChildren, GetData, SetData, ZooKeeper
from model.payloads import PartitionState, TopicAssignment
from model.program import Ended, Program
from model.requests import Direct, create_with_parents

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Administrator:
    """What an administrator is told when it starts."""

    node: str
    topics: tuple[tuple[str, TopicAssignment], ...]


@dataclass(frozen=True, slots=True)
class AdministratorMemory:
    """What an administrator knows from one turn to the next."""

    topics: tuple[tuple[str, TopicAssignment], ...]
    """What there is to be."""
    orders: tuple[Ordered, ...] = ()
    """What was asked for and is not yet taken into account."""
    has_session: bool = False
    is_dirty: bool = True
    is_leaving: bool = False
    moves: tuple[tuple[Partition, int], ...] = ()
    """Leaders that were asked for."""
    deleted: tuple[str, ...] = ()
    """Topics that are to go."""


def administrator(me: Administrator) -> Program:
    """The program of an administrator."""
    return Program(turn, me, AdministratorMemory(me.topics))


async def turn(
    zk: ZooKeeper, me: Administrator, memory: AdministratorMemory
) -> AdministratorMemory | Ended:
    """Take one turn of an administrator's life."""
    try:
        return await _turn(memory)
    except ConnectionLoss:
        try:
            await connected()
        except SessionExpired:
            await new_session()
    except SessionExpired:
        await new_session()
    return replace(memory, is_dirty=True)


async def _turn(memory: AdministratorMemory) -> AdministratorMemory | Ended:
    if not memory.has_session:
        await new_session()
        return replace(memory, has_session=True)
    if memory.is_leaving:
        await close_session()
        return Ended("left")
    if memory.orders:
        first, *others = memory.orders
        ordered = await _ordered(memory, first)
        return replace(ordered, orders=tuple(others), is_dirty=True)
    if memory.is_dirty:
        await _bring_about(memory)
        return replace(memory, is_dirty=False, moves=(), deleted=())
    return await _take(memory, await next_note())


async def _take(memory: AdministratorMemory, note: Note | None) -> AdministratorMemory:
    if note is SessionNote.EXPIRED:
        await new_session()
    elif note == LEAVE:
        return replace(memory, is_leaving=True)
    elif isinstance(note, Ordered):
        return replace(memory, orders=(*memory.orders, note))
    return replace(memory, is_dirty=True)


async def _ordered(memory: AdministratorMemory, order: Ordered) -> AdministratorMemory:
    """What is to be, after an order."""
    others = tuple(pair for pair in memory.topics if pair[0] != order.topic)
    if order.order is Order.DELETE_TOPIC:
        return replace(memory, topics=others, deleted=(*memory.deleted, order.topic))
    if order.order is Order.MOVE_LEADER:
        partition = Partition(order.topic, str(order.number))
        return replace(memory, moves=(*memory.moves, (partition, order.broker)))
    brokers = await _brokers(watch=False)
    before = dict(memory.topics).get(order.topic, TopicAssignment(()))
    grown = spread(before, order.number, brokers)
    return replace(memory, topics=(*others, (order.topic, grown)))


def spread(before: TopicAssignment, number: int, brokers: tuple[int, ...]) -> TopicAssignment:
    """Give a topic this many partitions, dealing the new ones to the brokers in turn."""
    replicas = list(before.replicas)
    for index in range(len(replicas), number):
        homes = (brokers[index % len(brokers)],) if brokers else ()
        replicas.append((index, homes))
    return TopicAssignment(tuple(replicas))


async def _brokers(*, watch: bool) -> tuple[int, ...]:
    """The brokers that are alive."""
    try:
        names = await GetChildren(registry.BROKER_IDS, watch, "administer")
    except NoNode:
        if watch and await Exists(registry.BROKER_IDS, True, "administer") is not None:
            return await _brokers(watch=True)
        return ()
    return tuple(sorted(int(name) for name in names))


async def _bring_about(memory: AdministratorMemory) -> None:
    """Make the registry say what is to be: topics, then leaders."""
    alive = await _brokers(watch=True)
    for topic in memory.deleted:
        await _delete_below(registry.topic(topic))
    for topic, assignment in memory.topics:
        for index, replicas in assignment.replicas:
            partition = Partition(topic, str(index))
            asked = dict(memory.moves).get(partition)
            await _lead(partition, replicas, alive, asked)
        await _write(registry.topic(topic), assignment.encode())


async def _lead(
    partition: Partition, replicas: tuple[int, ...], alive: tuple[int, ...], asked: int | None
) -> None:
    """See to it that a partition is led by a replica that is alive, or by none."""
    path = registry.partition_state(partition)
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
    """Write a znode unless it says this already."""
    try:
        if (await GetData(path, False, "administer")).data != data:
            await SetData(path, data, purpose="administer")
    except NoNode:
        try:
            await create_with_parents(Direct(), Create(path, data, purpose="administer"))
        except NodeExists:
            await SetData(path, data, purpose="administer")


async def _delete_below(path: str) -> None:
    """Delete a znode and all that is below it."""
    try:
        for name in sorted(await GetChildren(path, False, "administer")):
            await _delete_below(f"{path}/{name}")
        await Delete(path, purpose="administer")
    except NoNode:
        return
