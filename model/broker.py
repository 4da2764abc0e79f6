"""A broker's registrations: its id, and in the 0.7 layout the topics it has.

The pages register the id first and the topics after it. A consumer that the id has woken
may read the topics in between, find none of this broker's, and never be woken again.
`hardened` registers both in one multi.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from model import registry
from model.answers import LEAVE, Note, Order, Ordered, SessionNote
from model.asks import close_session, connected, new_session, next_note, now_ms, sleep, tell
from model.errors import (
    ConnectionLoss,
    NodeExists,
    NoNode,
    SessionExpired,
    TransactionFailed,
    ZooKeeperError,
)
from model.operations import Create, Delete, Exists, GetData, Multi, SetData, ZooKeeper
from model.program import Ended, Program
from model.registry import BrokerInfo, Layout
from model.requests import Direct, create_with_parents, ensure_parents
from model.variants import Variant


@dataclass(frozen=True, slots=True)
class Broker:
    """What a broker is told when it starts."""

    node: str
    broker_id: int
    host: str
    port: int
    layout: Layout
    variant: Variant
    topics: tuple[tuple[str, int], ...] = ()
    """0.7: how many partitions of each topic it has on its disk."""
    session_timeout_ms: int = 6000


@dataclass(frozen=True, slots=True)
class BrokerMemory:
    """What a broker knows from one turn to the next."""

    topics: tuple[tuple[str, int], ...]
    started_ms: int | None = None
    """When it was started, by its clock: a part of what it registers."""
    has_session: bool = False
    is_registered: bool = False
    is_blocked: bool = False
    is_leaving: bool = False
    announced: tuple[tuple[str, int], ...] = ()
    """What its topic registrations say, for all it knows."""


def broker(me: Broker) -> Program:
    """The program of one broker."""
    return Program(turn, me, BrokerMemory(me.topics))


async def turn(zk: ZooKeeper, me: Broker, memory: BrokerMemory) -> BrokerMemory | Ended:
    """Take one turn of a broker's life."""
    try:
        return await _turn(me, memory)
    except ConnectionLoss:
        try:
            await connected()
        except SessionExpired:
            return await _after_expiry(memory)
        return memory
    except SessionExpired:
        return await _after_expiry(memory)


async def _turn(me: Broker, memory: BrokerMemory) -> BrokerMemory | Ended:
    if not memory.has_session:
        await new_session()
        started = memory.started_ms if memory.started_ms is not None else await now_ms()
        return replace(memory, has_session=True, started_ms=started)
    if memory.is_leaving:
        await close_session()
        return Ended("left")
    if memory.is_blocked:
        return await _take(memory, await next_note())
    if not memory.is_registered:
        return await _register(me, memory)
    if memory.announced != memory.topics and me.layout == "0.7":
        return await _announce(me, memory)
    return await _take(memory, await next_note())


async def _after_expiry(memory: BrokerMemory) -> BrokerMemory:
    """The session is dead: register everything again in a new one."""
    await new_session()
    return replace(memory, is_registered=False, is_blocked=False, announced=())


async def _take(memory: BrokerMemory, note: Note | None) -> BrokerMemory:
    if note is SessionNote.EXPIRED:
        return await _after_expiry(memory)
    if note == LEAVE:
        return replace(memory, is_leaving=True)
    if isinstance(note, Ordered):
        return replace(memory, topics=_after_order(memory.topics, note))
    return replace(memory, is_blocked=False)


def _after_order(
    topics: tuple[tuple[str, int], ...], order: Ordered
) -> tuple[tuple[str, int], ...]:
    """The topics on disk after one was created, grown or deleted."""
    others = tuple(pair for pair in topics if pair[0] != order.topic)
    if order.order is Order.DELETE_TOPIC:
        return others
    if order.order in (Order.CREATE_TOPIC, Order.ADD_PARTITIONS):
        return (*others, (order.topic, order.number))
    return topics


# --- the id ----------------------------------------------------------------------------


