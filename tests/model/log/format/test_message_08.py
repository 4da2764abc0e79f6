"""Message sets of 0.8: golden bytes, keys, tombstones, and offsets that a broker deals out."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log import vectors
from tests.support.log.vectors import COMPRESSING_08, ENTRIES_08
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.chunks import Delivery
from watchkeeper.model.clients_08.keyed_chunk import KeyedChunk
from watchkeeper.model.log.format.codecs import Codec, compress
from watchkeeper.model.log.format.errors import (
    CorruptCompression,
    DecompressedTooLarge,
    InvalidMessage,
    InvalidMessageSize,
    NestedTooDeep,
    UnknownCodec,
    UnknownMagic,
)
from watchkeeper.model.log.format.message_08 import (
    MAX_NESTING,
    KeyedMessage,
    Record,
    assign_offsets,
    encode,
    entries,
    intact_size,
    offset_after,
    records,
    wrap,
)

HELLO = ENTRIES_08[0][1]


def entry_of(rest: bytes, offset: int = 0) -> bytes:
    """An entry with a right CRC over whatever follows it."""
    message = struct.pack(">I", zlib.crc32(rest)) + rest
    return struct.pack(">qi", offset, len(message)) + message


def wrapper_of(value: bytes | None, attributes: int) -> bytes:
    """A wrapper round anything."""
    return encode([KeyedMessage(None, value, attributes)])


def read(data: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every message."""
    return [(record.offset, record.key, record.value) for record in records(data)]


# --- golden bytes ----------------------------------------------------------------------


@pytest.mark.parametrize(("numbered", "entry"), ENTRIES_08)
def test_entries_have_the_bytes_that_kafka_gives_them(
    numbered: tuple[int, KeyedMessage], entry: bytes
) -> None:
    offset, message = numbered

    assert encode([message], offset) == entry
    assert list(records(entry)) == [Record(offset, message.key, message.value)]


@given(st.lists(vectors.keyed, max_size=8), vectors.codecs_08, st.integers(0, 2**40))
def test_messages_are_read_back_with_their_offsets(
    messages: list[KeyedMessage], codec: Codec, first: int
) -> None:
    data = wrap(messages, codec, first)

    assert read(data) == [
        (offset, message.key, message.value) for offset, message in enumerate(messages, first)
    ]


@pytest.mark.parametrize("codec", COMPRESSING_08)
def test_a_wrapper_has_the_offset_of_its_last_message(codec: Codec) -> None:
    data = wrap([KeyedMessage(None, b"one"), KeyedMessage(None, b"two")], codec, 40)

    assert struct.unpack_from(">q", data) == (41,)
    assert [offset for offset, _, _ in read(data)] == [40, 41]


@pytest.mark.parametrize("codec", Codec)
def test_nothing_is_compressed_to_nothing(codec: Codec) -> None:
    assert wrap([], codec) == b""
    assert read(b"") == []


def test_no_key_and_an_empty_key_are_two_things() -> None:
    messages = [KeyedMessage(key, value) for key in (None, b"") for value in (None, b"")]

    assert [pair[1:] for pair in read(encode(messages))] == [(m.key, m.value) for m in messages]


# --- what is cut and what is wrong -----------------------------------------------------


@given(st.lists(vectors.keyed, max_size=5), st.integers(0, 300))
def test_wherever_a_set_is_cut_the_whole_entries_are_left(
    messages: list[KeyedMessage], kept_bytes: int
) -> None:
    data = encode(messages)
    ends = [0]
    for message in messages:
        ends.append(ends[-1] + len(encode([message])))
    cut = data[:kept_bytes]
    intact_bytes = max(end for end in ends if end <= len(cut))

    assert intact_size(cut) == intact_bytes
    if intact_bytes or not cut:
        assert read(cut) == read(data[:intact_bytes])
    else:
        with pytest.raises(InvalidMessageSize):
            read(cut)


