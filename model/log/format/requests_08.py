"""The offsets request of Kafka 0.8 (key 2, version 0), and its response.

    request     int32 size of what follows, header, fields
    header      int16 key, int16 version, int32 correlation id, string client id
    response    int32 size of what follows, int32 correlation id, fields

Every request has a response, which repeats the correlation id of its request. A partition is
named by its topic and its number in the topic, and only its leader answers for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.format.errors import MalformedRequest, MalformedResponse
from watchkeeper.model.log.format.fields import (
    INT16,
    INT32,
    NULLABLE_STRING,
    Frame,
    Reader,
    counted,
)
from watchkeeper.model.log.format.frames import Field, WireStruct, encode_frame, struct_type
from watchkeeper.model.log.format.requests import (
    ERROR,
    LATEST,
    MAX_OFFSETS,
    OFFSETS,
    TIME,
    TOPIC,
    Response,
    encode_response,
)
from watchkeeper.model.log.format.requests import PARTITION as PARTITION_07

OFFSETS_KEY = 2
CONSUMER = -1
"""In place of a replica's broker id: the request comes from a client."""
PARTITION = PARTITION_07._replace(description="its number in the topic, from 0")


class PartitionError(IntEnum):
    """What a response says of a partition, a topic or a group: the codes of Kafka 0.8.2."""

    UNKNOWN = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    INVALID_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_FOR_PARTITION = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_SIZE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    STALE_LEADER_EPOCH = 13
    OFFSETS_LOAD_IN_PROGRESS = 14
    CONSUMER_COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR_FOR_CONSUMER = 16
    INVALID_TOPIC = 17
    MESSAGE_SET_SIZE_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21


def error_name(code: int) -> str:
    """Return the name of an error code, also of an unknown one."""
    return PartitionError(code).name if code in set(PartitionError) else f"error {code}"


def _partitions(kind: type[WireStruct]) -> Field:
    """Return the field of the partitions of a topic."""
    return Field("partitions", counted(INT32, struct_type(kind)), "its partitions")


class RequestHeader(WireStruct, frozen=True):
    """What every request of 0.8 begins with."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    layout = (
        Field("key", INT16, "the kind of request"),
        Field("version", INT16, "the version of this kind"),
        Field("correlation_id", INT32, "a number that the response repeats"),
        Field("client_id", NULLABLE_STRING, "the name of the client"),
    )


class PartitionTime(WireStruct, frozen=True):
    """A partition, and the time for which its offsets are requested."""

    partition: int
    time_ms: int = LATEST
    max_offsets: int = 1
    layout = (PARTITION, TIME, MAX_OFFSETS)


class TopicTimes(WireStruct, frozen=True):
    """The partitions of a topic in a request."""

    topic: str
    partitions: tuple[PartitionTime, ...]
    layout = (TOPIC, _partitions(PartitionTime))


class OffsetsRequest(WireStruct, frozen=True):
    """Request the first offsets of segments that were written before a time."""

    topics: tuple[TopicTimes, ...]
    replica_id: int = CONSUMER
    layout = (
        Field("replica_id", INT32, "the broker id of a replica; -1: a client"),
        Field("topics", counted(INT32, struct_type(TopicTimes)), "the topics"),
    )


class PartitionOffsets(WireStruct, frozen=True):
    """The offsets of a partition, the latest first."""

    partition: int
    error_code: int = PartitionError.NONE
    offsets: tuple[int, ...] = ()
    layout = (PARTITION, ERROR, OFFSETS)


class TopicOffsets(WireStruct, frozen=True):
    """The partitions of a topic in a response."""

    topic: str
    partitions: tuple[PartitionOffsets, ...]
    layout = (TOPIC, _partitions(PartitionOffsets))


class OffsetsResponse(Response, frozen=True):
    """The offsets of each partition of a request."""

    correlation_id: int
    topics: tuple[TopicOffsets, ...]
    layout = (
        Field("correlation_id", INT32, "that of the request"),
        Field("topics", counted(INT32, struct_type(TopicOffsets)), "the topics"),
    )


def encode_request(request: OffsetsRequest, correlation_id: int, client_id: str) -> bytes:
    """Encode a request as a frame."""
    header = RequestHeader(OFFSETS_KEY, 0, correlation_id, client_id)
    return encode_frame(b"".join(struct_type(RequestHeader).parts(header)), request)


def decode_request(frame: Frame) -> tuple[RequestHeader, OffsetsRequest]:
    """Decode a request from a frame without its first four bytes; raise `MalformedRequest`."""
    reader = Reader(frame, "request", MalformedRequest)
    header: RequestHeader = struct_type(RequestHeader).read(reader)
    if (header.key, header.version) != (OFFSETS_KEY, 0):
        raise reader.malformed(
            f"request {header.key} in version {header.version}; only request {OFFSETS_KEY} in "
            "version 0 is answered here"
        )
    request: OffsetsRequest = struct_type(OffsetsRequest).read(reader)
    reader.finish()
    return header, request


Ends = Callable[[Iterable[Partition]], Iterable[int | None]]
"""Returns the end of each log; None where this broker does not lead the partition."""


def answer_offsets(frame: Frame, ends: Ends) -> bytes:
    """Answer a request with the ends of logs; raise `MalformedRequest` for another request."""
    header, request = decode_request(frame)
    topics = tuple(TopicOffsets(one.topic, tuple(_offsets(one, ends))) for one in request.topics)
    return encode_response(OffsetsResponse(header.correlation_id, topics))


def _offsets(topic: TopicTimes, ends: Ends) -> Iterator[PartitionOffsets]:
    names = (Partition(topic.topic, str(one.partition)) for one in topic.partitions)
    for one, end in zip(topic.partitions, ends(names), strict=True):
        if end is None:
            yield PartitionOffsets(one.partition, PartitionError.NOT_LEADER_FOR_PARTITION)
        else:
            yield PartitionOffsets(one.partition, offsets=(end,)[: one.max_offsets])


def decode_response(frame: Frame) -> OffsetsResponse:
    """Decode a response from a frame without its first four bytes; raise `MalformedResponse`."""
    reader = Reader(frame, "response", MalformedResponse)
    response: OffsetsResponse = struct_type(OffsetsResponse).read(reader)
    reader.finish()
    return response
