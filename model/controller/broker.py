"""A broker of the 0.8 layout with its controller: one program, one session.

As shipped, a broker elects the controller before it registers its id, at its start and in every
new session: the winner fails over and does not see itself among the live brokers. `hardened`
registers first.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

from watchkeeper.model.actor.effects import close_session, connected, next_event
from watchkeeper.model.actor.errors import ConnectionLoss, NodeExists, SessionExpired
from watchkeeper.model.actor.events import Command, Fired, Notification, SessionEvent
from watchkeeper.model.actor.operations import Create, ZooKeeper
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.retry import Direct, create_with_parents
from watchkeeper.model.actor.tasks import Post
from watchkeeper.model.broker import registration
from watchkeeper.model.broker.registration import Broker, BrokerState
from watchkeeper.model.controller.cluster_id import know_cluster_id
from watchkeeper.model.controller.controller import (
    ControllerState,
    ResignReason,
    after_loss,
    leave,
    resigned,
    take_step,
)
from watchkeeper.model.controller.state_machines.reign import ControllerSettings
from watchkeeper.model.controller.state_machines.variants import (
    ClusterIdentity,
    IsrsOfLeaders,
    StartOrder,
)
from watchkeeper.model.controller.topic_settings import SettingsState, follow_settings
from watchkeeper.model.registry import paths
from watchkeeper.model.replication.replicas import REGISTRATION

COMMON_PATHS = (
    paths.BROKER_IDS,
    paths.TOPICS,
    paths.TOPIC_CONFIGS,
    paths.CONFIG_CHANGES,
    paths.DELETE_TOPICS,
)
"""ZkUtils.persistentZkPaths, but for /consumers."""


@dataclass(frozen=True, slots=True)
class ControllingBroker:
    """The configuration of a broker that can be the controller."""

    broker: Broker
    controller: ControllerSettings


@dataclass(frozen=True, slots=True)
class ControllingBrokerState:
    """What such a broker keeps from one turn to the next."""

    broker: BrokerState
    controller: ControllerState = field(default_factory=ControllerState)
    has_paths: bool = False
    """Whether the znodes exist under which administrators leave their requests."""
    registrations: int = 0
    """How often it has begun to register; 0 without replicas, which have to know it."""
    settings: SettingsState = field(default_factory=SettingsState)
    """What it knows of changed settings of topics."""


def controlling_broker(broker: Broker, controller: ControllerSettings) -> Program:
    """The program of a broker that can be the controller."""
    first = ControllingBrokerState(BrokerState(broker.topics))
    return Program(turn, ControllingBroker(broker, controller), first)


async def turn(
    zk: ZooKeeper, me: ControllingBroker, state: ControllingBrokerState
) -> ControllingBrokerState | Ended:
    """Take one turn: an election, the registration, a task of the controller, or an event."""
    try:
        return await _turn(me, state)
    except ConnectionLoss:
        try:
            await connected()
        except SessionExpired:
            return await _after_expiry(state)
        return replace(state, controller=await after_loss(me.controller, state.controller))
    except SessionExpired:
        return await _after_expiry(state)


async def _turn(
    me: ControllingBroker, state: ControllingBrokerState
) -> ControllingBrokerState | Ended:
    broker = state.broker
    if not broker.has_session:
        return replace(state, broker=await registration.open_session(broker))
    if broker.is_leaving and not _hands_over_later(me, state):
        return await _leave(me, state)
    if me.controller.sends and not state.has_paths:
        await _create_paths(me.controller.variant.isrs_of_leaders)
        if me.controller.variant.cluster_identity is ClusterIdentity.CREATED_ONCE:
            await know_cluster_id()
        return replace(state, has_paths=True)
    if _elects_first(me, state):
        return await _control(me, state)
    if me.controller.sends and state.settings.is_due:
        return await _follow_settings(me, state)
    if not broker.is_registered and not broker.is_blocked:
        return await _register(me, state)
    if state.controller.due and broker.is_registered:
        return await _control(me, state)
    return await _take(state, await next_event())


def _hands_over_later(me: ControllingBroker, state: ControllingBrokerState) -> bool:
    """Whether a broker that leaves has to elect first: its reign has just been interrupted.

    It may still be named in `/controller`, and no other broker can take over what it leads.
    """
    must_elect = state.controller.must_elect and state.broker.is_registered
    return me.controller.sends and must_elect


async def _create_paths(isrs: IsrsOfLeaders) -> None:
    """Create what every broker of 0.8 creates when it starts."""
    more = (paths.ISR_CHANGES,) if isrs is IsrsOfLeaders.TOLD else ()
    for path in (*COMMON_PATHS, *more):
        with suppress(NodeExists):
            await create_with_parents(Direct(), Create(path, b"", purpose="register"))


async def _follow_settings(
    me: ControllingBroker, state: ControllingBrokerState
) -> ControllingBrokerState:
    changes = me.controller.variant.settings_changes
    return replace(state, settings=await follow_settings(Direct(), changes, state.settings))


async def _register(
    me: ControllingBroker, state: ControllingBrokerState
) -> ControllingBrokerState | Ended:
    number = state.registrations
    if me.controller.sends:
        number += 1
        await Post(REGISTRATION, number)
    registered = await registration.register(me.broker, state.broker)
    if isinstance(registered, Ended):
        return registered
    return replace(state, broker=registered, registrations=number)


def _elects_first(me: ControllingBroker, state: ControllingBrokerState) -> bool:
    order = me.controller.variant.start_order
    return order is StartOrder.ELECT_THEN_REGISTER and state.controller.must_elect


async def _control(
    me: ControllingBroker, state: ControllingBrokerState
) -> ControllingBrokerState:
    """Do a task of the controller; in a new session the broker has to register again."""
    done = await take_step(me.controller, state.controller)
    broker = state.broker
    settings = state.settings
    if done.is_session_new:
        broker = registration.unregistered(broker)
        settings = settings.due()
    return replace(state, broker=broker, controller=done.state, settings=settings)


async def _after_expiry(state: ControllingBrokerState) -> ControllingBrokerState:
    """The session is dead: go on in a new one, and begin with an election."""
    broker = await registration.after_expiry(state.broker)
    controller = state.controller.after_expiry()
    return replace(state, broker=broker, controller=controller, settings=state.settings.due())


async def _leave(me: ControllingBroker, state: ControllingBrokerState) -> Ended:
    controller = state.controller
    if state.broker.is_registered:
        controller = await leave(me.controller, controller)
    await resigned(controller, ResignReason.LEAVES)
    await close_session()
    return Ended("left")


async def _take(
    state: ControllingBrokerState, notification: Notification | None
) -> ControllingBrokerState:
    if notification is SessionEvent.EXPIRED:
        return await _after_expiry(state)
    controller, settings = state.controller, state.settings
    if notification is SessionEvent.CONNECTED:
        controller = controller.after_reconnection()
        settings = settings.due()
    elif isinstance(notification, Fired) and notification.path == paths.CONFIG_CHANGES:
        settings = settings.due()
    elif isinstance(notification, Fired):
        controller = controller.after_event(notification)
    elif isinstance(notification, Command):
        controller = controller.after_command(notification)
    broker = await registration.take(state.broker, notification)
    return replace(state, broker=broker, controller=controller, settings=settings)
