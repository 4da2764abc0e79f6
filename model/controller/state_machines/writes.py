"""The writes of a partition's state, as values: what a controller decides, before it does it.

Each raises the leader epoch by one and is signed with the controller's epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.controller.state_machines.selectors import Choice
from watchkeeper.model.controller.state_machines.variants import LastInSync
from watchkeeper.model.registry.payloads import NO_LEADER, PartitionState
from watchkeeper.model.replication.registry import Leadership


@dataclass(frozen=True, slots=True)
class StateWrite:
    """A state to write."""

    partition: Partition
    state: PartitionState
    version: int | None
    """The version of the znode to replace; None to create it."""


def first_state(
    partition: Partition, replicas: tuple[int, ...], live: tuple[int, ...], epoch: int
) -> StateWrite | None:
    """Return the first state of a new partition; None if no replica is alive.

    The first live replica leads, and the live replicas are in sync.
    """
    alive = tuple(replica for replica in replicas if replica in live)
    if not alive:
        return None
    return StateWrite(partition, PartitionState(alive[0], alive, 0, epoch), None)


def elected(partition: Partition, before: Leadership, choice: Choice, epoch: int) -> StateWrite:
    """Return the state after an election."""
    return _next(partition, before, choice.leader, choice.isr, epoch)


def with_higher_epoch(partition: Partition, before: Leadership, epoch: int) -> StateWrite:
    """Return the same state with a higher leader epoch."""
    return _next(partition, before, before.state.leader, before.state.isr, epoch)


def without_replica(
    partition: Partition,
    broker: int,
    before: Leadership,
    epoch: int,
    last: LastInSync,
    *,
    allows_unclean: bool,
) -> StateWrite | None:
    """Return the state without a replica that is dead; None if it is not in the ISR.

    A dead leader is replaced by none. The last replica of the ISR may stay in it, so that the
    partition has a clean leader when that replica comes back.
    """
    state = before.state
    if broker not in state.isr:
        return None
    leader = NO_LEADER if state.leader == broker else state.leader
    isr = tuple(replica for replica in state.isr if replica != broker)
    if not isr and (last is LastInSync.KEPT or not allows_unclean):
        isr = state.isr
    if (leader, isr) == (state.leader, state.isr):
        return None
    return _next(partition, before, leader, isr, epoch)


def _next(
    partition: Partition, before: Leadership, leader: int, isr: tuple[int, ...], epoch: int
) -> StateWrite:
    state = PartitionState(leader, isr, before.state.leader_epoch + 1, epoch)
    return StateWrite(partition, state, before.version)
