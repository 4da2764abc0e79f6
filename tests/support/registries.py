"""Registries to audit: healthy ones, made up of whole groups, in either layout."""

from __future__ import annotations

from dataclasses import dataclass, field

from model import registry
from model.asks import Partition
from model.assignment import assign, topic_view
from model.member import stream_ids
from model.payloads import PartitionState, TopicAssignment
from model.registry import BrokerInfo, Layout
from model.snapshot import Snapshot, snapshot_of
from model.subscriptions import Subscription, encode_consumer

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
    unit: str = "stream"

    @property
    def members(self) -> list[str]:
        return [f"{GROUP}_c{number}" for number in range(len(self.streams))]

    def partitions(self, topic: str) -> list[Partition]:
        count = self.topics[topic]
        if self.layout == "0.8":
            return [Partition(topic, str(index)) for index in range(count)]
        return [
            registry.partition_07(topic, broker, index)
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
        nodes[registry.broker(broker)] = (registry.encode_broker(info, form), 0x100 + broker)
    for topic in shape.topics:
        _add_topic(nodes, shape, topic)
    for number, (name, many) in enumerate(zip(shape.members, shape.streams, strict=True)):
        wanted = Subscription(tuple((topic, many) for topic in shape.topics))
        data = encode_consumer(wanted, shape.layout, timestamp_ms=0)
        nodes[registry.member(GROUP, name)] = (data, session_of(number))
    for stream, partitions in _shares(shape).items():
        number, owner = stream
        for partition in partitions:
            path = registry.owner(GROUP, partition)
            nodes[path] = (owner.encode(), session_of(number))
            nodes[registry.offset(GROUP, partition)] = (b"42", 0)
    return nodes


def _add_topic(nodes: Nodes, shape: Shape, topic: str) -> None:
    if shape.layout == "0.7":
        nodes[registry.topic(topic)] = (b"", 0)
        for broker in range(shape.brokers):
            path = registry.topic_broker(topic, broker)
            nodes[path] = (str(shape.topics[topic]).encode(), 0x100 + broker)
        return
    leaders = {index: index % shape.brokers for index in range(shape.topics[topic])}
    replicas = tuple(
        (index, tuple(dict.fromkeys((leader, (leader + 1) % shape.brokers))))
        for index, leader in leaders.items()
    )
    nodes[registry.topic(topic)] = (TopicAssignment(replicas).encode(), 0)
    for index, leader in leaders.items():
        path = registry.partition_state(Partition(topic, str(index)))
        nodes[path] = (PartitionState(leader, (leader,)).encode(), 0)


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
    return {(number_of[one], one): got for one, got in assign("range", view).items()}


def snapshot(nodes: Nodes) -> Snapshot:
    """The snapshot of a registry, with the znodes above those that are named."""
    whole = dict(nodes)
    for path in nodes:
        above = registry.parent_of(path)
        while above:
            whole.setdefault(above, (b"", 0))
            above = registry.parent_of(above)
    return snapshot_of((path, data, session) for path, (data, session) in whole.items())
