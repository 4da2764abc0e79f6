"""Two brokers that elect a controller, as programs to search, and claims about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from watchkeeper import ExploreResult, Program, explore
from watchkeeper.checker.user_model.view import State
from watchkeeper.model.actor.effects import Partition, new_session
from watchkeeper.model.actor.errors import ConnectionLoss, NodeExists, SessionExpired
from watchkeeper.model.actor.operations import Create, ZooKeeper
from watchkeeper.model.actor.program import Ended
from watchkeeper.model.actor.retry import Direct, create_with_parents
from watchkeeper.model.broker.registration import Broker
from watchkeeper.model.controller.broker import (
    ControllingBroker,
    ControllingBrokerState,
    controlling_broker,
    turn,
)
from watchkeeper.model.controller.context import Context
from watchkeeper.model.controller.reign import ControllerSettings
from watchkeeper.model.controller.variants import ControllerVariant
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PartitionState, TopicAssignment

CLICKS = Partition("clicks", "0")
STATE = paths.partition_state(CLICKS)


def broker_program(broker_id: int, variant: ControllerVariant) -> Program:
    """One broker; the version of its registration is that of its controller."""
    registered_as = VARIANTS[variant.name]
    broker = Broker(f"broker/{broker_id}", broker_id, f"h{broker_id}", 9092, "0.8", registered_as)
    return controlling_broker(broker, ControllerSettings(broker_id, variant))


async def _turn_with_topic(
    zk: ZooKeeper, me: ControllingBroker, state: ControllingBrokerState | None
) -> ControllingBrokerState | Ended | None:
    """Create a topic of one partition on both brokers, and then be a broker."""
    if state is not None:
        return await turn(zk, me, state)
    await new_session()
    topic = TopicAssignment(((0, (0, 1)),)).encode()
    try:
        await create_with_parents(Direct(), Create(paths.topic("clicks"), topic))
    except (NodeExists, ConnectionLoss):
        pass
    except SessionExpired:
        return None
    first: ControllingBrokerState = broker_program(0, me.controller.variant).initial_state
    return replace(first, broker=replace(first.broker, has_session=True, started_ms=0))


def search(
    variant: ControllerVariant,
    faults: Mapping[str, int],
    at_rest: tuple[str, ...] = ("acting controller", "live leader", "known state"),
    **limits: Any,
) -> ExploreResult:
    """Search two brokers of a version."""
    first = broker_program(0, variant)
    return explore(
        {
            "broker/0": Program(_turn_with_topic, first.me, None),
            "broker/1": broker_program(1, variant),
        },
        always={"leader in sync": _leader_is_in_sync},
        at_rest={name: AT_REST[name] for name in at_rest},
        sometimes={"a leader": lambda state: _state_of(state) is not None},
        faults=faults,
        **limits,
    )


# --- claims ----------------------------------------------------------------------------


def _state_of(state: State) -> PartitionState | None:
    znode = state.znodes.get(STATE)
    return None if znode is None else PartitionState.decode(STATE, znode.data)


def _live(state: State) -> list[int]:
    prefix = f"{paths.BROKER_IDS}/"
    return [int(path.removeprefix(prefix)) for path in state.znodes if path.startswith(prefix)]


def _contexts(state: State) -> dict[str, Context]:
    """What each broker knows that acts as the controller."""
    return {
        name: program.state.controller.context
        for name, program in state.running.items()
        if program.state is not None and program.state.controller.context is not None
    }


def _leader_is_in_sync(state: State) -> bool:
    found = _state_of(state)
    return found is None or (
        bool(found.isr) and (found.leader == -1 or found.leader in found.isr)
    )


def _controller_acts(state: State) -> bool:
    if not _live(state):
        return True
    znode = state.znodes.get(paths.CONTROLLER)
    return znode is not None and list(_contexts(state)) == [znode.owner]


def _leader_lives(state: State) -> bool:
    found, live = _state_of(state), _live(state)
    if not live or paths.topic("clicks") not in state.znodes:
        return True
    return found is not None and found.leader in live


def _state_is_known(state: State) -> bool:
    """Each controller remembers the state that the registry has."""
    return all(
        known.state == _state_of(state)
        for context in _contexts(state).values()
        for known in context.leadership.values()
    )


AT_REST = {
    "acting controller": _controller_acts,
    "live leader": _leader_lives,
    "known state": _state_is_known,
}
