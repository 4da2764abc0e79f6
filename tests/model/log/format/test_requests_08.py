"""The offsets request of 0.8: bytes as Kafka writes them, and damaged ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log.vectors import unhex
from watchkeeper.model.log.format.errors import MalformedRequest, MalformedResponse
from watchkeeper.model.log.format.requests import encode_response
from watchkeeper.model.log.format.requests_08 import (
    OFFSETS_KEY,
    OffsetsRequest,
    OffsetsResponse,
    PartitionError,
    PartitionOffsets,
    PartitionTime,
    RequestHeader,
    TopicOffsets,
    TopicTimes,
    decode_request,
    decode_response,
    encode_request,
)

REQUEST = unhex(
    "00000037 0002 0000 00000007 000b 7761746368 6b6565706572"
    "ffffffff 00000001 0004 74657374 00000001 00000003 ffffffffffffffff 00000001"
)
RESPONSE = unhex(
    "0000002e 00000007 00000001 0004 74657374 00000002"
    "00000003 0000 00000001 000000000000000f  00000004 0006 00000000"
)
DECODED = OffsetsRequest((TopicTimes("test", (PartitionTime(3),)),))
ANSWER = OffsetsResponse(
    7,
    (
        TopicOffsets(
            "test",
            (
                PartitionOffsets(3, offsets=(15,)),
                PartitionOffsets(4, PartitionError.NOT_LEADER_FOR_PARTITION),
            ),
        ),
    ),
)


def test_golden_bytes() -> None:
    assert encode_request(DECODED, 7, "watchkeeper") == REQUEST
    header = RequestHeader(OFFSETS_KEY, 0, 7, "watchkeeper")
    assert decode_request(REQUEST[4:]) == (header, DECODED)
    assert encode_response(ANSWER) == RESPONSE
    assert decode_response(RESPONSE[4:]) == ANSWER


@given(st.integers(0, len(REQUEST) - 5), st.binary(max_size=3))
def test_a_damaged_request_is_malformed(kept: int, more: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode_request(REQUEST[4:][:kept])
    with pytest.raises(MalformedRequest):
        decode_request(REQUEST[4:] + b"\0" + more)


@given(st.integers(0, len(RESPONSE) - 5), st.integers(0, 255))
def test_a_damaged_response_is_malformed_or_another(at: int, byte: int) -> None:
    damaged = bytearray(RESPONSE[4:])
    with pytest.raises(MalformedResponse):
        decode_response(bytes(damaged[:at]))
    damaged[at] = byte
    try:
        other = decode_response(bytes(damaged))
    except MalformedResponse:
        return
    assert (other == ANSWER) == (bytes(damaged) == RESPONSE[4:])


@pytest.mark.parametrize("header", ["0001 0000", "0002 0001"])
def test_another_request_is_refused(header: str) -> None:
    """A fetch, and a later version of the offsets request."""
    with pytest.raises(MalformedRequest, match="only request 2 in version 0"):
        decode_request(unhex(header) + REQUEST[8:])
