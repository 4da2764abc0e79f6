"""Registries to audit: healthy ones, made up of whole groups, in either layout."""

from __future__ import annotations

from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.audit.finding import FindingKind
from watchkeeper.model.audit.snapshot import Snapshot, snapshot_of
from watchkeeper.model.group.assignment import assign, topic_view
from watchkeeper.model.group.state import stream_ids
from watchkeeper.model.group.variants import Unit
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BrokerInfo, Layout
from watchkeeper.model.registry.payloads import (
    Controller,
    ControllerEpoch,
    PartitionState,
    TopicAssignment,
    TopicConfig,
)
from watchkeeper.model.registry.subscription import Subscription, encode_consumer

GROUP = "billing"
Nodes = dict[str, tuple[bytes, int]]
"""Path -> data and session."""


@dataclass
class Shape:
    """How a healthy cluster and its one group look."""

    layout: Layout = "0.8"
    brokers: int = 2
    topics: dict[str, int] = field(default_factory=lambda: {"clicks": 4})
    """Topic -> partitions, in the 0.7 layout those of each broker."""
    streams: tuple[int, ...] = (1, 1)
    """How many streams each member has of every topic."""
    unit: Unit = Unit.STREAM

    @property
    def members(self) -> list[str]:
        return [f"{GROUP}_c{number}" for number in range(len(self.streams))]

    def partitions(self, topic: str) -> list[Partition]:
        count = self.topics[topic]
        if self.layout == "0.8":
            return [Partition(topic, str(index)) for index in range(count)]
        return [
            paths.partition_07(topic, broker, index)
            for broker in range(self.brokers)
            for index in range(count)
        ]


def session_of(member: int) -> int:
    return 0x1000 + member


def healthy(shape: Shape) -> Nodes:
    """A registry at rest, in which every partition is claimed as range deals them."""
    nodes: Nodes = {}
    form = "json" if shape.layout == "0.8" else "creator:host:port"
    for broker in range(shape.brokers):
        info = BrokerInfo("127.0.0.1", 9000 + broker, creator=f"h{broker}")
        nodes[paths.broker(broker)] = (paths.encode_broker(info, form), 0x100 + broker)
    for topic in shape.topics:
        _add_topic(nodes, shape, topic)
    for number, (name, many) in enumerate(zip(shape.members, shape.streams, strict=True)):
        wanted = Subscription(tuple((topic, many) for topic in shape.topics))
        data = encode_consumer(wanted, shape.layout, timestamp_ms=0)
        nodes[paths.member(GROUP, name)] = (data, session_of(number))
    for stream, partitions in _shares(shape).items():
        number, owner = stream
        for partition in partitions:
            path = paths.owner(GROUP, partition)
            nodes[path] = (owner.encode(), session_of(number))
            nodes[paths.offset(GROUP, partition)] = (b"42", 0)
    return nodes


def _add_topic(nodes: Nodes, shape: Shape, topic: str) -> None:
    if shape.layout == "0.7":
        nodes[paths.topic(topic)] = (b"", 0)
        for broker in range(shape.brokers):
            path = paths.topic_broker(topic, broker)
            nodes[path] = (str(shape.topics[topic]).encode(), 0x100 + broker)
        return
    leaders = {index: index % shape.brokers for index in range(shape.topics[topic])}
    replicas = tuple(
        (index, tuple(dict.fromkeys((leader, (leader + 1) % shape.brokers))))
        for index, leader in leaders.items()
    )
    nodes[paths.topic(topic)] = (TopicAssignment(replicas).encode(), 0)
    for index, leader in leaders.items():
        path = paths.partition_state(Partition(topic, str(index)))
        nodes[path] = (PartitionState(leader, (leader,)).encode(), 0)


def controlled(shape: Shape) -> Nodes:
    """A healthy registry of the 0.8 layout with a controller: broker 0, in its third reign."""
    nodes = healthy(shape)
    nodes[paths.CONTROLLER] = (Controller(0, "1525741822769").encode(), 0x100)
    nodes[paths.CONTROLLER_EPOCH] = (ControllerEpoch(3).encode(), 0)
    nodes[paths.DELETE_TOPICS] = (b"", 0)
    for topic in shape.topics:
        nodes[paths.topic_config(topic)] = (TopicConfig().encode(), 0)
        assignment = TopicAssignment.decode("", nodes[paths.topic(topic)][0])
        for index, replicas in assignment.replicas:
            state = PartitionState(replicas[0], replicas, controller_epoch=3)
            nodes[state_path(topic, index)] = (state.encode(), 0)
    return nodes


def state_path(topic: str, index: int) -> str:
    """The path of a partition's state."""
    return paths.partition_state(Partition(topic, str(index)))


CONTROL_PLANE_KINDS = {
    *(FindingKind.NO_CONTROLLER, FindingKind.CONTROLLER_EPOCH, FindingKind.NO_LEADER),
    *(FindingKind.DEAD_LEADER, FindingKind.ISR, FindingKind.UNDER_REPLICATED),
    *(FindingKind.NO_STATE, FindingKind.ORPHAN, FindingKind.REASSIGNMENT),
    *(FindingKind.ELECTION, FindingKind.STUCK_DELETION, FindingKind.LEADER_IMBALANCE),
}
"""The kinds of finding on a control plane."""


def _shares(shape: Shape) -> dict[tuple[int, str], tuple[Partition, ...]]:
    number_of = {
        stream: number
        for number, (name, many) in enumerate(zip(shape.members, shape.streams, strict=True))
        for stream in stream_ids(shape.unit, name, many)
    }
    view = tuple(
        topic_view(topic, shape.partitions(topic), number_of, shape.layout)
        for topic in shape.topics
    )
    return {
        (number_of[consumer], consumer): got for consumer, got in assign("range", view).items()
    }


def snapshot(nodes: Nodes) -> Snapshot:
    """The snapshot of a registry, with the znodes above those that are named."""
    all_nodes = dict(nodes)
    for path in nodes:
        above = paths.parent_of(path)
        while above:
            all_nodes.setdefault(above, (b"", 0))
            above = paths.parent_of(above)
    return snapshot_of((path, data, session) for path, (data, session) in all_nodes.items())
