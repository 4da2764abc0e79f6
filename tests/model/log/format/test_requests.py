"""Requests and responses of 0.7: golden bytes, round trips, sizes, and what is refused."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log.vectors import MAGIC_1_HELLO, unhex
from watchkeeper.model.log.format.contents import Contents, Series, size_of, whole_series
from watchkeeper.model.log.format.errors import (
    FieldOverflow,
    InvalidFrameSize,
    LogError,
    MalformedRequest,
    MalformedResponse,
)
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES, frame_size, size_on_wire
from watchkeeper.model.log.format.requests import (
    ANY_PARTITION,
    EARLIEST,
    LATEST,
    REQUESTS,
    RESPONSES,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    fetch_head,
    multifetch_head,
)

PRODUCE = ProduceRequest("test", 0, MAGIC_1_HELLO)
FETCH = FetchRequest("test", 0, 0, 1024)
OFFSETS = OffsetsRequest("test", 0, LATEST, 1)
PRODUCE_FIELDS = "0004 74657374 00000000 0000000f 0000000b01003610a68668656c6c6f"
FETCH_FIELDS = "0004 74657374 00000000 0000000000000000 00000400"

FRAMES: list[tuple[Request, bytes]] = [
    (PRODUCE, unhex("0000001f 0000", PRODUCE_FIELDS)),
    (FETCH, unhex("00000018 0001", FETCH_FIELDS)),
    (MultiFetchRequest((FETCH, FETCH)), unhex("00000030 0002 0002", FETCH_FIELDS, FETCH_FIELDS)),
    (MultiProduceRequest((PRODUCE,)), unhex("00000021 0003 0001", PRODUCE_FIELDS)),
    (OFFSETS, unhex("00000018 0004 0004 74657374 00000000 ffffffffffffffff 00000001")),
]

RESPONSE_FRAMES: list[tuple[Request, Response, bytes]] = [
    (FETCH, FetchResponse(MAGIC_1_HELLO), unhex("00000011 0000") + MAGIC_1_HELLO),
    (FETCH, FetchResponse(error_code=1), unhex("00000002 0001")),
    (
        MultiFetchRequest((FETCH, FETCH)),
        MultiFetchResponse((FetchResponse(MAGIC_1_HELLO), FetchResponse(b"", -1))),
        unhex("0000001d 0000 00000011 0000") + MAGIC_1_HELLO + unhex("00000002 ffff"),
    ),
    (
        OFFSETS,
        OffsetsResponse((240, 0)),
        unhex("00000016 0000 00000002 00000000000000f0", "00" * 8),
    ),
]

int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
topics = st.text(max_size=12)
series = st.builds(Series, st.just("p"), st.just(0), st.integers(0, 9), st.integers(0, 50))
produces = st.builds(ProduceRequest, topics, int32s, st.binary(max_size=40))
fetches = st.builds(FetchRequest, topics, int32s, int64s, int32s)


def tuples(of: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Some of them."""
    return st.lists(of, max_size=4).map(tuple)


requests = st.one_of(
    produces,
    fetches,
    st.builds(MultiFetchRequest, tuples(fetches)),
    st.builds(MultiProduceRequest, tuples(produces)),
    st.builds(OffsetsRequest, topics, int32s, int64s, int32s),
)
fetched = st.builds(FetchResponse, st.binary(max_size=40), int16s)


# --- golden bytes ----------------------------------------------------------------------


@pytest.mark.parametrize(("request_", "frame"), FRAMES)
def test_requests_have_the_bytes_that_kafka_gives_them(request_: Request, frame: bytes) -> None:
    assert encode_request(request_) == frame
    assert frame_size(frame) == len(frame) - 4
    assert decode_request(frame[4:]) == request_
    assert size_on_wire(request_) == len(frame)


@pytest.mark.parametrize(("request_", "response", "frame"), RESPONSE_FRAMES)
def test_responses_have_the_bytes_that_kafka_gives_them(
    request_: Request, response: Response, frame: bytes
) -> None:
    assert encode_response(response) == frame
    assert frame_size(frame) == len(frame) - 4
    assert decode_response(request_, frame[4:]) == response
    assert size_on_wire(response) == len(frame)


def test_every_request_and_every_response_is_in_the_tables() -> None:
    assert {type(request) for request, _ in FRAMES} == set(REQUESTS.values())
    assert list(REQUESTS) == [0, 1, 2, 3, 4]
    assert {type(response) for _, response, _ in RESPONSE_FRAMES} == set(RESPONSES.values())


def test_what_producers_send_has_no_response() -> None:
    assert set(REQUESTS.values()) - set(RESPONSES) == {ProduceRequest, MultiProduceRequest}


