"""What it means to create, grow and delete a topic, or to move a leader: alike in every world.

A world says who is up, serves messages and carries orders. What is ordered, who holds what
afterwards and what is counted stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from model.administrator import spread
from model.answers import Order, Ordered
from model.asks import Partition
from model.faults import Action, Effect
from model.payloads import TopicAssignment
from model.plan import ClusterPlan
from model.registry import partition_07


class Topics(Protocol):
    """The topics of a cluster at run time, and the way to whoever has to know of a change."""

    @property
    def plan(self) -> ClusterPlan:
        """The cluster."""

    @property
    def disks(self) -> dict[int, dict[str, int]]:
        """0.7: broker -> topic -> partitions it has on disk."""

    @property
    def homes(self) -> dict[str, TopicAssignment]:
        """0.8: topic -> which brokers hold which partition."""

    def is_up(self, broker: str) -> bool:
        """Whether the process of a broker runs."""

    def serve(self, broker: str, partitions: list[Partition]) -> None:
        """Let a broker that is up serve more partitions."""

    def remove(self, broker: str, topic: str) -> None:
        """Let a broker that is up serve nothing of a topic any more."""

    def order(self, broker: str, order: Ordered) -> None:
        """Give an order to a broker that is up."""

    def administer(self, order: Ordered) -> None:
        """Give an order to the administrator."""


def create_topic(topics: Topics, action: Action, effect: Effect) -> None:
    """A topic comes into being."""
    _grow(topics, action, effect, Order.CREATE_TOPIC)


def add_partitions(topics: Topics, action: Action, effect: Effect) -> None:
    """A topic gets more partitions."""
    _grow(topics, action, effect, Order.ADD_PARTITIONS)


def _grow(topics: Topics, action: Action, effect: Effect, order: Order) -> None:
    grow = _grow_07 if topics.plan.layout == "0.7" else _grow_08
    grow(topics, action, effect, order)


def _grow_07(topics: Topics, action: Action, effect: Effect, order: Order) -> None:
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
            topics.order(broker, Ordered(order, topic, count))


def _grow_08(topics: Topics, action: Action, effect: Effect, order: Order) -> None:
    topic = action.target
    before = topics.homes.get(topic, TopicAssignment(()))
    total = sum(_counts(topics.plan, action).values())
    alive = tuple(one for one in _broker_ids(topics.plan) if _brokers_up(topics, one))
    grown = topics.homes[topic] = spread(before, total, alive)
    effect.add("partitions added", len(grown.replicas) - len(before.replicas))
    new = grown.replicas[len(before.replicas) :]
    for broker_id in alive:
        its_own = [Partition(topic, str(index)) for index, homes in new if broker_id in homes]
        for broker in _brokers_up(topics, broker_id):
            topics.serve(broker, its_own)
    topics.administer(Ordered(order, topic, total))


def _counts(plan: ClusterPlan, action: Action) -> dict[int, int]:
    """How many partitions each broker is to have."""
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


def delete_topic(topics: Topics, action: Action, effect: Effect) -> None:
    """A topic is deleted: its files on every broker, and its registration."""
    topic = action.target
    order = Ordered(Order.DELETE_TOPIC, topic)
    gone = topics.homes.pop(topic, TopicAssignment(()))
    on_disks = sum(disk.pop(topic, 0) for disk in topics.disks.values())
    is_07 = topics.plan.layout == "0.7"
    effect.add("partitions deleted", on_disks if is_07 else len(gone.replicas))
    for broker in topics.plan.brokers:
        if topics.is_up(broker.node):
            topics.remove(broker.node, topic)
            if is_07:
                topics.order(broker.node, order)
    if not is_07:
        topics.administer(order)


def move_leader(topics: Topics, action: Action, effect: Effect) -> None:
    """Another broker leads a partition; it needs a replica there."""
    topic, _, index = action.target.partition("/")
    broker_id = int(str(action.option("to")).rpartition("/")[2])
    homes = dict(topics.homes.get(topic, TopicAssignment(())).replicas)
    if broker_id not in homes.get(int(index), ()):
        return
    effect.add("leaders moved")
    topics.administer(Ordered(Order.MOVE_LEADER, topic, int(index), broker_id))


CHANGES: dict[str, Callable[[Topics, Action, Effect], None]] = {
    "create_topic": create_topic,
    "add_partitions": add_partitions,
    "delete_topic": delete_topic,
    "move_leader": move_leader,
}
"""Verb -> what it does."""
