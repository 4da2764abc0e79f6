"""The page of the requests of 0.8, whose examples are encoded by the code itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from docs.log_formats import Table, hexadecimal, layout_table

from watchkeeper.model.log.format.frames import WireStruct, size_on_wire, struct_type
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode
from watchkeeper.model.log.format.requests import Response, encode_response
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    OffsetsResponse,
    PartitionError,
    PartitionOffsets,
    PartitionTime,
    RequestHeader,
    TopicOffsets,
    TopicTimes,
)
from watchkeeper.model.offset_manager.records import CommittedOffset, OffsetKey
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
)
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequest,
    CommitRequestV1,
    CommitResponse,
    CommittedRequest,
    CommittedRequestV1,
    CommittedResponse,
    ConsumerMetadataRequest,
    ConsumerMetadataResponse,
    PartitionCommit,
    PartitionCommitted,
    PartitionNumber,
    PartitionOutcome,
    TimedCommit,
)
from watchkeeper.model.wire_08.metadata import (
    BrokerEndpoint,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from watchkeeper.model.wire_08.produce import (
    PartitionAppended,
    PartitionMessages,
    ProduceRequest,
    ProduceResponse,
)
from watchkeeper.model.wire_08.table import APIS, encode_request

Part = TypeVar("Part")

ENTRY = encode([KeyedMessage(None, b"42")])
ID, CLIENT = 7, "c"
TIMES = TopicTimes("t", (PartitionTime(0),))
KEY, COMMITTED = OffsetKey("g1", "t", 0), CommittedOffset(42, "", 1000)
METADATA = TopicMetadata(0, "t", (PartitionMetadata(0, 0, 3, (3,), (3,)),))


def of_t(part: Part) -> tuple[OfTopic[Part], ...]:
    """One part of the topic `t`."""
    return (OfTopic("t", (part,)),)


EXAMPLES: tuple[tuple[WireStruct, Response], ...] = (
    (
        ProduceRequest(1, 1500, of_t(PartitionMessages(0, ENTRY))),
        ProduceResponse(ID, of_t(PartitionAppended(0, 0, 5))),
    ),
    (
        FetchRequest(100, 1, of_t(PartitionFetch(0, 5, 1024))),
        FetchResponse(ID, of_t(PartitionFetched(0, 0, 6, ENTRY))),
    ),
    (
        OffsetsRequest((TIMES,)),
        OffsetsResponse(ID, (TopicOffsets("t", (PartitionOffsets(0, 0, (6,)),)),)),
    ),
    (MetadataRequest(("t",)), MetadataResponse(ID, (BrokerEndpoint(3, "h", 9092),), (METADATA,))),
    (
        CommitRequest("g1", of_t(PartitionCommit(0, 42))),
        CommitResponse(ID, of_t(PartitionOutcome(0))),
    ),
    (
        CommitRequestV1("g1", of_t(TimedCommit(0, 42))),
        CommitResponse(ID, of_t(PartitionOutcome(0, 15))),
    ),
    (
        CommittedRequest("g1", of_t(PartitionNumber(0))),
        CommittedResponse(ID, of_t(PartitionCommitted(0, 42))),
    ),
    (
        CommittedRequestV1("g1", of_t(PartitionNumber(0))),
        CommittedResponse(ID, of_t(PartitionCommitted(0, -1, "", 15))),
    ),
    (ConsumerMetadataRequest("g1"), ConsumerMetadataResponse(ID, 15)),
)


def tables(table: Table, value: WireStruct, frame: bytes, head: list[list[str]]) -> Iterator[str]:
    """The fields of a value, and then those of its parts, and of their parts."""
    yield layout_table(table, value, frame, head)
    for part in parts_of(value):
        data = b"".join(struct_type(type(part)).parts(part))
        yield f"{type(part).__name__}:"
        yield from tables(table, part, data, [])


def parts_of(value: WireStruct) -> Iterator[WireStruct]:
    """The values inside of a value, of each class the first."""
    for name, _, _ in value.layout:
        inner = getattr(value, name)
        for each in inner if isinstance(inner, tuple) else ():
            if isinstance(each, OfTopic):
                yield each.parts[0]
            elif isinstance(each, WireStruct):
                yield each


def api_parts(table: Table) -> Iterator[str]:
    """Every request with its response."""
    assert [type(request) for request, _ in EXAMPLES] == [api.request for api in APIS]
    for api, (request, response) in zip(APIS, EXAMPLES, strict=True):
        whole = encode_request(request, ID, CLIENT)
        end = len(whole) - size_on_wire(request)
        title = api.request.__name__.removesuffix("V1").removesuffix("Request")
        about = (api.request.__doc__ or "").strip()
        yield f"### {api.key}.{api.version}: {title}\n\n{about}"
        yield from tables(table, request, whole[end:], [])
        yield "Its response:"
        frame = encode_response(response)
        size = ["size", "int32", hexadecimal(frame[:4]), "the number of bytes that follow"]
        yield from tables(table, response, frame, [size])


def _stored(table: Table, value: WireStruct) -> str:
    """The table of a key or a value after its version."""
    data = b"".join(struct_type(type(value)).parts(value))
    return layout_table(table, value, data, [])


def requests_08_body(table: Table) -> str:
    """The page below its title."""
    header = RequestHeader(3, 0, ID, CLIENT)
    data = b"".join(struct_type(RequestHeader).parts(header))
    codes = ([str(int(code)), f"`{code.name}`"] for code in PartitionError)
    return "\n\n".join(
        (
            "The frames between clients and `watchkeeper broker --protocol 0.8`, as Kafka 0.8.2 "
            "has them. A frame begins with its size as int32; the header of a request follows:",
            layout_table(table, header, data, []),
            "A response has the correlation id of its request in place of the header. The "
            "requests of a connection are answered in their order. The messages in the examples "
            "are of the [format of 0.8](log-formats.md#a-message-set-of-08).",
            "## Requests, by key and version",
            *api_parts(table),
            "## The messages of `__consumer_offsets`",
            "A coordinator keeps the offsets of groups as messages of this topic. The key names "
            "the group and the partition, after int16 version 0:",
            _stored(table, KEY),
            "So does the value. A message without a value removes the offset. "
            "Values of version 1, which Kafka 0.9 writes, are read; they have the time at which "
            "the offset expires as a last int64.",
            _stored(table, COMMITTED),
            "## Error codes",
            table(["code", "name"], codes),
        )
    )
