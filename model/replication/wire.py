"""The encoding of the requests between brokers of 0.8, and of their responses.

    request     int32 size of what follows, int16 key, int16 version, int32 correlation id,
                string client id (but not in ControlledShutdown), fields
    response    int32 size of what follows, int32 correlation id, fields

LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown are those of Kafka 0.8.2, byte
for byte. The others have Kafka's keys and a version that Kafka does not use: they carry the
epochs of records, and what KIP-101 and KIP-320 add to requests, in one layout for all variants.
Fetches as in 0.8 are in `kafka_fetch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.format.errors import LogError, MalformedRequest, MalformedResponse
from watchkeeper.model.log.format.fields import (
    INT8,
    INT16,
    INT32,
    INT64,
    MESSAGE_SET,
    STRING,
    FieldType,
    Frame,
    Reader,
    counted,
)
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode, records
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.replication.messages import decoded, encoded, number_in, value_of
from watchkeeper.model.replication.requests import (
    Appended,
    AppendRecords,
    BrokerAddress,
    BrokerRequest,
    ControlledShutdown,
    DescribeTopic,
    EndOfEpoch,
    EpochEnd,
    ErrorCode,
    FetchedPart,
    FetchedRecords,
    FetchRecords,
    LeaderAndIsr,
    LeaderState,
    Outcome,
    StillLed,
    StopReplica,
    TopicMetadata,
    UpdateMetadata,
    Wanted,
)

CLIENT = "watchkeeper"
OWN_VERSION = 1000
"""The version of the requests whose layout is not Kafka's."""

# --- types of fields -------------------------------------------------------------------


def _row(*fields: FieldType) -> FieldType:
    """Return the type of a tuple of fields, one after the other."""

    def parts(value: tuple[Any, ...]) -> Iterator[bytes]:
        for field, each in zip(fields, value, strict=True):
            yield from field.parts(each)

    def read(reader: Reader) -> tuple[Any, ...]:
        return tuple(field.read(reader) for field in fields)

    def size(value: tuple[Any, ...]) -> int:
        return sum(field.size_of(each) for field, each in zip(fields, value, strict=True))

    name = ", ".join(field.name for field in fields)
    return FieldType(name, sum(field.smallest_bytes for field in fields), size, parts, read)


def _as(
    field: FieldType, to_wire: Callable[[Any], Any], from_wire: Callable[[Any], Any]
) -> FieldType:
    """Return the type of a value that is written as another one.

    A ValueError or LogError of `from_wire` says that what was read is malformed.
    """

    def read(reader: Reader) -> Any:
        found = field.read(reader)
        try:
            return from_wire(found)
        except (ValueError, LogError) as error:
            raise reader.malformed(str(error)) from None

    return FieldType(
        field.name,
        field.smallest_bytes,
        lambda value: field.size_of(to_wire(value)),
        lambda value: field.parts(to_wire(value)),
        read,
    )


INT32S = counted(INT32, INT32)
BOOLEAN = _as(INT8, int, bool)
ERROR = _as(INT16, int, ErrorCode.of)
PARTITION = _as(
    _row(STRING, INT32),
    lambda partition: (partition.topic, int(partition.name)),
    lambda row: Partition(row[0], str(row[1])),
)
PARTITIONS = counted(INT32, PARTITION)


def _address_of(row: tuple[int, str, int]) -> BrokerAddress:
    return BrokerAddress(row[0], f"{row[1]}:{row[2]}")


def _address_row(broker: BrokerAddress) -> tuple[int, str, int]:
    host, _, port = broker.address.rpartition(":")
    return broker.broker, host, int(port)


ADDRESSES = counted(INT32, _as(_row(INT32, STRING, INT32), _address_row, _address_of))


def _remembered(field: FieldType) -> FieldType:
    """Return the same type, which encodes equal values once.

    A controller says the same of thousands of partitions to each broker.
    """

    @lru_cache(maxsize=32_768)
    def encoding(value: Any) -> bytes:
        return b"".join(field.parts(value))

    return field._replace(
        size_of=lambda value: len(encoding(value)), parts=lambda value: iter((encoding(value),))
    )


def _state_row(said: LeaderState) -> tuple[Any, ...]:
    state = said.state
    return (
        said.partition,
        state.controller_epoch,
        state.leader,
        state.leader_epoch,
        state.isr,
        said.version,
        said.replicas,
    )


def _state_of(row: tuple[Any, ...]) -> LeaderState:
    partition, controller_epoch, leader, leader_epoch, isr, version, replicas = row
    state = PartitionState(leader, isr, leader_epoch, controller_epoch)
    return LeaderState(partition, state, version, replicas)


STATES = counted(
    INT32,
    _remembered(
        _as(
            _row(PARTITION, INT32, INT32, INT32, INT32S, INT32, INT32S),
            _state_row,
            _state_of,
        )
    ),
)
OUTCOMES = counted(INT32, _remembered(_row(PARTITION, ERROR)))


def _values_row(numbers: tuple[int, ...]) -> bytes:
    return encode(KeyedMessage(None, value_of(number)) for number in numbers)


def _numbers_in(data: bytes) -> tuple[int, ...]:
    return tuple(number_in(each.value, f"offset {each.offset}") for each in records(data))


NUMBERS = _as(MESSAGE_SET, _values_row, _numbers_in)


