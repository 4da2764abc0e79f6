"""Attempts to create a znode that another session has.

Kafka 0.8 sleeps and tries again without bound: any number of attempts come to nothing while
another session has the znode, and the end of that session depends on none of them. So such
attempts are idle moves, on which no liveness depends.
"""

from __future__ import annotations

from collections.abc import Mapping

from watchkeeper.checker.actors.actor_state import ActorState
from watchkeeper.checker.actors.actors import Member
from watchkeeper.model.actor.operations import Operation
from watchkeeper.model.controller.broker import ControllingBroker
from watchkeeper.model.group.state import ConsumerState, id_path
from watchkeeper.model.group.variants import OwnIdInUse
from watchkeeper.model.registry import paths
from watchkeeper.model.zookeeper.znode import Znode


def attempts_in_vain(member: Member, state: ActorState, nodes: Mapping[str, Znode]) -> bool:
    """Whether a process tries to create a znode that another session has.

    A broker waits for an earlier session of its own; a consumer for that of any other.
    """
    znode = nodes.get(retried_znode(member, state))
    if znode is None:
        return False
    return znode.owner != state.session if member.group else znode.owner in state.orphans


def retried_znode(member: Member, state: ActorState) -> str:
    """Return the znode that a process tries to create again and again; empty for none."""
    if state.phase != "running" or state.link != "up":
        return ""
    effect = member.moves.process.effect_of(state)
    if not isinstance(effect, Operation):
        return ""
    if member.group is not None:
        return _id_of_consumer(member, state, effect)
    me = member.moves.process.compiled.program.me
    if not isinstance(me, ControllingBroker):
        return ""
    tries = {"elect": paths.CONTROLLER, "register": paths.broker(me.broker.broker_id)}
    return tries.get(effect.purpose, "")


def _id_of_consumer(member: Member, state: ActorState, effect: Operation[object]) -> str:
    compiled = member.moves.process.compiled
    me, known = compiled.program.me, compiled.nodes[state.node].state
    if not isinstance(known, ConsumerState):
        return ""
    retries = me.variant.own_id_in_use is OwnIdInUse.SLEEP_AND_RETRY
    return id_path(me, known) if retries and effect.purpose == "register" else ""
