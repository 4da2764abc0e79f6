"""The offsets of groups: ConsumerMetadata (key 10), OffsetCommit (8), OffsetFetch (9).

OffsetCommit and OffsetFetch of version 0 mean the offsets in ZooKeeper, which the broker writes
and reads for the client. Version 1 means those that the coordinator of the group keeps in a
topic; ConsumerMetadata names the coordinator.
"""

from __future__ import annotations

from watchkeeper.model.log.format.fields import INT32, INT64, NULLABLE_STRING, STRING
from watchkeeper.model.log.format.frames import Field, WireStruct
from watchkeeper.model.log.format.requests import ERROR, Response
from watchkeeper.model.log.format.requests_08 import PARTITION, PartitionError
from watchkeeper.model.wire_08.by_topic import CORRELATION_ID, OfTopic, topics_field

NO_COMMITTED_OFFSET = -1
NOW = -1
"""In place of the time of a commit."""
ANY_GENERATION = -1

GROUP = Field("group", STRING, "the group")
OFFSET = Field("offset", INT64, "the offset of the next message to consume; -1: none")
METADATA = Field("metadata", NULLABLE_STRING, "a text of the client's")


class PartitionNumber(WireStruct, frozen=True):
    """A partition of a topic."""

    partition: int
    layout = (PARTITION,)


class PartitionOutcome(WireStruct, frozen=True):
    """Whether the offset of a partition was committed."""

    partition: int
    error_code: int = PartitionError.NONE
    layout = (PARTITION, ERROR)


# --- the coordinator -------------------------------------------------------------------


class ConsumerMetadataRequest(WireStruct, frozen=True):
    """Request the coordinator of a group."""

    group: str
    layout = (GROUP,)


class ConsumerMetadataResponse(Response, frozen=True):
    """The coordinator of a group, or an error."""

    correlation_id: int
    error_code: int = PartitionError.NONE
    broker: int = -1
    host: str = ""
    port: int = -1
    layout = (
        CORRELATION_ID,
        ERROR,
        Field("broker", INT32, "the id of the coordinator; -1 with an error"),
        Field("host", STRING, "its host"),
        Field("port", INT32, "its port; -1 with an error"),
    )


# --- commit ----------------------------------------------------------------------------


class PartitionCommit(WireStruct, frozen=True):
    """The offset of a partition, for version 0."""

    partition: int
    offset: int
    metadata: str | None = ""
    layout = (PARTITION, OFFSET, METADATA)


class CommitRequest(WireStruct, frozen=True):
    """Commit offsets to ZooKeeper: version 0."""

    group: str
    topics: tuple[OfTopic[PartitionCommit], ...]
    layout = (GROUP, topics_field(PartitionCommit))


class TimedCommit(WireStruct, frozen=True):
    """The offset of a partition and the time of the commit, for version 1."""

    partition: int
    offset: int
    timestamp_ms: int = NOW
    metadata: str | None = ""
    layout = (
        PARTITION,
        OFFSET,
        Field("timestamp_ms", INT64, "the time of the commit; -1: now"),
        METADATA,
    )


class CommitRequestV1(WireStruct, frozen=True):
    """Commit offsets to the coordinator: version 1."""

    group: str
    topics: tuple[OfTopic[TimedCommit], ...]
    generation: int = ANY_GENERATION
    consumer: str | None = ""
    layout = (
        GROUP,
        Field("generation", INT32, "not used in 0.8.2"),
        Field("consumer", NULLABLE_STRING, "not used in 0.8.2"),
        topics_field(TimedCommit),
    )


class CommitResponse(Response, frozen=True):
    """Whether the offset of each partition was committed, in both versions."""

    correlation_id: int
    topics: tuple[OfTopic[PartitionOutcome], ...] = ()
    layout = (CORRELATION_ID, topics_field(PartitionOutcome))


# --- fetch -----------------------------------------------------------------------------


class CommittedRequest(WireStruct, frozen=True):
    """Request committed offsets, from ZooKeeper: version 0."""

    group: str
    topics: tuple[OfTopic[PartitionNumber], ...]
    layout = (GROUP, topics_field(PartitionNumber))


class CommittedRequestV1(CommittedRequest, frozen=True):
    """Request committed offsets, from the coordinator: version 1, with the same bytes."""


class PartitionCommitted(WireStruct, frozen=True):
    """The committed offset of a partition, or an error."""

    partition: int
    offset: int = NO_COMMITTED_OFFSET
    metadata: str | None = ""
    error_code: int = PartitionError.NONE
    layout = (PARTITION, OFFSET, METADATA, ERROR)


class CommittedResponse(Response, frozen=True):
    """The committed offset of each partition, in both versions."""

    correlation_id: int
    topics: tuple[OfTopic[PartitionCommitted], ...] = ()
    layout = (CORRELATION_ID, topics_field(PartitionCommitted))