def _part_row(part: FetchedPart) -> tuple[Any, ...]:
    data = encoded(part.records, part.offset)
    return part.partition, part.offset, part.error, data, part.high_watermark, part.end


def _part_of(row: tuple[Any, ...]) -> FetchedPart:
    partition, offset, error, data, high_watermark, end = row
    return FetchedPart(
        partition, offset, error, tuple(decoded(data, offset)), high_watermark, end
    )


FETCHED_PARTS = counted(
    INT32,
    _as(_row(PARTITION, INT64, ERROR, MESSAGE_SET, INT64, INT64), _part_row, _part_of),
)
WANTED = counted(INT32, _as(_row(PARTITION, INT64, INT32), tuple, lambda row: Wanted(*row)))


def _struct(kind: type[Struct], **fields: FieldType) -> FieldType:
    """Return the type of a value, of which these attributes are written, in this order."""
    return _as(
        _row(*fields.values()),
        lambda value: tuple(getattr(value, name) for name in fields),
        lambda row: kind(**dict(zip(fields, row, strict=True))),
    )


# --- requests --------------------------------------------------------------------------


class Layout(NamedTuple):
    """How a request and its response are written."""

    key: int
    request: FieldType
    response: FieldType
    version: int = OWN_VERSION
    names_client: bool = True


_OUTCOME = _struct(Outcome, error=ERROR, partitions=OUTCOMES)

LAYOUTS: dict[type[BrokerRequest], Layout] = {
    LeaderAndIsr: Layout(
        4,
        _struct(
            LeaderAndIsr,
            controller=INT32,
            controller_epoch=INT32,
            states=STATES,
            leaders=ADDRESSES,
        ),
        _OUTCOME,
        version=0,
    ),
    StopReplica: Layout(
        5,
        _struct(
            StopReplica,
            controller=INT32,
            controller_epoch=INT32,
            deletes=BOOLEAN,
            partitions=PARTITIONS,
        ),
        _OUTCOME,
        version=0,
    ),
    UpdateMetadata: Layout(
        6,
        _struct(
            UpdateMetadata,
            controller=INT32,
            controller_epoch=INT32,
            states=STATES,
            alive=ADDRESSES,
        ),
        _struct(Outcome, error=ERROR),
        version=0,
    ),
    ControlledShutdown: Layout(
        7,
        _struct(ControlledShutdown, broker=INT32),
        _struct(StillLed, error=ERROR, partitions=PARTITIONS),
        version=0,
        names_client=False,
    ),
    AppendRecords: Layout(
        0,
        _struct(
            AppendRecords, acks=INT16, timeout_ms=INT32, partition=PARTITION, numbers=NUMBERS
        ),
        _struct(Appended, error=ERROR, offset=INT64),
    ),
    FetchRecords: Layout(
        1,
        _struct(FetchRecords, replica=INT32, wait_ms=INT32, wanted=WANTED),
        _struct(FetchedRecords, parts=FETCHED_PARTS),
    ),
    DescribeTopic: Layout(
        3,
        _struct(DescribeTopic, topic=STRING),
        _struct(TopicMetadata, alive=ADDRESSES, leaders=counted(INT32, _row(PARTITION, INT32))),
    ),
    EndOfEpoch: Layout(
        23,
        _struct(EndOfEpoch, replica=INT32, partition=PARTITION, epoch=INT32, leader_epoch=INT32),
        _struct(EpochEnd, error=ERROR, epoch=INT32, end=INT64),
    ),
}
"""Request -> its layout."""
_BY_KEY = {(layout.key, layout.version): layout for layout in LAYOUTS.values()}


def encode_request(request: BrokerRequest, correlation_id: int) -> bytes:
    """Encode a request as a frame."""
    layout = LAYOUTS[type(request)]
    head = [INT16.parts(layout.key), INT16.parts(layout.version), INT32.parts(correlation_id)]
    if layout.names_client:
        head.append(STRING.parts(CLIENT))
    return _framed(*head, layout.request.parts(request))


def decode_request(frame: Frame) -> tuple[int, BrokerRequest]:
    """Decode a frame without its size; returns the correlation id, and the request.

    Raises `MalformedRequest`.
    """
    reader = Reader(frame, "request", MalformedRequest)
    key, version = INT16.read(reader), INT16.read(reader)
    layout = _BY_KEY.get((key, version))
    if layout is None:
        raise reader.malformed(f"request {key} in version {version} is not known here")
    correlation_id = INT32.read(reader)
    if layout.names_client:
        STRING.read(reader)
    request: BrokerRequest = layout.request.read(reader)
    reader.finish()
    return correlation_id, request


def encode_response(request: BrokerRequest, response: Any, correlation_id: int) -> bytes:
    """Encode the response to a request as a frame."""
    field = LAYOUTS[type(request)].response
    return _framed(INT32.parts(correlation_id), field.parts(response))


def decode_response(request: BrokerRequest, frame: Frame, correlation_id: int) -> Any:
    """Decode the response to a request; raise `MalformedResponse`."""
    reader = Reader(frame, "response", MalformedResponse)
    found = INT32.read(reader)
    if found != correlation_id:
        raise reader.malformed(f"the answer to request {found}, and {correlation_id} is waiting")
    response = LAYOUTS[type(request)].response.read(reader)
    reader.finish()
    return response


def _framed(*parts: Iterator[bytes]) -> bytes:
    data = b"".join(piece for part in parts for piece in part)
    return b"".join((*INT32.parts(len(data)), data))
