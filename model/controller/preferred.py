"""The preferred replica of each partition leads again: when requested, and from time to time.

Kafka 0.8.2.2: KafkaController.onPreferredReplicaElection, checkAndTriggerPartitionRebalance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.errors import BadVersion, NoNode
from watchkeeper.model.actor.operations import Delete
from watchkeeper.model.controller.state_machines import partitions
from watchkeeper.model.controller.state_machines.context import Context
from watchkeeper.model.controller.state_machines.reign import Reign
from watchkeeper.model.controller.state_machines.selectors import preferred
from watchkeeper.model.controller.state_machines.states import PartitionStatus
from watchkeeper.model.controller.state_machines.variants import PreferredWithoutState
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PreferredReplicaElection

LARGEST_IMBALANCE_PERCENT = 10
"""`leader.imbalance.per.broker.percentage`."""


class PoisonedElection(Exception):
    """The request names a partition that has no state: as shipped, nothing can carry it out."""


async def preferred_requested(reign: Reign) -> None:
    """Carry out the election that an administrator has requested, and delete the request."""
    with suppress(PoisonedElection):
        await preferred_at_failover(reign)


async def preferred_at_failover(reign: Reign) -> None:
    """Carry out an election that an earlier controller has left.

    Raises PoisonedElection, which ends the reign of the shipped controller: at once, and in
    each reign that follows.
    """
    path = paths.PREFERRED_REPLICA_ELECTION
    found = await reign.read_request(path, PreferredReplicaElection.decode)
    if found is None:
        return
    request, version = found
    await elect_preferred(
        reign, [Partition(topic, str(index)) for topic, index in request.partitions]
    )
    await _delete_request(reign, version)


async def _delete_request(reign: Reign, version: int) -> None:
    """Delete the request; as shipped whatever it says by now."""
    if not reign.me.variant.fenced:
        version = -1
    try:
        await reign.fenced(Delete(paths.PREFERRED_REPLICA_ELECTION, version, "elect preferred"))
    except (NoNode, BadVersion):
        return


async def elect_preferred(reign: Reign, wanted: Iterable[Partition]) -> None:
    """Elect the preferred replica of partitions; what cannot be led by it stays as it is."""
    known: list[Partition] = []
    for partition in wanted:
        if partition in reign.context.leadership:
            known.append(partition)
        elif reign.me.variant.preferred_without_state is PreferredWithoutState.FAILS:
            raise PoisonedElection(str(partition))
        else:
            await reign.note_failure(partition, "led by its preferred replica", "no state")
    await partitions.move(reign, known, PartitionStatus.ONLINE, select=preferred)


class Balancing(NamedTuple):
    """What the shipped thread has still to look at that lets preferred replicas lead."""

    brokers: tuple[tuple[int, tuple[Partition, ...]], ...]
    """Brokers, each with the partitions of which it has the preferred replica."""
    broker: int = -1
    """The one that is to lead again."""
    partitions: tuple[Partition, ...] = ()
    """What it is to lead."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return not (self.brokers or self.partitions)


async def balance_next(reign: Reign, left: Balancing | None) -> Balancing | None:
    """Let one more preferred replica lead, as a thread that has the lock; None at the end.

    The thread gives the lock back after each one, and takes it again for what is left.
    """
    if left is None:
        rows = _by_preferred(reign.context)
        left = Balancing(tuple((broker, tuple(own)) for broker, own in sorted(rows.items())))
    while not left.is_done:
        if not left.partitions:
            (broker, own), *others = left.brokers
            left = Balancing(tuple(others), broker, tuple(_too_many_away(reign, broker, own)))
            continue
        partition, *rest = left.partitions
        left = left._replace(partitions=tuple(rest))
        if _may_balance(reign.context, left.broker, partition):
            with suppress(PoisonedElection):
                await elect_preferred(reign, [partition])
            break
    return None if left.is_done else left


def _may_balance(context: Context, broker: int, partition: Partition) -> bool:
    return (
        broker in context.live
        and not context.moves
        and partition.topic in context.topics
        and partition.topic not in context.deletions
    )


async def rebalance_leaders(reign: Reign) -> None:
    """Elect preferred replicas of each broker that leads too few of what it should."""
    context = reign.context
    if context.moves:
        return
    for broker, own in sorted(_by_preferred(context).items()):
        away = _too_many_away(reign, broker, own)
        if away and broker in context.live:
            await elect_preferred(reign, away)


def _by_preferred(context: Context) -> dict[int, list[Partition]]:
    """Broker -> the partitions of which it has the preferred replica."""
    found: dict[int, list[Partition]] = {}
    for partition in context.assigned():
        if partition.topic not in context.deletions and context.assignment[partition]:
            found.setdefault(context.assignment[partition][0], []).append(partition)
    return found


def _too_many_away(reign: Reign, broker: int, own: Sequence[Partition]) -> list[Partition]:
    """What other brokers lead of what a broker should lead, if that is too much."""
    away = _led_by_others(reign, broker, own)
    too_many = 100 * len(away) > LARGEST_IMBALANCE_PERCENT * len(own)
    return away if too_many else []


def _led_by_others(reign: Reign, broker: int, own: Sequence[Partition]) -> list[Partition]:
    known = reign.context.leadership
    return [one for one in own if one in known and known[one].state.leader != broker]
