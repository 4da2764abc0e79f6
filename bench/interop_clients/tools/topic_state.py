"""The partitions of a topic, as znodes have them and as Kafka's command prints them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from time import monotonic, sleep
from typing import NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

WITHIN_S = 90.0
LOOK_EVERY_S = 0.2
DESCRIBED = re.compile(
    r"Topic: (?P<topic>\S+)\s+Partition: (\d+)\s+Leader: (\S+)\s+Replicas: (\S*)\s+Isr: (\S*)"
)
MOVES = "/admin/reassign_partitions"


class PartitionState(NamedTuple):
    """Who has a partition."""

    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    """In the order of ids."""

    @property
    def is_whole(self) -> bool:
        """Whether a replica leads, and all are in sync."""
        return self.leader in self.isr and {*self.isr} == {*self.replicas}

    @property
    def is_preferred(self) -> bool:
        """Whether the first replica leads."""
        return self.leader == self.replicas[0]


Topic = dict[int, PartitionState]
"""The partitions of a topic by their numbers."""


def read_topic(client: KazooClient, topic: str) -> Topic:
    """Read a topic; empty if there is none."""
    try:
        assignment = json.loads(client.get(f"/brokers/topics/{topic}")[0])["partitions"]
    except NoNodeError:
        return {}
    return {
        int(number): _state(client, topic, number, replicas)
        for number, replicas in sorted(assignment.items())
    }


def _state(
    client: KazooClient, topic: str, number: str, replicas: Sequence[int]
) -> PartitionState:
    path = f"/brokers/topics/{topic}/partitions/{number}/state"
    try:
        found = json.loads(client.get(path)[0])
    except NoNodeError:
        return PartitionState(None, tuple(replicas), ())
    leader = found["leader"] if found["leader"] >= 0 else None
    return PartitionState(leader, tuple(replicas), tuple(sorted(found["isr"])))


def described(said: str) -> dict[str, Topic]:
    """Read what `TopicCommand --describe` prints."""
    topics: dict[str, Topic] = {}
    for topic, number, leader, replicas, isr in DESCRIBED.findall(said):
        topics.setdefault(topic, {})[int(number)] = PartitionState(
            int(leader) if leader.isdecimal() else None,
            _ids(replicas),
            tuple(sorted(_ids(isr))),
        )
    return topics


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(",") if each)


def moves_of(topic: str, replicas: Mapping[int, Sequence[int]]) -> str:
    """A reassignment in the JSON of Kafka's tool."""
    moves = [
        {"topic": topic, "partition": number, "replicas": list(ids)}
        for number, ids in replicas.items()
    ]
    return json.dumps({"version": 1, "partitions": moves})


def until(look: Callable[[], object], is_right: Callable[..., bool], what: str) -> None:
    """Look until it is right; AssertionError with what is found if it takes too long."""
    deadline_s = monotonic() + WITHIN_S
    while not is_right(found := look()):
        if monotonic() > deadline_s:
            raise AssertionError(f"{what}: {found} after {WITHIN_S:g} s")
        sleep(LOOK_EVERY_S)


def until_gone(client: KazooClient, path: str) -> None:
    """Wait until a znode is gone."""
    until(lambda: client.exists(path), lambda found: found is None, path)


def until_preferred(client: KazooClient, topic: str) -> None:
    """Wait until the first replica of each partition leads it."""
    until(
        lambda: read_topic(client, topic),
        lambda found: all(one.is_preferred for one in found.values()),
        "preferred replicas lead",
    )


def until_whole(client: KazooClient, topic: str, partitions: int) -> Topic:
    """Wait until so many partitions have a leader and all replicas in sync."""
    until(
        lambda: read_topic(client, topic),
        lambda found: len(found) == partitions and all(one.is_whole for one in found.values()),
        f"{topic} with {partitions} partitions, each with a leader",
    )
    return read_topic(client, topic)
