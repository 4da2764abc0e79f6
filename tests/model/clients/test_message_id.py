"""The identity of a message can be read from a log, of bytes or of a series."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.chunks import Chunk, Delivery
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.delivery.message_id import identity_of, merged, payload_of, ranges_in
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.contents import Series, SeriesRange, size_of, whole_series
from watchkeeper.model.log.format.errors import InvalidMessage
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import wrap

CLICKS = Partition("clicks", "0-0")


def numbered(*numbers: int, codec: Codec = Codec.NONE) -> bytes:
    """Messages of a producer, of 20 bytes each."""
    return wrap([Message.of(payload_of("p", number, 10)) for number in numbers], codec)


def handed(contents: bytes | tuple[SeriesRange, ...], *sizes: int) -> list[Delivery]:
    """Return the deliveries of these sizes; without sizes all messages, one by one."""
    chunk = Chunk(CLICKS, contents, 100)
    found = [chunk.next(size) for size in sizes]
    while not sizes and (message := chunk.next(1)) is not None:
        found.append(message)
    return [item for item in found if item is not None]


def test_a_payload_says_who_it_is() -> None:
    """If it was made here, however long it is."""
    assert identity_of(payload_of("p0", 17, 100)) == ("p0", 17)
    assert identity_of(payload_of("p0", 17, 0)) == ("p0", 17)
    assert len(payload_of("p0", 17, 100)) == 100
    assert identity_of(b"hello") is None
    assert identity_of(b"p/x/") is None


def test_ranges_are_what_follows_one_another() -> None:
    """Of one producer, of one size, in one entry if they are compressed."""
    compressed = numbered(7, 8, 9, codec=Codec.GZIP)
    strange = wrap([Message.of(b"hello")], Codec.NONE)
    contents = numbered(0, 1) + numbered(3) + compressed + strange + numbered(10)
    end = 160 + len(compressed)

    assert ranges_in(contents, 100) == [
        MessageRange("p", 0, 2, 100, 140),
        MessageRange("p", 3, 4, 140, 160),
        MessageRange("p", 7, 10, 160, end, one_entry=True),
        MessageRange("p", 10, 11, end + len(strange), end + len(strange) + 20),
    ]


def test_a_series_is_handed_on_as_requested() -> None:
    """From where it was cut, and no further than it is whole."""
    series = Series("p", 50, 10, 90)
    pieces = (SeriesRange(series, 200, 550), SeriesRange(series, 550, 950))

    parts = handed(pieces, 3, 100, 1)

    assert [(part.message_range, part.size) for part in parts] == [
        (MessageRange("p", 52, 55, 100, 400), 3),
        (MessageRange("p", 55, 59, 400, 800), 4),
    ]


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 5), st.integers(0, 30)), max_size=8),
)
def test_what_is_handed_on_is_what_was_stored(parts: list[tuple[bool, int, int]]) -> None:
    """Message by message, compressed or not: the same numbers, in the same order."""
    contents = b"".join(
        numbered(*range(first, first + count), codec=Codec.GZIP if is_compressed else Codec.NONE)
        for is_compressed, count, first in parts
    )
    expected = [("p", first + at) for _, count, first in parts for at in range(count)]

    found = handed(contents)

    stored = [
        (message_range.producer, number)
        for message_range in ranges_in(contents, 0)
        for number in range(*message_range[1:3])
    ]
    ranges = [item.message_range for item in found if item.message_range is not None]
    assert stored == expected
    assert [(message_range.producer, message_range.first) for message_range in ranges] == expected
    assert not found or found[-1].next_offset == 100 + len(contents)
    assert merged(ranges_in(contents, 0)) == ranges_in(contents, 0)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 7), st.data())
def test_however_a_series_is_cut_it_is_handed_on_whole(
    counts: list[int], at_most: int, data: st.DataObject
) -> None:
    """An append may have come in parts, and a fetch may end within an entry."""
    pieces = whole_series(Series("p", 0, sum(counts), 90))
    size = size_of(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=4)))
    edges = [0, *cuts, size]
    cut = tuple(
        SeriesRange(pieces[0].series, begin, end) for begin, end in pairwise(edges) if begin < end
    )

    found = handed(cut, *[at_most] * (sum(counts) + 1))

    assert sum(part.size for part in found) == sum(counts)
    assert [message.next_offset for message in found[:-1]] == [
        message.offset for message in found[1:]
    ]


def entries(number: int, kind: str) -> bytes:
    """Messages of one kind or another, in one entry or several."""
    if kind == "a stranger":
        return wrap([Message.of(b"hello")], Codec.NONE)
    if kind == "compressed":
        return numbered(number, number + 1, codec=Codec.GZIP)
    if kind == "longer":
        return wrap([Message.of(payload_of("p", number, 30))], Codec.NONE)
    return numbered(number, number + 1)


KINDS = ("alike", "alike", "alike", "a stranger", "compressed", "longer")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(KINDS)), max_size=8),
    st.integers(1, 5),
    st.booleans(),
)
def test_payloads_that_are_handed_on_together_are_those_handed_on_one_by_one(
    parts: list[tuple[int, str]], at_most: int, is_damaged: bool
) -> None:
    """In the same order, over the same offsets, under the same names; then what is wrong."""
    number, contents = 0, b""
    for skipped, kind in parts:
        contents += entries(number + skipped, kind)
        number += skipped + 2
    single = handed(contents)
    if is_damaged:
        entry = numbered(number)
        contents += entry[:-1] + b"!"
    chunk, together = Chunk(CLICKS, contents, 100), []

    while sum(part.size for part in together) < len(single):
        message = chunk.next(at_most)
        assert message is not None
        assert message.size <= at_most
        together.append(message)

    payloads = [
        (message.payload,) if isinstance(message.payload, bytes) else message.payload
        for message in together
    ]
    assert [payload for some in payloads for payload in some] == [
        message.payload for message in single
    ]
    assert merged(chunk.message_range for chunk in together if chunk.message_range) == merged(
        message.message_range for message in single if message.message_range
    )
    assert [message.next_offset for message in together][-1:] == [
        message.next_offset for message in single
    ][-1:]
    with pytest.raises(InvalidMessage) if is_damaged else nullcontext():
        assert chunk.next(at_most) is None
