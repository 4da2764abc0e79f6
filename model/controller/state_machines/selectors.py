"""The leader selectors of Kafka 0.8.2.2: who leads a partition next, and with which ISR.

They are pure functions of a partition's replicas, its present state and the live brokers.
`no leader can be elected` is the exception `NoLeader`, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.controller.state_machines.context import Context
from watchkeeper.model.registry.payloads import PartitionState


class NoLeader(Exception):
    """A selector finds no leader, or none is needed; the text says why."""


class NotNeeded(NoLeader):
    """The partition has the leader that the selector would elect."""


class Choice(NamedTuple):
    """The outcome of an election."""

    leader: int
    isr: tuple[int, ...]
    is_clean: bool = True
    """False if the leader was not in the ISR: messages may be lost."""


def when_offline(
    replicas: tuple[int, ...],
    state: PartitionState,
    live: Collection[int],
    *,
    allows_unclean: bool,
) -> Choice:
    """Return the first live replica of the ISR, in the order of the assignment.

    The dead leave the ISR. Without a live replica in the ISR, and with `allows_unclean`, the
    first live replica leads, alone in the ISR. Raises NoLeader.
    """
    in_sync = tuple(replica for replica in state.isr if replica in live)
    candidates = [replica for replica in replicas if replica in in_sync]
    if candidates:
        return Choice(candidates[0], in_sync)
    if not allows_unclean:
        raise NoLeader(f"no replica of the ISR {list(state.isr)} is alive")
    alive = [replica for replica in replicas if replica in live]
    if not alive:
        raise NoLeader(f"no replica of {list(replicas)} is alive")
    return Choice(alive[0], (alive[0],), is_clean=False)


def when_reassigned(
    targets: tuple[int, ...], state: PartitionState, live: Collection[int]
) -> Choice:
    """Return the first target of a reassignment that is alive and in the ISR."""
    candidates = [replica for replica in targets if replica in live and replica in state.isr]
    if not candidates:
        raise NoLeader(f"no target of {list(targets)} is alive and in the ISR {list(state.isr)}")
    return Choice(candidates[0], state.isr)


def when_preferred(
    replicas: tuple[int, ...], state: PartitionState, live: Collection[int]
) -> Choice:
    """Return the preferred replica. Raises NotNeeded if it leads, else NoLeader."""
    preferred = replicas[0]
    if state.leader == preferred:
        raise NotNeeded(f"the preferred replica {preferred} leads already")
    if preferred not in live or preferred not in state.isr:
        raise NoLeader(f"the preferred replica {preferred} is dead or not in the ISR")
    return Choice(preferred, state.isr)


def when_shutting_down(state: PartitionState, leaving: Collection[int]) -> Choice:
    """Return the head of the ISR without the brokers that are shutting down.

    Whether that replica is alive is not asked, as in 0.8.2.2.
    """
    in_sync = tuple(replica for replica in state.isr if replica not in leaving)
    if not in_sync:
        raise NoLeader(f"every replica of the ISR {list(state.isr)} is shutting down")
    return Choice(in_sync[0], in_sync)


# --- as a controller uses them ---------------------------------------------------------

Selector = Callable[[Context, Partition, PartitionState, bool], Choice]
"""What is known, the partition, its present state, and whether unclean elections are allowed."""


def offline(
    context: Context, partition: Partition, state: PartitionState, unclean: bool
) -> Choice:
    """Select the leader of a partition whose leader is dead."""
    replicas = context.assignment.get(partition, ())
    return when_offline(replicas, state, context.live, allows_unclean=unclean)


def reassigned(
    context: Context, partition: Partition, state: PartitionState, unclean: bool
) -> Choice:
    """Select the leader of a partition that has moved: a target leads."""
    return when_reassigned(context.assignment[partition], state, context.live)


def preferred(
    context: Context, partition: Partition, state: PartitionState, unclean: bool
) -> Choice:
    """Select the preferred replica."""
    return when_preferred(context.assignment[partition], state, context.live)


def shutting_down(
    context: Context, partition: Partition, state: PartitionState, unclean: bool
) -> Choice:
    """Select a leader that is not about to leave."""
    return when_shutting_down(state, context.shutting_down)