def test_numbers_with_a_meaning_are_those_of_the_wire() -> None:
    assert (ANY_PARTITION, LATEST, EARLIEST) == (-1, -1, -2)


# --- round trips -----------------------------------------------------------------------


@given(requests)
def test_a_request_is_read_as_it_was_written(request_: Request) -> None:
    frame = encode_request(request_)

    assert decode_request(frame[4:]) == request_
    assert size_on_wire(request_) == len(frame) == frame_size(frame) + 4


@given(
    st.one_of(
        st.tuples(st.just(FETCH), fetched),
        tuples(fetched).map(
            lambda parts: (MultiFetchRequest((FETCH,) * len(parts)), MultiFetchResponse(parts))
        ),
        st.tuples(st.just(OFFSETS), st.builds(OffsetsResponse, tuples(int64s), int16s)),
    )
)
def test_a_response_is_read_as_it_was_written(pair: tuple[Request, Response]) -> None:
    request_, response = pair
    frame = encode_response(response)

    assert decode_response(request_, frame[4:]) == response
    assert size_on_wire(response) == len(frame) == frame_size(frame) + 4


@given(tuples(series))
def test_pieces_take_what_bytes_of_their_size_take(several: tuple[Series, ...]) -> None:
    """So the network of a simulation can be charged for messages that are not there."""
    sets: list[Contents] = [whole_series(pieces) for pieces in several]
    zeros: list[Contents] = [bytes(size_of(message_set)) for message_set in sets]

    for messages, same in zip(sets, zeros, strict=True):
        produce = ProduceRequest("topic", 0, messages)
        assert size_on_wire(produce) == size_on_wire(ProduceRequest("topic", 0, same))
        assert size_on_wire(FetchResponse(messages)) == size_on_wire(FetchResponse(same))
    parts, others = (
        MultiFetchResponse(tuple(map(FetchResponse, contents))) for contents in (sets, zeros)
    )
    assert size_on_wire(parts) == size_on_wire(others)


def test_pieces_cannot_be_written() -> None:
    with pytest.raises(AssertionError, match="no encoding"):
        encode_request(ProduceRequest("topic", 0, whole_series(Series("p", 0, 1, 10))))


@given(fetched)
def test_the_head_of_a_fetch_can_be_sent_before_its_messages(response: FetchResponse) -> None:
    messages = response.messages
    assert isinstance(messages, bytes)
    head = fetch_head(len(messages), response.error_code)

    assert head + messages == encode_response(response)


@given(tuples(fetched))
def test_the_head_of_a_multifetch_can_be_sent_before_its_parts(
    parts: tuple[FetchResponse, ...],
) -> None:
    head = multifetch_head(size_of(part.messages) for part in parts)

    assert head + b"".join(map(encode_response, parts)) == encode_response(
        MultiFetchResponse(parts)
    )


# --- what is refused -------------------------------------------------------------------


def test_a_frame_at_the_limit_is_taken_and_one_beyond_it_is_not() -> None:
    at_limit = struct.pack(">i", LARGEST_FRAME_BYTES)
    beyond = struct.pack(">i", LARGEST_FRAME_BYTES + 1)

    assert frame_size(at_limit) == LARGEST_FRAME_BYTES == 104_857_600
    with pytest.raises(InvalidFrameSize, match=r"max\.socket\.request\.bytes"):
        frame_size(beyond)
    with pytest.raises(InvalidFrameSize, match="11 bytes, 1 to 10 are taken"):
        frame_size(struct.pack(">i", 11), limit_bytes=10)


@pytest.mark.parametrize("prefix", ["", "000000", "00000000", "ffffffff", "80000000"])
def test_a_frame_has_a_size(prefix: str) -> None:
    with pytest.raises(InvalidFrameSize):
        frame_size(bytes.fromhex(prefix))


