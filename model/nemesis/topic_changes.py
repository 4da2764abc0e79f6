"""Creating, growing and deleting a topic, and moving a leader, the same in every world.

A world reports which brokers are up, serves messages and delivers commands. This module
decides the commands, the placement afterwards, and the counted effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command, CommandKind
from watchkeeper.model.nemesis.placement import reassign
from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.model.registry.paths import partition_07
from watchkeeper.model.registry.payloads import TopicAssignment


class Topics(Protocol):
    """The topics of a running cluster, and the processes that have to learn of a change."""

    @property
    def plan(self) -> ClusterPlan:
        """The cluster."""

    @property
    def disks(self) -> dict[int, dict[str, int]]:
        """0.7: broker -> topic -> partitions it has on disk."""

    @property
    def homes(self) -> dict[str, TopicAssignment]:
        """0.8: topic -> which brokers hold which partition."""

    @property
    def deleted(self) -> dict[str, dict[str, None]]:
        """Broker -> the deleted topics that are still on its disk."""

    def is_up(self, broker: str) -> bool:
        """Whether the process of a broker runs."""

    def serve(self, broker: str, partitions: list[Partition]) -> None:
        """Let a broker that is up serve more partitions."""

    def remove(self, broker: str, topic: str) -> None:
        """Stop serving a topic on a broker that is up."""

    def order(self, broker: str, order: Command) -> None:
        """Give an order to a broker that is up."""

    def administer(self, order: Command) -> None:
        """Give an order to the administrator."""


def create_topic(topics: Topics, action: Action, effect: FaultEffect) -> None:
    """Create a topic."""
    _grow(topics, action, effect, CommandKind.CREATE_TOPIC)


def add_partitions(topics: Topics, action: Action, effect: FaultEffect) -> None:
    """A topic gets more partitions."""
    _grow(topics, action, effect, CommandKind.ADD_PARTITIONS)


def _grow(topics: Topics, action: Action, effect: FaultEffect, order: CommandKind) -> None:
    grow = _grow_07 if topics.plan.layout == "0.7" else _grow_08
    grow(topics, action, effect, order)


def _grow_07(topics: Topics, action: Action, effect: FaultEffect, order: CommandKind) -> None:
    topic = action.target
    for broker_id, count in _counts(topics.plan, action).items():
        before = topics.disks.setdefault(broker_id, {}).get(topic, 0)
        if count <= before:
            continue
        topics.disks[broker_id][topic] = count
        effect.add("partitions added", count - before)
        new = [partition_07(topic, broker_id, index) for index in range(before, count)]
        for broker in _brokers_up(topics, broker_id):
            topics.serve(broker, new)
            topics.order(broker, Command(order, topic, count))


def _grow_08(topics: Topics, action: Action, effect: FaultEffect, order: CommandKind) -> None:
    topic = action.target
    before = topics.homes.get(topic, TopicAssignment(())).replicas
    total = sum(_counts(topics.plan, action).values())
    alive = tuple(
        broker_id for broker_id in _broker_ids(topics.plan) if _brokers_up(topics, broker_id)
    )
    command = Command(order, topic, total)
    by_ids = topics.plan.tools_take_ids_for_places
    reassign(topics.homes, command, alive, takes_ids_for_places=by_ids)
    new = topics.homes[topic].replicas[len(before) :]
    effect.add("partitions added", len(new))
    for broker_id in alive:
        its_own = [Partition(topic, str(index)) for index, homes in new if broker_id in homes]
        for broker in _brokers_up(topics, broker_id):
            topics.serve(broker, its_own)
    topics.administer(command)


def _counts(plan: ClusterPlan, action: Action) -> dict[int, int]:
    """The number of partitions of each broker."""
    brokers = _broker_ids(plan)
    if action.option("partitions_per_broker") is not None:
        return dict.fromkeys(brokers, int(action.option("partitions_per_broker")))
    total = int(action.option("partitions") or 1)
    return {
        broker: total // len(brokers) + (1 if at < total % len(brokers) else 0)
        for at, broker in enumerate(brokers)
    }


def _broker_ids(plan: ClusterPlan) -> list[int]:
    return sorted({broker.broker_id for broker in plan.brokers})


def _brokers_up(topics: Topics, broker_id: int) -> list[str]:
    return [
        broker.node
        for broker in topics.plan.brokers
        if broker.broker_id == broker_id and topics.is_up(broker.node)
    ]


def delete_topic(topics: Topics, action: Action, effect: FaultEffect) -> None:
    """A topic is deleted: its files on every broker, and its registration."""
    topic = action.target
    order = Command(CommandKind.DELETE_TOPIC, topic)
    gone = topics.homes.get(topic, TopicAssignment(()))
    reassign(topics.homes, order, ())
    on_disks = sum(disk.pop(topic, 0) for disk in topics.disks.values())
    is_07 = topics.plan.layout == "0.7"
    effect.add("partitions deleted", on_disks if is_07 else len(gone.replicas))
    for broker in topics.plan.brokers:
        # The entry goes when the process has deleted the files: at once, or at its next start.
        topics.deleted.setdefault(broker.node, {})[topic] = None
        if topics.is_up(broker.node):
            topics.remove(broker.node, topic)
            if is_07:
                topics.order(broker.node, order)
    if not is_07:
        topics.administer(order)


def move_leader(topics: Topics, action: Action, effect: FaultEffect) -> None:
    """Another broker leads a partition; it needs a replica there."""
    topic, _, index = action.target.partition("/")
    broker_id = int(str(action.option("to")).rpartition("/")[2])
    homes = dict(topics.homes.get(topic, TopicAssignment(())).replicas)
    if broker_id not in homes.get(int(index), ()):
        return
    effect.add("leaders moved")
    topics.administer(Command(CommandKind.MOVE_LEADER, topic, int(index), broker_id))


CHANGES: dict[str, Callable[[Topics, Action, FaultEffect], None]] = {
    "create_topic": create_topic,
    "add_partitions": add_partitions,
    "delete_topic": delete_topic,
    "move_leader": move_leader,
}
"""Verb -> its function."""
