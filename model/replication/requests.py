"""The requests between brokers of 0.8, and those of their clients, as values.

The controller sends LeaderAndIsr, StopReplica and UpdateMetadata to each broker; a broker that
is about to leave sends ControlledShutdown to the controller. Followers fetch from leaders, and
since KIP-101 ask them where an epoch ends. Producers append, and ask any broker who leads.

Kafka 0.8.2.2: LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest,
ControlledShutdownRequest. What a request of KIP-101 and later carries is marked as such.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.replication.replica_log import NO_EPOCH, Record

BYTES_OF_HEADER = 40
BYTES_OF_ENTRY = 60
"""About what a partition takes in a request or a response."""
BYTES_OF_RECORD = 130
"""About what a record takes: a message of 100 bytes, with its header."""


class ErrorCode(IntEnum):
    """The error codes of the protocol, as far as brokers send them to each other."""

    UNKNOWN = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    INVALID_MESSAGE = 2
    UNKNOWN_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER = 6
    TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    STALE_CONTROLLER_EPOCH = 11
    STALE_LEADER_EPOCH = 13
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20

    @classmethod
    def of(cls, number: int) -> ErrorCode:
        """Return the code with a number; `UNKNOWN` for one that is not among these."""
        try:
            return cls(number)
        except ValueError:
            return cls.UNKNOWN


class LeaderState(NamedTuple):
    """What the controller says of a partition."""

    partition: Partition
    state: PartitionState
    version: int
    """Of the znode of the state."""
    replicas: tuple[int, ...]
    """The assigned replicas; their order is lost on the wire."""


class BrokerAddress(NamedTuple):
    """A broker and where it listens."""

    broker: int
    address: str


class BrokerRequest(Struct, frozen=True):
    """A request to a broker of 0.8. Each has a response."""

    @property
    def size_bytes(self) -> int:
        """About how much it takes on the wire."""
        return BYTES_OF_HEADER


class LeaderAndIsr(BrokerRequest, frozen=True):
    """Lead these partitions, or follow their leaders."""

    controller: int
    controller_epoch: int
    states: tuple[LeaderState, ...]
    leaders: tuple[BrokerAddress, ...]
    """The leaders in `states` that are alive."""

    @property
    def size_bytes(self) -> int:
        """About how much it takes on the wire."""
        return BYTES_OF_HEADER + BYTES_OF_ENTRY * len(self.states)


class StopReplica(BrokerRequest, frozen=True):
    """Fetch these partitions no more; with `deletes`, delete their logs."""

    controller: int
    controller_epoch: int
    deletes: bool
    partitions: tuple[Partition, ...]


class UpdateMetadata(BrokerRequest, frozen=True):
    """Know who leads, and who is alive. A leader of `DELETED` removes a partition."""

    controller: int
    controller_epoch: int
    states: tuple[LeaderState, ...]
    alive: tuple[BrokerAddress, ...]

    @property
    def size_bytes(self) -> int:
        """About how much it takes on the wire."""
        return BYTES_OF_HEADER + BYTES_OF_ENTRY * len(self.states)


class ControlledShutdown(BrokerRequest, frozen=True):
    """Let a broker lead nothing any more that another replica can lead."""

    broker: int


DELETED = -2
"""In place of a leader: the topic is being deleted."""


class Outcome(Struct, frozen=True):
    """The response to a request of the controller: one code, and one for each partition."""

    error: ErrorCode = ErrorCode.NONE
    partitions: tuple[tuple[Partition, ErrorCode], ...] = ()


class StillLed(Struct, frozen=True):
    """The response to ControlledShutdown: the partitions that the broker still leads."""

    error: ErrorCode
    partitions: tuple[Partition, ...] = ()


# --- followers -------------------------------------------------------------------------


class Wanted(NamedTuple):
    """A partition that a follower fetches."""

    partition: Partition
    offset: int
    """The end of the follower's log: so the leader learns how far it is."""
    leader_epoch: int = NO_EPOCH
    """KIP-320: the epoch in which the follower follows."""


CONSUMER = -1
"""In place of a replica: a consumer fetches, which reads below the high watermark."""


class FetchRecords(BrokerRequest, frozen=True):
    """Fetch what a follower or a consumer does not have; the leader waits for something new."""

    replica: int
    wanted: tuple[Wanted, ...]
    wait_ms: int

    @property
    def size_bytes(self) -> int:
        """About how much it takes on the wire."""
        return BYTES_OF_HEADER + BYTES_OF_ENTRY * len(self.wanted)


class FetchedPart(NamedTuple):
    """What a leader has of one partition."""

    partition: Partition
    offset: int
    error: ErrorCode
    records: tuple[Record, ...] = ()
    high_watermark: int = 0
    end: int = 0
    """The end of the leader's log."""


class FetchedRecords(Struct, frozen=True):
    """The response to FetchRecords."""

    parts: tuple[FetchedPart, ...]


class EndOfEpoch(BrokerRequest, frozen=True):
    """KIP-101: where does this epoch end in the leader's log?"""

    replica: int
    partition: Partition
    epoch: int
    leader_epoch: int
    """KIP-320: the epoch in which the follower follows."""


class EpochEnd(Struct, frozen=True):
    """The response to EndOfEpoch."""

    error: ErrorCode
    epoch: int = -1
    """KIP-279: the last epoch in the leader's log that is not greater."""
    end: int = 0


# --- clients ---------------------------------------------------------------------------

ALL = -1
"""`acks`: every replica in the ISR has the messages."""


class AppendRecords(BrokerRequest, frozen=True):
    """Append messages to a partition."""

    partition: Partition
    numbers: tuple[int, ...]
    acks: int
    timeout_ms: int

    @property
    def size_bytes(self) -> int:
        """About how much it takes on the wire."""
        return BYTES_OF_HEADER + BYTES_OF_RECORD * len(self.numbers)


class Appended(Struct, frozen=True):
    """The response to AppendRecords: the offset of the first message."""

    error: ErrorCode
    offset: int = -1


class DescribeTopic(BrokerRequest, frozen=True):
    """Who leads the partitions of a topic?"""

    topic: str


class TopicMetadata(Struct, frozen=True):
    """The response to DescribeTopic, from what the broker remembers."""

    leaders: tuple[tuple[Partition, int], ...]
    alive: tuple[BrokerAddress, ...]