MALFORMED = {
    "nothing": "",
    "half a number": "00",
    "request 5": "0005",
    "request -1": "ffff",
    "a null topic": "0001 ffff 00000000 0000000000000000 00000400",
    "a negative topic": "0001 8000 00000000 0000000000000000 00000400",
    "a topic beyond the frame": "0001 7fff 74657374",
    "a topic that is not UTF-8": "0001 0001 ff 00000000 0000000000000000 00000400",
    "half a partition": "0001 0004 74657374 0000",
    "no maximum": "0001 0004 74657374 00000000 0000000000000000",
    "more than a fetch": "0001 0004 74657374 00000000 0000000000000000 00000400 00",
    "a set of negative size": "0000 0004 74657374 00000000 ffffffff",
    "a set beyond the frame": "0000 0004 74657374 00000000 00000002 00",
    "a set that ends before the frame": "0000 0004 74657374 00000000 00000000 00",
    "-1 fetches": "0002 ffff",
    "more fetches than fit": "0002 7fff 0004 74657374 00000000 0000000000000000 00000400",
    "more produces than fit": "0003 0002 0004 74657374 00000000 00000000",
    "fewer fetches than there are": f"0002 0001 {FETCH_FIELDS} {FETCH_FIELDS}",
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_request_that_does_not_follow_the_protocol_is_refused(what: str) -> None:
    with pytest.raises(MalformedRequest, match=r"^byte \d+ of a \w+: the request does not"):
        decode_request(bytes.fromhex(MALFORMED[what]))


LATER = {
    "metadata of kcat": (
        "0003 0000 00000001 0004 6b636174 00000000",
        "request 3 of client 'kcat'",
    ),
    "api versions": ("0012 0003 00000001 0002 7264 00", "request 18 of client 'rd'"),
    "produce without a name": (
        "0000 0000 00000007 ffff 0001 00000bb8 00000000",
        "request 0 of a",
    ),
    "leader and ISR": ("0004 0000 00000001 0000 00000000 00000003 00000001", "request 4 of a"),
}


@pytest.mark.parametrize("what", LATER)
def test_a_request_of_a_later_protocol_is_named(what: str) -> None:
    frame, message = LATER[what]
    with pytest.raises(MalformedRequest, match=f"; it reads as {message}.* in the protocol of"):
        decode_request(bytes.fromhex(frame))


@pytest.mark.parametrize("what", ["request -1", "no maximum", "a topic beyond the frame"])
def test_another_defect_is_no_later_protocol(what: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        decode_request(bytes.fromhex(MALFORMED[what]))
    assert "protocol of Kafka 0.8" not in str(refused.value)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("more fetches than fit", "32767 times the fields of FetchRequest, and 22 bytes left"),
        ("more produces than fit", "2 times the fields of ProduceRequest, and 14 bytes left"),
    ],
)
def test_a_count_is_not_believed(what: str, message: str) -> None:
    """It is compared with the rest of the frame before the first item is read."""
    with pytest.raises(MalformedRequest, match=message):
        decode_request(bytes.fromhex(MALFORMED[what]))


MULTIFETCH = MultiFetchRequest((FETCH, FETCH))
MALFORMED_RESPONSES: dict[str, tuple[Request, str]] = {
    "a fetch of nothing": (FETCH, ""),
    "a multifetch of nothing": (MULTIFETCH, ""),
    "one part too few": (MULTIFETCH, "0000 00000002 0000"),
    "one part too many": (MULTIFETCH, "0000" + "00000002 0000" * 3),
    "a part beyond the frame": (MULTIFETCH, "0000 00000002 0000 00000003 0000"),
    "a part of negative size": (MULTIFETCH, "0000 00000002 0000 ffffffff"),
    "a part without an error code": (MULTIFETCH, "0000 00000002 0000 00000001 00"),
    "-1 offsets": (OFFSETS, "0000 ffffffff"),
    "more offsets than fit": (OFFSETS, "0000 7fffffff 0000000000000000"),
    "more than the offsets": (OFFSETS, "0000 00000000 00"),
}


@pytest.mark.parametrize("what", MALFORMED_RESPONSES)
def test_a_response_that_does_not_follow_the_protocol_is_refused(what: str) -> None:
    request_, frame = MALFORMED_RESPONSES[what]

    with pytest.raises(MalformedResponse, match="the response does not follow the protocol"):
        decode_response(request_, bytes.fromhex(frame))


def test_a_multifetch_that_failed_as_a_whole_has_no_parts() -> None:
    response = decode_response(MULTIFETCH, bytes.fromhex("ffff"))

    assert response == MultiFetchResponse((), -1)


@pytest.mark.parametrize(
    "request_",
    [
        FetchRequest("t" * 2**15, 0, 0, 1),
        FetchRequest("topic", 2**31, 0, 1),
        FetchRequest("topic", 0, 2**63, 1),
        MultiFetchRequest((FETCH,) * 2**15),
    ],
    ids=["topic", "partition", "offset", "count"],
)
def test_what_does_not_fit_its_field_is_not_written(request_: Request) -> None:
    with pytest.raises(FieldOverflow, match="as int"):
        encode_request(request_)


@pytest.mark.parametrize(("request_", "frame"), FRAMES)
def test_a_request_that_was_cut_anywhere_is_refused(request_: Request, frame: bytes) -> None:
    for end in range(4, len(frame)):
        with pytest.raises(LogError):
            decode_request(frame[4:end])
