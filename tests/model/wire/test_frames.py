"""A stream of bytes as payloads, wherever it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.model.wire.fields import Malformed, int32
from watchkeeper.model.wire.frames import FrameDecoder, frame

MOST_BYTES = 64
payloads = st.lists(st.binary(max_size=MOST_BYTES), max_size=5)


@given(payloads, st.data())
def test_payloads_are_found_wherever_the_stream_is_cut(
    sent: list[bytes], data: st.DataObject
) -> None:
    """How bytes are divided among deliveries says nothing."""
    stream = b"".join(map(frame, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    decoder = FrameDecoder(MOST_BYTES)

    found = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += decoder.feed(stream[begin:end])

    assert found == sent
    assert decoder.kept == b""


@given(payloads)
def test_a_stream_may_come_byte_by_byte(sent: list[bytes]) -> None:
    """Every place is a place to cut."""
    stream = b"".join(map(frame, sent))
    decoder = FrameDecoder(MOST_BYTES)

    assert [got for at in range(len(stream)) for got in decoder.feed(stream[at : at + 1])] == sent


def test_what_is_incomplete_is_kept() -> None:
    """A frame is nothing before its last byte."""
    decoder = FrameDecoder(MOST_BYTES)

    assert decoder.feed(b"\0\0\0") == []
    assert decoder.kept == b"\0\0\0"
    assert decoder.feed(b"\3ab") == []
    assert decoder.kept == b"\0\0\0\3ab"
    assert decoder.feed(b"c\0") == [b"abc"]
    assert decoder.kept == b"\0"


def test_the_longest_frame_is_taken_and_no_longer_one() -> None:
    """The limit is the length of a payload, inclusive."""
    decoder = FrameDecoder(MOST_BYTES)

    assert decoder.feed(frame(bytes(MOST_BYTES))) == [bytes(MOST_BYTES)]
    with pytest.raises(Malformed, match="a frame of 65 bytes; from 0 to 64 are taken"):
        decoder.feed(int32(MOST_BYTES + 1))


@pytest.mark.parametrize("length", [-1, -(1 << 31), MOST_BYTES + 1, (1 << 31) - 1])
def test_a_wrong_length_ends_the_stream_and_nothing_before_it_is_lost(length: int) -> None:
    """After a length that cannot be, there are no frames; what follows it is kept as it came."""
    decoder = FrameDecoder(MOST_BYTES)
    payloads = decoder.each(frame(b"before") + int32(length) + b"after")

    assert next(payloads) == b"before"
    with pytest.raises(Malformed):
        next(payloads)
    assert decoder.kept == int32(length) + b"after"
    with pytest.raises(Malformed):
        decoder.feed(b"more")
