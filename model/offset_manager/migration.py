"""Where a consumer of 0.8.2 keeps its offsets, and the orders of settings in which a group moves.

    offsets.storage   dual.commit.enabled    commits to               begins at
    zookeeper         without effect         ZooKeeper                ZooKeeper's
    kafka             true                   Kafka, then ZooKeeper    the greater of both
    kafka             false                  Kafka                    Kafka's

A group moves by *rolling bounces*: each member in turn leaves, and starts with the next settings.
Kafka 0.8.2.2 writes no offset to ZooKeeper that equals the last one it wrote there or began at
(KAFKA-987). With dual commit it may have begun at Kafka's: then ZooKeeper's stays behind until a
message arrives.

Kafka 0.8.2.2: ZookeeperConsumerConnector.commitOffsets, fetchOffsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class Store(StrEnum):
    """A place of committed offsets."""

    ZOOKEEPER = "zookeeper"
    KAFKA = "kafka"


NAMES = {Store.ZOOKEEPER: "ZooKeeper", Store.KAFKA: "Kafka"}
"""Store -> its name in a sentence."""


class OffsetStorage(NamedTuple):
    """The two settings of a consumer."""

    storage: Store
    dual_commit: bool = False

    @property
    def commits_to(self) -> tuple[Store, ...]:
        """The stores of a commit, in their order."""
        if self.storage is Store.KAFKA and self.dual_commit:
            return (Store.KAFKA, Store.ZOOKEEPER)
        return (self.storage,)

    def begins_at(self, committed: Mapping[Store, int | None]) -> int | None:
        """Return the offset at which a member begins; None if it finds none."""
        greatest: int | None = None
        for store in self.commits_to:
            offset = committed[store]
            if offset is not None and (greatest is None or offset > greatest):
                greatest = offset
        return greatest

    @property
    def lines(self) -> tuple[str, ...]:
        """The settings as lines of a file of properties."""
        first = f"offsets.storage={self.storage}"
        if self.storage is Store.ZOOKEEPER:
            return (first,)
        return (first, f"dual.commit.enabled={str(self.dual_commit).lower()}")


class Wait(StrEnum):
    """What is awaited, once all members have the settings of a stage."""

    NOTHING = "nothing"
    ONE_COMMIT = "one commit of every partition"
    NOT_BEHIND = "the store of the next settings is not behind the other"


class Stage(NamedTuple):
    """The settings of all members after a rolling bounce, and what is awaited then."""

    settings: OffsetStorage
    wait: Wait = Wait.NOTHING


class Order(NamedTuple):
    """An order of rolling bounces; the first stage is where the group is."""

    name: str
    stages: tuple[Stage, ...]

    @property
    def begins_in(self) -> Store:
        """The store of a group before it moves."""
        return self.stages[0].settings.storage


IN_ZOOKEEPER = OffsetStorage(Store.ZOOKEEPER)
DUAL = OffsetStorage(Store.KAFKA, dual_commit=True)
IN_KAFKA = OffsetStorage(Store.KAFKA)

FORWARD = Order(
    "to Kafka",
    (Stage(IN_ZOOKEEPER), Stage(DUAL, Wait.NOT_BEHIND), Stage(IN_KAFKA)),
)
BACK = Order(
    "back to ZooKeeper",
    (Stage(IN_KAFKA), Stage(DUAL, Wait.NOT_BEHIND), Stage(IN_ZOOKEEPER)),
)
"""The orders that hold."""

OTHERS = (
    Order("to Kafka, without dual commit", (Stage(IN_ZOOKEEPER), Stage(IN_KAFKA))),
    Order("to Kafka, without a wait", (Stage(IN_ZOOKEEPER), Stage(DUAL), Stage(IN_KAFKA))),
    Order(
        "to Kafka, after one commit",
        (Stage(IN_ZOOKEEPER), Stage(DUAL, Wait.ONE_COMMIT), Stage(IN_KAFKA)),
    ),
    Order(
        "back, by the same steps with offsets.storage=zookeeper",
        (Stage(IN_KAFKA), Stage(IN_ZOOKEEPER)),
    ),
    Order("back, without a wait", (Stage(IN_KAFKA), Stage(DUAL), Stage(IN_ZOOKEEPER))),
    Order(
        "back, after one commit",
        (Stage(IN_KAFKA), Stage(DUAL, Wait.ONE_COMMIT), Stage(IN_ZOOKEEPER)),
    ),
)
"""Orders that are tempting: the fourth is what Kafka's documentation words."""
ORDERS = {order.name: order for order in (FORWARD, BACK, *OTHERS)}
DIRECTIONS = {Store.KAFKA: FORWARD, Store.ZOOKEEPER: BACK}
"""Where the offsets are to be -> the order that leads there."""