def _info(me: Broker, memory: BrokerMemory) -> BrokerInfo:
    started = memory.started_ms or 0
    return BrokerInfo(me.host, me.port, creator=f"{me.host}-{started}", timestamp=str(started))


async def _register(me: Broker, memory: BrokerMemory) -> BrokerMemory | Ended:
    path = registry.broker(me.broker_id)
    data = registry.encode_broker(_info(me, memory), me.variant.broker_form(me.layout))
    registration = Create(path, data, ephemeral=True, purpose="register")
    if me.variant.broker_registration == "in one multi" and me.layout == "0.7":
        return await _register_at_once(me, memory, registration)
    try:
        await create_with_parents(Direct(), registration)
    except NodeExists:
        return await _id_in_use(me, memory, data)
    return replace(memory, is_registered=True)


async def _register_at_once(
    me: Broker, memory: BrokerMemory, registration: Create
) -> BrokerMemory | Ended:
    """Register the id and every topic in one multi, so that nobody sees the one alone."""
    announcements = [_announcement(me, name, count) for name, count in memory.topics]
    try:
        await Multi((registration, *announcements), "register")
    except TransactionFailed as failed:
        if failed.cause.kind is NodeExists:
            return await _id_in_use(me, memory, registration.data)
        if failed.cause.kind is not NoNode:
            raise failed.cause.error() from None
        await ensure_parents(Direct(), Create(failed.path, purpose="register"))
        return memory
    return replace(memory, is_registered=True, announced=memory.topics)


async def _id_in_use(
    me: Broker, memory: BrokerMemory, data: bytes | None
) -> BrokerMemory | Ended:
    """A registration stands already: an error, unless it is my own of before."""
    path = registry.broker(me.broker_id)
    seen = await Exists(path, True, "register")
    if seen is None:
        return memory
    there = await GetData(path, False, "register")
    if seen.mine:
        return replace(memory, is_registered=True)
    how = me.variant.broker_id_in_use
    if how == "an error unless the data is the same":
        if there.data == data:
            return replace(memory, is_registered=True)
    elif _address(path, there.data) == f"{me.host}:{me.port}":
        await tell("id in use", path=path)
        if how == "wait for it to go if it is my address":
            return replace(memory, is_blocked=True)
        await sleep(me.session_timeout_ms)
        return memory
    await close_session()
    return Ended(
        f"broker id {me.broker_id} is in use by {_address(path, there.data)}", failed=True
    )


def _address(path: str, data: bytes | None) -> str:
    return registry.decode_broker(path, data).address


# --- the topics ------------------------------------------------------------------------


def _announcement(me: Broker, name: str, count: int) -> Create:
    path = registry.topic_broker(name, me.broker_id)
    number = registry.encode_number(count)
    return Create(path, number, ephemeral=True, purpose="announce topic")


async def _announce(me: Broker, memory: BrokerMemory) -> BrokerMemory:
    """0.7: say under each topic how many of its partitions are here."""
    announced = dict(memory.announced)
    for name, count in memory.topics:
        if announced.get(name) != count:
            await _announce_one(me, name, count)
    for name in announced:
        if name not in dict(memory.topics):
            await _withdraw(me, name)
    return replace(memory, announced=memory.topics)


async def _announce_one(me: Broker, name: str, count: int) -> None:
    creation = _announcement(me, name, count)
    try:
        await create_with_parents(Direct(), creation)
    except NodeExists:
        await SetData(creation.path, creation.data, purpose="announce topic")


async def _withdraw(me: Broker, name: str) -> None:
    """A topic is gone from the disk: take back what was said of it, and the empty topic."""
    try:
        await Delete(registry.topic_broker(name, me.broker_id), purpose="announce topic")
        await Delete(registry.topic(name), purpose="announce topic")
    except (ConnectionLoss, SessionExpired):
        raise
    except ZooKeeperError as error:
        await tell("topic stays", topic=name, why=str(error))