@pytest.mark.parametrize("at", range(12, len(HELLO)))
def test_every_byte_but_offset_and_size_is_protected(at: int) -> None:
    damaged = HELLO[:at] + bytes([HELLO[at] ^ 1]) + HELLO[at + 1 :]

    with pytest.raises(InvalidMessage, match="byte 31"):
        read(HELLO + damaged)
    assert intact_size(HELLO + damaged + HELLO) == len(HELLO)


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 13])
def test_a_size_that_cannot_be_is_an_error(size: int) -> None:
    with pytest.raises(InvalidMessageSize, match=f"{size} bytes"):
        read(struct.pack(">qi", 0, size) + bytes(30))


def test_a_message_of_another_magic_is_an_error() -> None:
    with pytest.raises(UnknownMagic, match="magic 1"):
        read(entry_of(bytes.fromhex("01 00 ffffffff ffffffff")))


MISFITS = {
    "no key, a value that is longer": "00 00 ffffffff 00000001",
    "no key, a value that is shorter": "00 00 ffffffff 00000001 4141",
    "no key, a negative value": "00 00 ffffffff fffffffe",
    "no key, a null value and more": "00 00 ffffffff ffffffff 41",
    "a negative key": "00 00 fffffffe 00000000",
    "a key that is longer than all": "00 00 7fffffff 00000000",
    "a key that leaves no room for a value": "00 00 00000001 41 000000",
    "a key, and a value that is longer": "00 00 00000001 41 00000002 41",
    "a key, and a negative value": "00 00 00000001 41 fffffffe",
}


