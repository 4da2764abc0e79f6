"""Requests and responses of 0.8: bytes from the protocol's description, and damaged ones."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.log.vectors import ENTRIES_08, unhex
from tests.support.messages.wire_08_values import NULLABLE_TEXTS, REQUESTS, RESPONSES
from watchkeeper.model.log.format import requests
from watchkeeper.model.log.format.errors import LogError, MalformedRequest, MalformedResponse
from watchkeeper.model.log.format.frames import WireStruct, frame_size, size_on_wire, struct_type
from watchkeeper.model.log.format.requests import Response, encode_response
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    OffsetsResponse,
    PartitionOffsets,
    PartitionTime,
    RequestHeader,
    TopicOffsets,
    TopicTimes,
)
from watchkeeper.model.wire_08.by_topic import OfTopic, flat, grouped
from watchkeeper.model.wire_08.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
    heads,
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
from watchkeeper.model.wire_08.table import (
    APIS,
    Api,
    UnknownApi,
    decode_request,
    decode_response,
    encode_request,
)

HELLO = ENTRIES_08[0][1]
"""The entry of 31 bytes of `hello`, without a key, at offset 0."""


def of_t(*parts: Any) -> tuple[OfTopic[Any], ...]:
    """Parts of the topic `t`."""
    return (OfTopic("t", parts),)


HEADER = "{} 00000001 0001 63"
"""Key and version, correlation id 1, client `c`."""
T = "00000001 0001 74 00000001"
"""One topic, `t`, with one partition."""

REQUEST_VECTORS = [
    (
        ProduceRequest(-1, 1500, of_t(PartitionMessages(0, HELLO))),
        ("00000043", "0000 0000", f"ffff 000005dc {T} 00000000 0000001f {HELLO.hex()}"),
    ),
    (
        FetchRequest(100, 1, of_t(PartitionFetch(2, 7, 1024))),
        (
            "00000032",
            "0001 0000",
            f"ffffffff 00000064 00000001 {T} 00000002 0000000000000007 00000400",
        ),
    ),
    (
        OffsetsRequest((TopicTimes("t", (PartitionTime(0, -2, 1),)),)),
        ("0000002a", "0002 0000", f"ffffffff {T} 00000000 fffffffffffffffe 00000001"),
    ),
    (MetadataRequest(("t",)), ("00000012", "0003 0000", "00000001 0001 74")),
    (MetadataRequest(), ("0000000f", "0003 0000", "00000000")),
    (
        CommitRequest("g1", of_t(PartitionCommit(0, 42))),
        ("00000028", "0008 0000", f"0002 6731 {T} 00000000 000000000000002a 0000"),
    ),
    (
        CommitRequestV1("g1", of_t(TimedCommit(0, 42))),
        (
            "00000036",
            "0008 0001",
            f"0002 6731 ffffffff 0000 {T} 00000000 000000000000002a ffffffffffffffff 0000",
        ),
    ),
    (
        CommittedRequest("g1", of_t(PartitionNumber(0))),
        ("0000001e", "0009 0000", f"0002 6731 {T} 00000000"),
    ),
    (
        CommittedRequestV1("g1", of_t(PartitionNumber(0))),
        ("0000001e", "0009 0001", f"0002 6731 {T} 00000000"),
    ),
    (ConsumerMetadataRequest("g1"), ("0000000f", "000a 0000", "0002 6731")),
]
"""Request of client `c` with correlation id 1 -> its size, its key and version, its fields."""

RESPONSE_VECTORS: list[tuple[Response, str]] = [
    (
        ProduceResponse(1, of_t(PartitionAppended(0, 0, 5))),
        f"0000001d 00000001 {T} 00000000 0000 0000000000000005",
    ),
    (
        FetchResponse(1, of_t(PartitionFetched(0, 0, 1, HELLO))),
        f"00000040 00000001 {T} 00000000 0000 0000000000000001 0000001f {HELLO.hex()}",
    ),
    (
        OffsetsResponse(1, (TopicOffsets("t", (PartitionOffsets(0, 0, (9,)),)),)),
        f"00000021 00000001 {T} 00000000 0000 00000001 0000000000000009",
    ),
    (
        MetadataResponse(
            1,
            (BrokerEndpoint(3, "h", 9092),),
            (TopicMetadata(0, "t", (PartitionMetadata(9, 0, 3, (3,), (3,)),)),),
        ),
        "0000003a 00000001 00000001 00000003 0001 68 00002384"
        "00000001 0000 0001 74 00000001 0009 00000000 00000003"
        "00000001 00000003 00000001 00000003",
    ),
    (
        CommitResponse(1, of_t(PartitionOutcome(0, 12))),
        f"00000015 00000001 {T} 00000000 000c",
    ),
    (
        CommittedResponse(1, of_t(PartitionCommitted(0, 42, "m"))),
        f"00000020 00000001 {T} 00000000 000000000000002a 0001 6d 0000",
    ),
    (
        ConsumerMetadataResponse(7, 15),
        "00000010 00000007 000f ffffffff 0000 ffffffff",
    ),
]


@pytest.mark.parametrize(("request_", "parts"), REQUEST_VECTORS)
def test_golden_requests(request_: WireStruct, parts: tuple[str, str, str]) -> None:
    size, key, fields = parts
    frame = unhex(size, HEADER.format(key), fields)

    assert encode_request(request_, 1, "c") == frame
    header, decoded = decode_request(frame[4:])
    assert (type(decoded), decoded) == (type(request_), request_)
    assert (header.correlation_id, header.client_id) == (1, "c")


@pytest.mark.parametrize(("response", "frame"), RESPONSE_VECTORS)
def test_golden_responses(response: Response, frame: str) -> None:
    assert encode_response(response) == unhex(frame)


def test_every_request_has_golden_bytes() -> None:
    assert {type(request) for request, _ in REQUEST_VECTORS} == {api.request for api in APIS}
    assert {type(response) for response, _ in RESPONSE_VECTORS} == {api.response for api in APIS}
    assert set(RESPONSES) == {api.response for api in APIS}


# --- any value -------------------------------------------------------------------------


@given(REQUESTS, st.integers(0, 2**31 - 1), NULLABLE_TEXTS)
def test_a_request_comes_back(value: WireStruct, number: int, client: str | None) -> None:
    frame = encode_request(value, number, client)
    header, decoded = decode_request(frame[4:])

    assert frame_size(frame) == len(frame) - 4
    assert (type(decoded), decoded) == (type(value), value)
    api = next(api for api in APIS if api.request is type(value))
    assert header == RequestHeader(api.key, api.version, number, client)


@given(st.data(), st.sampled_from(APIS))
def test_a_response_comes_back(data: st.DataObject, api: Api) -> None:
    response: Any = data.draw(RESPONSES[api.response])
    frame = encode_response(response)

    assert size_on_wire(response) == len(frame)
    number = response.correlation_id
    example = next(one for one, _ in REQUEST_VECTORS if type(one) is api.request)
    assert decode_response(example, frame[4:], number) == response
    with pytest.raises(MalformedResponse, match="expected"):
        decode_response(example, frame[4:], number ^ 1)


@given(RESPONSES[FetchResponse])
def test_the_heads_of_a_fetch_response_are_its_bytes_without_messages(response: Response) -> None:
    """What is sent around parts of files is what the encoder writes."""
    assert isinstance(response, FetchResponse)

    class Part:
        def __init__(self, one: PartitionFetched) -> None:
            self.partition, self.error_code = one.partition, one.error_code
            self.high_watermark, self.size_bytes = one.high_watermark, len(one.messages)

    sized = tuple(OfTopic(topic, tuple(map(Part, parts))) for topic, parts in response.topics)
    messages = [one.messages for _, one in flat(response.topics)] or [b""]
    pieces = list(heads(response.correlation_id, sized))
    messages += [b""] * (len(pieces) - len(messages))

    sent = b"".join(head + data for head, data in zip(pieces, messages, strict=True))
    assert sent == encode_response(response)


def test_parts_of_one_topic_are_grouped_in_their_order() -> None:
    pairs = [("a", 1), ("a", 2), ("b", 3), ("a", 4)]

    topics = grouped(pairs)
    assert topics == (OfTopic("a", (1, 2)), OfTopic("b", (3,)), OfTopic("a", (4,)))
    assert list(flat(topics)) == pairs


# --- damaged frames --------------------------------------------------------------------


@given(REQUESTS, st.data())
def test_a_cut_or_longer_request_is_malformed(value: WireStruct, data: st.DataObject) -> None:
    frame = encode_request(value, 1, "c")[4:]
    kept = data.draw(st.integers(0, len(frame) - 1))

    for damaged in (frame[:kept], frame + b"\0"):
        with pytest.raises(MalformedRequest):
            decode_request(damaged)


@settings(max_examples=300)
@given(REQUESTS, st.integers(0, 2**32))
def test_a_mutated_request_gives_a_value_or_a_named_error(value: WireStruct, seed: int) -> None:
    """Some bytes are others; counts and lengths among them."""
    chance = Random(seed)
    frame = bytearray(encode_request(value, 1, "client"))[4:]
    for _ in range(chance.choice((1, 1, 2, 6))):
        at = chance.randrange(len(frame))
        frame[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    try:
        _, decoded = decode_request(bytes(frame))
    except LogError:
        return
    assert size_on_wire(decoded) == struct_type(type(decoded)).size_of(decoded)


@pytest.mark.parametrize("count", [2**31 - 1, 2**24, -1])
def test_a_count_that_the_frame_cannot_hold_takes_no_memory(count: int) -> None:
    frame = bytearray(encode_request(MetadataRequest(("t",) * 100), 1, "c")[4:])
    frame[11:15] = count.to_bytes(4, signed=True)
    tracemalloc.start()
    with pytest.raises(MalformedRequest, match="bytes left"):
        decode_request(bytes(frame))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 1_000_000


# --- requests of others ----------------------------------------------------------------


def test_a_request_of_07_is_recognized() -> None:
    frame = requests.encode_request(requests.FetchRequest("clicks", 0, 0, 1024))

    with pytest.raises(MalformedRequest, match=r"topic 'clicks' in the protocol of Kafka 0\.7"):
        decode_request(frame[4:])


def test_an_unknown_key_or_version_names_the_client() -> None:
    versions = unhex("0012 0000 00000001 0004 6b636174")
    leader_and_isr = unhex("0004 0000 00000001 0000")

    with pytest.raises(UnknownApi, match=r"client 'kcat'.*key 18 in version 0; known are 0\.0"):
        decode_request(versions)
    with pytest.raises(UnknownApi, match="LeaderAndIsr, key 4, which a controller"):
        decode_request(leader_and_isr)


def test_a_request_of_08_is_recognized_by_a_broker_of_07() -> None:
    frame = encode_request(MetadataRequest(("t",)), 1, "c")

    with pytest.raises(MalformedRequest, match=r"protocol of Kafka 0\.8 or later"):
        requests.decode_request(frame[4:])
