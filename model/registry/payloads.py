"""The JSON payloads of the 0.8 layout that a cluster keeps about itself.

Each class is one payload, with `encode` and `decode`. Shapes after Kafka 0.8.2; where
the design pages show another shape of the same thing, both are read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from watchkeeper.model.registry.paths import BadPayload, decode_json, encode_json


def _ints(path: str, data: bytes | None, value: Any, what: str) -> tuple[int, ...]:
    if not isinstance(value, list) or any(type(item) is not int for item in value):
        raise BadPayload(path, data, f"a list of broker ids for {what}")
    return tuple(value)


def _int(path: str, data: bytes | None, value: Any, what: str) -> int:
    if type(value) is not int:
        raise BadPayload(path, data, f"a number for {what}")
    return value


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """/brokers/topics/[topic]: which brokers replicate which partition."""

    replicas: tuple[tuple[int, tuple[int, ...]], ...]

    def encode(self) -> bytes:
        """Write it."""
        partitions = {str(index): list(brokers) for index, brokers in self.replicas}
        return encode_json({"version": 1, "partitions": partitions})

    @staticmethod
    def decode(path: str, data: bytes | None) -> TopicAssignment:
        """Read it; partitions come in numeric order."""
        expected = '{"version":1,"partitions":{"0":[broker ids]}}'
        partitions = decode_json(path, data, expected).get("partitions")
        if not isinstance(partitions, dict) or not all(map(_is_index, partitions)):
            raise BadPayload(path, data, expected)
        rows = ((int(key), _ints(path, data, ids, key)) for key, ids in partitions.items())
        return TopicAssignment(tuple(sorted(rows)))


def _is_index(text: str) -> bool:
    return re.fullmatch("0|[1-9][0-9]{0,8}", text) is not None


NO_LEADER = -1
"""The leader in the state of a partition without one."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """/brokers/topics/[topic]/partitions/[n]/state: who leads a partition.

    A controller writes it. Without one the administrator writes it when the leader changes, and
    not when another replica dies or comes back: then `isr` are the replicas that were alive
    when this leader was chosen.
    """

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    controller_epoch: int = 1

    def encode(self) -> bytes:
        """Write it."""
        return encode_json(
            {
                "controller_epoch": self.controller_epoch,
                "leader": self.leader,
                "version": 1,
                "leader_epoch": self.leader_epoch,
                "isr": list(self.isr),
            }
        )

    @staticmethod
    def decode(path: str, data: bytes | None) -> PartitionState:
        """Read it."""
        value = decode_json(path, data, "JSON with leader, leader_epoch, controller_epoch, isr")
        return PartitionState(
            leader=_int(path, data, value.get("leader"), "leader"),
            isr=_ints(path, data, value.get("isr"), "isr"),
            leader_epoch=_int(path, data, value.get("leader_epoch"), "leader_epoch"),
            controller_epoch=_int(path, data, value.get("controller_epoch"), "controller_epoch"),
        )

    def is_reign_of(self, other: PartitionState) -> bool:
        """Whether two states have the same leader in the same epoch, whatever their ISRs."""
        return (self.leader, self.leader_epoch) == (other.leader, other.leader_epoch)

    def is_same(self, other: PartitionState) -> bool:
        """Whether two states are the same, whatever the order of the ISR."""
        own, others = replace(self, isr=()), replace(other, isr=())
        return own == others and sorted(self.isr) == sorted(other.isr)


@dataclass(frozen=True, slots=True)
class Controller:
    """/controller: which broker is the controller. The pages show a bare number too."""

    broker: int
    timestamp: str = ""

    def encode(self) -> bytes:
        """Write it, as shipped: JSON."""
        return encode_json({"version": 1, "brokerid": self.broker, "timestamp": self.timestamp})

    @staticmethod
    def decode(path: str, data: bytes | None) -> Controller:
        """Read it, as JSON or as a bare number."""
        if data is not None and re.fullmatch(rb"\d{1,10}", data):
            return Controller(int(data))
        value = decode_json(path, data, "a broker id, or JSON with brokerid")
        broker = _int(path, data, value.get("brokerid"), "brokerid")
        return Controller(broker, str(value.get("timestamp", "")))

    @staticmethod
    def broker_in(path: str, data: bytes | None) -> int | None:
        """The broker that it names; None where it cannot be read, as what an operator wrote."""
        try:
            return Controller.decode(path, data).broker
        except BadPayload:
            return None


@dataclass(frozen=True, slots=True)
class ControllerEpoch:
    """/controller_epoch: the number of reigns until now. Each new controller raises it by one."""

    epoch: int

    def encode(self) -> bytes:
        """Write it: a bare number."""
        return str(self.epoch).encode()

    @staticmethod
    def decode(path: str, data: bytes | None) -> ControllerEpoch:
        """Read it."""
        if data is None or not re.fullmatch(rb"\d{1,10}", data):
            raise BadPayload(path, data, "the number of the present reign")
        return ControllerEpoch(int(data))


@dataclass(frozen=True, slots=True)
class Reassignment:
    """/admin/reassign_partitions: where partitions are to be moved."""

    moves: tuple[tuple[str, int, tuple[int, ...]], ...]

    def encode(self) -> bytes:
        """Write it."""
        rows = [
            {"topic": topic, "partition": partition, "replicas": list(replicas)}
            for topic, partition, replicas in self.moves
        ]
        return encode_json({"version": 1, "partitions": rows})

    @staticmethod
    def decode(path: str, data: bytes | None) -> Reassignment:
        """Read it."""
        return Reassignment(
            tuple(
                (topic, partition, _ints(path, data, row.get("replicas"), "replicas"))
                for topic, partition, row in _partition_rows(path, data)
            )
        )


@dataclass(frozen=True, slots=True)
class PreferredReplicaElection:
    """/admin/preferred_replica_election: partitions whose first replica is to lead."""

    partitions: tuple[tuple[str, int], ...]

    def encode(self) -> bytes:
        """Write it."""
        rows = [{"topic": topic, "partition": index} for topic, index in self.partitions]
        return encode_json({"version": 1, "partitions": rows})

    @staticmethod
    def decode(path: str, data: bytes | None) -> PreferredReplicaElection:
        """Read it."""
        rows = _partition_rows(path, data)
        return PreferredReplicaElection(tuple((topic, index) for topic, index, _ in rows))


def _partition_rows(path: str, data: bytes | None) -> list[tuple[str, int, dict[str, Any]]]:
    expected = '{"version":1,"partitions":[{"topic":name,"partition":n}]}'
    rows = decode_json(path, data, expected).get("partitions")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadPayload(path, data, expected)
    if not all(isinstance(row.get("topic"), str) for row in rows):
        raise BadPayload(path, data, expected)
    return [
        (row["topic"], _int(path, data, row.get("partition"), "partition"), row) for row in rows
    ]


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    """/admin/delete_topics as one of the pages has it: the topics in the data of that znode.

    Kafka 0.8.2 has an empty child for each topic instead; that is the form that is written.
    """

    topics: tuple[str, ...]

    def encode(self) -> bytes:
        """Write it."""
        return encode_json({"version": 1, "topics": list(self.topics)})

    @staticmethod
    def decode(path: str, data: bytes | None) -> TopicDeletion:
        """Read it."""
        expected = '{"version":1,"topics":[names]}'
        topics = decode_json(path, data, expected).get("topics")
        if not isinstance(topics, list) or not all(isinstance(name, str) for name in topics):
            raise BadPayload(path, data, expected)
        return TopicDeletion(tuple(topics))


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """/config/topics/[topic]: the settings of a topic that differ from those of its brokers."""

    overrides: tuple[tuple[str, str], ...] = ()

    def encode(self) -> bytes:
        """Write it."""
        return encode_json({"version": 1, "config": dict(self.overrides)})

    def allows_unclean(self, default: bool) -> bool:
        """Whether a replica outside of the ISR may lead; `default` is that of the brokers."""
        own = dict(self.overrides).get("unclean.leader.election.enable", "").lower()
        return {"true": True, "false": False}.get(own, default)

    def min_in_sync(self, default: int) -> int:
        """How many replicas have to be in the ISR; `default` is that of the brokers."""
        return self.number("min.insync.replicas", default)

    def number(self, name: str, default: int) -> int:
        """A setting that is a number; `default` is that of the brokers."""
        own = dict(self.overrides).get(name, "")
        return int(own) if own.isdecimal() else default

    @staticmethod
    def decode(path: str, data: bytes | None) -> TopicConfig:
        """Read it; settings come in alphabetical order."""
        expected = '{"version":1,"config":{setting:text}}'
        config = decode_json(path, data, expected).get("config")
        if not isinstance(config, dict):
            raise BadPayload(path, data, expected)
        if not all(isinstance(value, str) for value in config.values()):
            raise BadPayload(path, data, f"{expected}, with every value as text")
        return TopicConfig(tuple(sorted(config.items())))


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """/config/changes/config_change_[n]: the notification that a topic has other settings."""

    topic: str

    def encode(self) -> bytes:
        """Write it as 0.8.2 does: the name as a JSON string."""
        return json.dumps(self.topic).encode()

    @staticmethod
    def decode(path: str, data: bytes | None) -> ConfigChange:
        """Read it, as 0.8.2 writes it or as 0.9 does."""
        expected = 'a topic in quotes, or {"entity_type":"topics","entity_name":topic}'
        try:
            value = json.loads(data or b"")
        except (ValueError, RecursionError):
            raise BadPayload(path, data, expected) from None
        if isinstance(value, dict) and value.get("entity_type") == "topics":
            value = value.get("entity_name")
        if not isinstance(value, str) or not value:
            raise BadPayload(path, data, expected)
        return ConfigChange(value)


@dataclass(frozen=True, slots=True)
class IsrChange:
    """/isr_change_notification/isr_change_[n]: partitions whose leader changed the ISR (0.9)."""

    partitions: tuple[tuple[str, int], ...]

    def encode(self) -> bytes:
        """Write it."""
        rows = [{"topic": topic, "partition": index} for topic, index in self.partitions]
        return encode_json({"version": 1, "partitions": rows})

    @staticmethod
    def decode(path: str, data: bytes | None) -> IsrChange:
        """Read it."""
        rows = _partition_rows(path, data)
        return IsrChange(tuple((topic, index) for topic, index, _ in rows))


@dataclass(frozen=True, slots=True)
class ClusterId:
    """/cluster/id: the name a cluster gives itself once and keeps for ever."""

    identity: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,22}", self.identity):
            raise ValueError(
                f"cluster id {self.identity!r} is not allowed; expected 1 to 22 of the "
                "characters a-z, A-Z, 0-9, _ and -"
            )

    def encode(self) -> bytes:
        """Write it."""
        return encode_json({"version": "1", "id": self.identity})

    @staticmethod
    def decode(path: str, data: bytes | None) -> ClusterId:
        """Read it."""
        expected = "JSON with an id of 1 to 22 of the characters a-z A-Z 0-9 _ -"
        identity = decode_json(path, data, expected).get("id")
        try:
            return ClusterId(identity if isinstance(identity, str) else "")
        except ValueError:
            raise BadPayload(path, data, expected) from None
