"""Brokers that elect a controller, and a topic of one partition, as a system to search.

The programs are those of `model.controller`: they register, elect one of them, and the elected
broker elects the leader of the partition and writes its state. All brokers are replicas of the
partition. One of them creates the topic before it registers, so that the search needs no
operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from watchkeeper.checker.user_model.explore import ExploreResult, explore
from watchkeeper.checker.user_model.view import State
from watchkeeper.model.actor.effects import Partition, new_session
from watchkeeper.model.actor.errors import ConnectionLoss, NodeExists, SessionExpired
from watchkeeper.model.actor.operations import Create, ZooKeeper
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.retry import Direct, create_with_parents
from watchkeeper.model.broker.registration import Broker
from watchkeeper.model.controller.broker import (
    ControllingBroker,
    ControllingBrokerState,
    controlling_broker,
    turn,
)
from watchkeeper.model.controller.state_machines.context import Context
from watchkeeper.model.controller.state_machines.reign import ControllerSettings
from watchkeeper.model.controller.state_machines.variants import ControllerVariant
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.properties.control_plane.controllers import ACTING, IN_SYNC, LED
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PartitionState, TopicAssignment

CLICKS = Partition("clicks", "0")
STATE = paths.partition_state(CLICKS)
KNOWN = "known state"
"""The property that a controller remembers what the registry has."""

Claim = Callable[[State], bool]


def search(
    variant: ControllerVariant,
    faults: Mapping[str, int],
    at_rest: tuple[str, ...] = (ACTING.name, LED.name, KNOWN),
    *,
    always: tuple[str, ...] = (IN_SYNC.name,),
    brokers: int = 2,
    **limits: Any,
) -> ExploreResult:
    """Search the brokers of a variant, with these faults, for a violation of the properties."""
    first = broker_program(0, variant)
    topic = TopicAssignment(((0, tuple(range(brokers))),)).encode()
    programs = {f"broker/{number}": broker_program(number, variant) for number in range(brokers)}
    programs["broker/0"] = Program(_with_topic(topic), first.me, None)
    return explore(
        programs,
        always={name: ALWAYS[name] for name in always},
        at_rest={name: AT_REST[name] for name in at_rest},
        sometimes={"a leader": lambda state: _state_of(state) is not None},
        faults=faults,
        **limits,
    )


def broker_program(broker_id: int, variant: ControllerVariant) -> Program:
    """Return one broker; the variant of its registration is that of its controller."""
    registered_as = VARIANTS[variant.name]
    broker = Broker(f"broker/{broker_id}", broker_id, f"h{broker_id}", 9092, "0.8", registered_as)
    return controlling_broker(broker, ControllerSettings(broker_id, variant))


def _with_topic(topic: bytes) -> Any:
    """Return the turn of a broker that creates the topic before its first one."""

    async def created(
        zk: ZooKeeper, me: ControllingBroker, state: ControllingBrokerState | None
    ) -> ControllingBrokerState | Ended | None:
        if state is not None:
            return await turn(zk, me, state)
        await new_session()
        try:
            await create_with_parents(Direct(), Create(paths.topic(CLICKS.topic), topic))
        except (NodeExists, ConnectionLoss):
            pass
        except SessionExpired:
            return None
        variant = me.controller.variant
        first: ControllingBrokerState = broker_program(0, variant).initial_state
        return replace(first, broker=replace(first.broker, has_session=True, started_ms=0))

    return created


# --- claims ----------------------------------------------------------------------------


def _state_of(state: State) -> PartitionState | None:
    znode = state.znodes.get(STATE)
    return None if znode is None else PartitionState.decode(STATE, znode.data)


def _live(state: State) -> list[int]:
    prefix = f"{paths.BROKER_IDS}/"
    return [int(path.removeprefix(prefix)) for path in state.znodes if path.startswith(prefix)]


def _contexts(state: State) -> dict[str, Context]:
    """Return what each broker knows that acts as the controller."""
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
    if not live or paths.topic(CLICKS.topic) not in state.znodes:
        return True
    return found is not None and found.leader in live


def _state_is_known(state: State) -> bool:
    """Whether each controller remembers the state that the registry has."""
    return all(
        known.state == _state_of(state)
        for context in _contexts(state).values()
        for known in context.leadership.values()
    )


ALWAYS: dict[str, Claim] = {IN_SYNC.name: _leader_is_in_sync}
AT_REST: dict[str, Claim] = {
    ACTING.name: _controller_acts,
    LED.name: _leader_lives,
    KNOWN: _state_is_known,
}
