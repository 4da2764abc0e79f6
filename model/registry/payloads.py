"""The JSON payloads of the 0.8 layout that a cluster keeps about itself.

Each class is one payload, with `encode` and `decode`. Shapes after Kafka 0.8.2; where
the design pages show another shape of the same thing, both are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from model.registry import BadPayload, decode_json, encode_json


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


@dataclass(frozen=True, slots=True)
class PartitionState:
    """/brokers/topics/[topic]/partitions/[n]/state: who leads a partition."""

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
    """/admin/delete_topics: topics to be deleted."""

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
