"""Who has to own each partition of a group, computed from the ids in ZooKeeper.

It is written a second time here, from what Kafka 0.8.2.2 does, and shares no code with the
consumer that it judges.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

INTERNAL = "__consumer_offsets"


class Part(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int


Owners = dict[Part, str]
"""Partition -> the id of the stream that owns it."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What a member has registered."""

    pattern: str
    subscription: Mapping[str, int]
    """Topic, or one regular expression -> streams."""

    def streams(self, topics: Iterable[str]) -> dict[str, int]:
        """The number of streams that it has for each topic that it reads."""
        if self.pattern == "static":
            return dict(self.subscription)
        [(expression, streams)] = self.subscription.items()
        wants_match = self.pattern == "white_list"
        pattern = re.compile(expression.strip().replace(",", "|").replace(" ", ""))
        found = [
            topic for topic in topics if (pattern.fullmatch(topic) is not None) == wants_match
        ]
        return {topic: streams for topic in found if topic != INTERNAL}


@dataclass(frozen=True, slots=True)
class GroupView:
    """What ZooKeeper has of a group."""

    members: Mapping[str, Registration]
    topics: Mapping[str, int]
    """Topic -> the number of its partitions."""
    owners: Owners


def parse_registration(data: bytes) -> Registration:
    """Read the znode of a member."""
    found = json.loads(data)
    return Registration(found["pattern"], found["subscription"])


def read_group(client: KazooClient, group: str) -> GroupView:
    """Read members, topics and owners, in this order."""
    ids = f"/consumers/{group}/ids"
    members = {
        name: parse_registration(data)
        for name in _children(client, ids)
        if (data := _data(client, f"{ids}/{name}")) is not None
    }
    topics = {
        topic: len(json.loads(data)["partitions"])
        for topic in _children(client, "/brokers/topics")
        if (data := _data(client, f"/brokers/topics/{topic}")) is not None
    }
    owners_path = f"/consumers/{group}/owners"
    owners = {
        Part(topic, int(number)): data.decode()
        for topic in _children(client, owners_path)
        for number in _children(client, f"{owners_path}/{topic}")
        if (data := _data(client, f"{owners_path}/{topic}/{number}")) is not None
    }
    return GroupView(members, topics, owners)


def _children(client: KazooClient, path: str) -> list[str]:
    try:
        return sorted(client.get_children(path))
    except NoNodeError:
        return []


def _data(client: KazooClient, path: str) -> bytes | None:
    try:
        data: bytes = client.get(path)[0]
    except NoNodeError:
        return None
    return data


# --- the assignment --------------------------------------------------------------------


def due(view: GroupView, strategy: str) -> Owners:
    """The owners that a group has once it has settled; ValueError if the strategy has none."""
    streams: dict[str, list[str]] = {}
    for name, registration in view.members.items():
        for topic, count in registration.streams(view.topics).items():
            ids = [f"{name}-{number}" for number in range(count)]
            streams[topic] = sorted([*streams.get(topic, []), *ids])
    found = {topic: ids for topic, ids in streams.items() if view.topics.get(topic)}
    return _STRATEGIES[strategy](found, view.topics)


def _range(streams: Mapping[str, list[str]], topics: Mapping[str, int]) -> Owners:
    """A run of partitions of each topic for each stream; the first ones get one more."""
    owners: Owners = {}
    for topic, ids in streams.items():
        each, extra = divmod(topics[topic], len(ids))
        sizes = [each + (place < extra) for place in range(len(ids))]
        dealt = (stream for stream, size in zip(ids, sizes, strict=True) for _ in range(size))
        owners |= {Part(topic, number): stream for number, stream in enumerate(dealt)}
    return owners


def _round_robin(streams: Mapping[str, list[str]], topics: Mapping[str, int]) -> Owners:
    """All partitions in the order of a hash of Java, dealt in turn to the streams."""
    if len({tuple(ids) for ids in streams.values()}) > 1:
        raise ValueError("the topics of the group have different streams")
    parts = [Part(topic, number) for topic in streams for number in range(topics[topic])]
    parts.sort(key=lambda part: java_hash(f"[{part.topic},{part.number}]"))
    ids = next(iter(streams.values()), [])
    return {part: ids[place % len(ids)] for place, part in enumerate(parts)}


_STRATEGIES = {"range": _range, "roundrobin": _round_robin}


def java_hash(text: str) -> int:
    """The hash of a string in Java: 32 bits with a sign."""
    value = 0
    for letter in text:
        value = (value * 31 + ord(letter)) % 2**32
    return value - 2**32 if value >= 2**31 else value


def differences(view: GroupView, strategy: str) -> list[str]:
    """How the owners differ from those that are due, a sentence for each partition."""
    wanted = due(view, strategy)
    return [
        f"{part.topic}/{part.number} is owned by {view.owners.get(part, 'no stream')}, "
        f"due is {wanted.get(part, 'no stream')}"
        for part in sorted({*wanted, *view.owners})
        if wanted.get(part) != view.owners.get(part)
    ]