@pytest.mark.parametrize("what", MISFITS)
def test_lengths_that_do_not_add_up_are_an_error(what: str) -> None:
    with pytest.raises(InvalidMessage, match="do not add up"):
        read(entry_of(bytes.fromhex(MISFITS[what])))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (wrapper_of(None, 1), InvalidMessage),
        (wrapper_of(b"hello", 1), CorruptCompression),
        (wrapper_of(b"hello", 2), CorruptCompression),
        (wrapper_of(b"hello", 3), CorruptCompression),
        (wrapper_of(b"hello", 4), UnknownCodec),
        (wrapper_of(compress(Codec.GZIP, HELLO[:-1]), 1), InvalidMessageSize),
        (wrapper_of(compress(Codec.GZIP, HELLO + HELLO[:-1]), 1), InvalidMessageSize),
        (wrapper_of(compress(Codec.GZIP, HELLO[:-1] + b"!"), 1), InvalidMessage),
    ],
    ids=["null", "no gzip", "no snappy", "no lz4", "codec 4", "cut", "cut at the end", "damaged"],
)
def test_a_wrapper_is_no_better_than_what_is_in_it(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(data)
    with pytest.raises(error):
        assign_offsets(data, 0)


def test_wrappers_are_not_opened_without_end() -> None:
    data = HELLO
    for _ in range(MAX_NESTING):
        data = wrapper_of(compress(Codec.SNAPPY, data), 2)

    assert read(data) == read(HELLO)
    with pytest.raises(NestedTooDeep):
        read(wrapper_of(compress(Codec.SNAPPY, data), 2))


def test_the_limit_is_for_all_wrappers_together() -> None:
    inner = encode([KeyedMessage(None, bytes(900))])
    data = wrapper_of(compress(Codec.GZIP, inner), 1) * 3

    assert len(list(records(data, limit_bytes=3 * len(inner)))) == 3
    with pytest.raises(DecompressedTooLarge):
        list(records(data, limit_bytes=3 * len(inner) - 1))
    with pytest.raises(DecompressedTooLarge):
        assign_offsets(data, 0, limit_bytes=3 * len(inner) - 1)


# --- offsets that a broker deals out ---------------------------------------------------


@given(
    st.lists(st.tuples(st.lists(vectors.keyed, max_size=4), vectors.codecs_08), max_size=4),
    st.integers(0, 2**40),
)
def test_a_broker_numbers_messages_one_after_the_other(
    sets: list[tuple[list[KeyedMessage], Codec]], first: int
) -> None:
    data = b"".join(wrap(messages, codec) for messages, codec in sets)
    sent = [message for messages, _ in sets for message in messages]

    found = assign_offsets(data, first)

    assert read(found.data) == [
        (offset, message.key, message.value) for offset, message in enumerate(sent, first)
    ]
    assert found.next_offset == first + len(sent)
    assert assign_offsets(found.data, first) == found


@given(
    st.lists(st.tuples(st.lists(vectors.keyed, max_size=4), vectors.codecs_08), max_size=4),
    st.integers(0, 2**40),
    st.data(),
)
def test_the_offset_after_a_set_is_that_after_its_last_whole_entry(
    sets: list[tuple[list[KeyedMessage], Codec]], first: int, data: st.DataObject
) -> None:
    """Also of a set that is cut anywhere, and of one with a damaged message."""
    whole = assign_offsets(b"".join(wrap(messages, codec) for messages, codec in sets), first)
    cut = whole.data[: data.draw(st.integers(0, len(whole.data)))]
    size_bytes = intact_size(cut)
    last = [entry[2] for entry in entries(cut[:size_bytes])][-1:]

    assert offset_after(cut) == (last[0] + 1 if last else None)
    if whole.data:
        assert offset_after(whole.data) == whole.next_offset
        assert offset_after(whole.data[:-1] + bytes([whole.data[-1] ^ 1])) == whole.next_offset


@pytest.mark.parametrize("size", [-1, 0, 13])
def test_an_entry_of_an_impossible_size_ends_a_set(size: int) -> None:
    impossible = struct.pack(">qi", 9, size) + bytes(40)

    assert offset_after(impossible) is None
    assert offset_after(encode([KeyedMessage(None, b"x")], 5) + impossible) == 6


@pytest.mark.parametrize("codec", [Codec.NONE, *COMPRESSING_08])
def test_a_fetched_set_is_handed_on_from_the_offset_that_was_requested(codec: Codec) -> None:
    sent = [KeyedMessage(b"k%d" % number, b"v%d" % number) for number in range(4)]
    sent.append(KeyedMessage(b"k0", None))
    chunk = KeyedChunk(Partition("clicks", "0"), wrap(sent, codec, 70), 72)

    found = []
    while (delivery := chunk.next(10)) is not None:
        found.append((delivery.offset, delivery.key, delivery.payload, delivery.size))

    assert found == [(72, b"k2", b"v2", 1), (73, b"k3", b"v3", 1), (74, b"k0", None, 1)]


def test_a_damaged_message_is_an_error_behind_those_before_it() -> None:
    data = bytearray(encode([KeyedMessage(None, b"one"), KeyedMessage(None, b"two")], 3))
    data[-1] ^= 1
    chunk = KeyedChunk(Partition("clicks", "0"), bytes(data), 3)

    assert chunk.next(1) == Delivery(Partition("clicks", "0"), 3, 4, b"one")
    with pytest.raises(InvalidMessage, match="offset 4: its CRC is wrong"):
        chunk.next(1)


def test_a_plain_entry_keeps_its_bytes_but_for_the_offset() -> None:
    found = assign_offsets(HELLO + HELLO, 5)

    assert found.data == b"".join(struct.pack(">q", n) + HELLO[8:] for n in (5, 6))


@pytest.mark.parametrize("codec", COMPRESSING_08)
def test_what_was_compressed_stays_compressed(codec: Codec) -> None:
    messages = [KeyedMessage(b"k", bytes(100))] * 10

    found = assign_offsets(wrap(messages, codec), 90)

    assert found.data == wrap(messages, codec, 90)


def test_wrappers_within_a_wrapper_are_dissolved() -> None:
    inner = wrap([KeyedMessage(None, b"one"), KeyedMessage(None, b"two")], Codec.SNAPPY)
    data = wrapper_of(compress(Codec.GZIP, inner + HELLO), 1)

    found = assign_offsets(data, 3)

    messages = [KeyedMessage(None, value) for value in (b"one", b"two", b"hello")]
    assert found.data == wrap(messages, Codec.GZIP, 3)


def test_a_wrapper_round_nothing_takes_no_offset() -> None:
    nothing = wrapper_of(compress(Codec.GZIP, b""), 1)

    assert assign_offsets(nothing + HELLO, 3) == assign_offsets(HELLO, 3)


def test_the_part_of_an_entry_at_the_end_is_not_appended() -> None:
    assert assign_offsets(HELLO + HELLO[:-1], 3) == assign_offsets(HELLO, 3)
