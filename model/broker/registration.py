"""A broker's registrations: its id, and in the 0.7 layout the topics it has.

The pages register the id first and the topics after it. A consumer whose watch fires on the
id may read the topics in between, find none of this broker, and receive no further event.
`hardened` registers both in one multi.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from watchkeeper.model.actor.effects import (
    close_session,
    connected,
    emit,
    new_session,
    next_event,
    now_ms,
    sleep,
)
from watchkeeper.model.actor.errors import (
    ConnectionLoss,
    NodeExists,
    NoNode,
    SessionExpired,
    TransactionFailed,
    ZooKeeperError,
)
from watchkeeper.model.actor.events import LEAVE, Command, CommandKind, Notification, SessionEvent
from watchkeeper.model.actor.operations import (
    Create,
    Delete,
    Exists,
    GetData,
    Multi,
    SetData,
    ZooKeeper,
)
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.retry import (
    Direct,
    create_with_parents,
    ensure_parents,
    read_or_none,
)
from watchkeeper.model.group.variants import BrokerIdInUse, BrokerRegistration, Variant
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BrokerInfo, Layout
from watchkeeper.model.trace.kinds import EventKind

CHANGES = frozenset(
    {CommandKind.CREATE_TOPIC, CommandKind.ADD_PARTITIONS, CommandKind.DELETE_TOPIC}
)
"""The commands that change what is on a broker's disk."""


@dataclass(frozen=True, slots=True)
class Broker:
    """The configuration of a broker."""

    node: str
    broker_id: int
    host: str
    port: int
    layout: Layout
    variant: Variant
    topics: tuple[tuple[str, int], ...] = ()
    """0.7: topic and number of its partitions on the disk."""
    session_timeout_ms: int = 6000


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What a broker knows from one turn to the next."""

    topics: tuple[tuple[str, int], ...]
    started_ms: int | None = None
    """The start by its own clock; a part of its registration."""
    has_session: bool = False
    is_registered: bool = False
    is_blocked: bool = False
    is_leaving: bool = False
    announced: tuple[tuple[str, int], ...] = ()
    """The topics that it has registered, as far as it knows."""

    def after_command(self, command: Command) -> BrokerState:
        """Return the state after a command that changes what is on the disk."""
        return replace(self, topics=tuple(on_disk_after(dict(self.topics), command).items()))


def broker(me: Broker) -> Program:
    """The program of one broker."""
    return Program(turn, me, BrokerState(me.topics))


async def turn(zk: ZooKeeper, me: Broker, state: BrokerState) -> BrokerState | Ended:
    """Take one turn of a broker's life."""
    try:
        return await _turn(me, state)
    except ConnectionLoss:
        try:
            await connected()
        except SessionExpired:
            return await after_expiry(state)
        return state
    except SessionExpired:
        return await after_expiry(state)


async def _turn(me: Broker, state: BrokerState) -> BrokerState | Ended:
    if not state.has_session:
        return await open_session(state)
    if state.is_leaving:
        await close_session()
        return Ended("left")
    if state.is_blocked:
        return await take(state, await next_event())
    if not state.is_registered:
        return await register(me, state)
    if state.announced != state.topics and me.layout == "0.7":
        return await _announce(me, state)
    return await take(state, await next_event())


async def open_session(state: BrokerState) -> BrokerState:
    """Open the first session of a broker."""
    await new_session()
    started = state.started_ms if state.started_ms is not None else await now_ms()
    return replace(state, has_session=True, started_ms=started)


async def after_expiry(state: BrokerState) -> BrokerState:
    """The session is dead: register everything again in a new one."""
    await new_session()
    return unregistered(state)


def unregistered(state: BrokerState) -> BrokerState:
    """Return the state of a broker of which nothing is registered."""
    return replace(state, is_registered=False, is_blocked=False, announced=())


async def take(state: BrokerState, notification: Notification | None) -> BrokerState:
    """Return the state after a notification."""
    if notification is SessionEvent.EXPIRED:
        return await after_expiry(state)
    if notification == LEAVE:
        return replace(state, is_leaving=True)
    if isinstance(notification, Command):
        return state.after_command(notification)
    return replace(state, is_blocked=False)


def on_disk_after(on_disk: Mapping[str, int], command: Command) -> dict[str, int]:
    """Return the partitions of each topic on a broker's disk after a command."""
    if command.kind not in CHANGES:
        return dict(on_disk)
    found = {topic: count for topic, count in on_disk.items() if topic != command.topic}
    if command.kind is not CommandKind.DELETE_TOPIC:
        found[command.topic] = command.number
    return found


# --- the id ----------------------------------------------------------------------------


def _info(me: Broker, state: BrokerState) -> BrokerInfo:
    started = state.started_ms or 0
    return BrokerInfo(me.host, me.port, creator=f"{me.host}-{started}", timestamp=str(started))


async def register(me: Broker, state: BrokerState) -> BrokerState | Ended:
    """Register the id of a broker. An id in use ends it, or lets it wait, by its variant."""
    path = paths.broker(me.broker_id)
    data = paths.encode_broker(_info(me, state), me.variant.broker_form(me.layout))
    registration = Create(path, data, ephemeral=True, purpose="register")
    if me.variant.broker_registration is BrokerRegistration.ONE_MULTI and me.layout == "0.7":
        return await _register_at_once(me, state, registration)
    try:
        await create_with_parents(Direct(), registration)
    except NodeExists:
        return await _id_in_use(me, state, data)
    return replace(state, is_registered=True)


async def _register_at_once(
    me: Broker, state: BrokerState, registration: Create
) -> BrokerState | Ended:
    """Register the id and all topics in one multi: no reader sees the id alone."""
    announcements = [_announcement(me, name, count) for name, count in state.topics]
    try:
        await Multi((registration, *announcements), "register")
    except TransactionFailed as failed:
        if failed.cause.kind is NodeExists:
            return await _id_in_use(me, state, registration.data)
        if failed.cause.kind is not NoNode:
            raise failed.cause.error() from None
        await ensure_parents(Direct(), Create(failed.path, purpose="register"))
        return state
    return replace(state, is_registered=True, announced=state.topics)


async def _id_in_use(me: Broker, state: BrokerState, data: bytes | None) -> BrokerState | Ended:
    """Handle an id that exists already: an error, unless it is the broker's previous one."""
    path = paths.broker(me.broker_id)
    seen = await Exists(path, True, "register")
    if seen is None:
        return state
    there = await read_or_none(Direct(), GetData(path, False, "register"))
    if there is None:
        return state
    if seen.mine:
        return replace(state, is_registered=True)
    how = me.variant.broker_id_in_use
    if how is BrokerIdInUse.ERROR_UNLESS_SAME_DATA:
        if there.data == data:
            return replace(state, is_registered=True)
    elif _address(path, there.data) == f"{me.host}:{me.port}":
        await emit(EventKind.ID_IN_USE, path=path)
        if how is BrokerIdInUse.WAIT_IF_OWN_ADDRESS:
            return replace(state, is_blocked=True)
        await sleep(me.session_timeout_ms)
        return state
    await close_session()
    return Ended(
        f"broker id {me.broker_id} is in use by {_address(path, there.data)}", failed=True
    )


def _address(path: str, data: bytes | None) -> str:
    return paths.decode_broker(path, data).address


# --- the topics ------------------------------------------------------------------------


def _announcement(me: Broker, name: str, count: int) -> Create:
    path = paths.topic_broker(name, me.broker_id)
    number = paths.encode_number(count)
    return Create(path, number, ephemeral=True, purpose="announce topic")


async def _announce(me: Broker, state: BrokerState) -> BrokerState:
    """0.7: register the number of local partitions under each topic."""
    announced = dict(state.announced)
    for name, count in state.topics:
        if announced.get(name) != count:
            await _announce_one(me, name, count)
    for name in announced:
        if name not in dict(state.topics):
            await _withdraw(me, name)
    return replace(state, announced=state.topics)


async def _announce_one(me: Broker, name: str, count: int) -> None:
    creation = _announcement(me, name, count)
    write = SetData(creation.path, creation.data, purpose="announce topic")
    while True:
        with suppress(NodeExists):
            await create_with_parents(Direct(), creation)
            return
        with suppress(NoNode):  # it ended with the session before
            await write
            return


async def _withdraw(me: Broker, name: str) -> None:
    """Delete the registration of a topic that is deleted from the disk, and the empty topic."""
    try:
        await Delete(paths.topic_broker(name, me.broker_id), purpose="announce topic")
        await Delete(paths.topic(name), purpose="announce topic")
    except (ConnectionLoss, SessionExpired):
        raise
    except ZooKeeperError as error:
        await emit(EventKind.TOPIC_NOT_DELETED, topic=name, why=str(error))
