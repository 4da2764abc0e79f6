"""Message sets of 0.7: golden bytes, Kafka's own tests as tables, and what is refused."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log import vectors
from tests.support.log.vectors import COMPRESSING, ENTRIES, SNAPPY_FOOBAR, unhex
from watchkeeper.model.log.format import errors
from watchkeeper.model.log.format.codecs import Codec, compress, decompress
from watchkeeper.model.log.format.errors import (
    CorruptCompression,
    DecompressedTooLarge,
    InvalidFetchSize,
    InvalidMessage,
    InvalidMessageSize,
    LogError,
    MessageSizeTooLarge,
    NestedTooDeep,
    Unknown,
    UnknownCodec,
    UnknownMagic,
    error_of,
)
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import (
    MAX_NESTING,
    check_set,
    encode,
    intact_size,
    messages_in,
    payloads,
    shallow,
    valid_size,
    wrap,
)

HELLO = vectors.MAGIC_1_HELLO
READERS: dict[str, Callable[[bytes], Any]] = {
    "payloads": payloads,
    "deep": lambda data: list(messages_in(data)),
    "checked": lambda data: check_set(data, opens_wrappers=True, largest_payload_bytes=10**6),
}
"""Whatever looks at every message of a set."""


def set_of(*texts: str) -> bytes:
    """A message set with these payloads."""
    return encode(Message.of(text.encode()) for text in texts)


def wrapper_of(payload: bytes, attributes: int) -> bytes:
    """An entry with a right CRC and these attributes, whatever the payload is."""
    return encode([Message(payload, zlib.crc32(payload), attributes)])


# --- golden bytes ----------------------------------------------------------------------


@pytest.mark.parametrize(("message", "entry"), ENTRIES)
def test_entries_have_the_bytes_that_kafka_gives_them(message: Message, entry: bytes) -> None:
    assert encode([message]) == entry
    assert [item.message for item in shallow(entry)] == [message]
    assert payloads(entry) == [message.payload]


def test_a_log_of_the_first_format_is_read() -> None:
    entry = ENTRIES[-1][1]
    fixture = entry * 100

    assert payloads(fixture) == [b"x" * 100] * 100
    assert intact_size(fixture) == len(fixture) == 100 * 109


def test_both_formats_stand_in_one_set() -> None:
    both = [message for message, _ in ENTRIES]

    assert [entry.message for entry in shallow(encode(both))] == both


def test_snappy_has_the_framing_of_snappy_java() -> None:
    assert compress(Codec.SNAPPY, b"foobar\n") == SNAPPY_FOOBAR


@pytest.mark.parametrize("data", [SNAPPY_FOOBAR, SNAPPY_FOOBAR[20:]], ids=["framed", "bare"])
def test_snappy_is_read_with_the_framing_and_without(data: bytes) -> None:
    assert decompress(Codec.SNAPPY, data, limit_bytes=7, where="here") == b"foobar\n"


def test_gzip_is_gzip_without_a_time() -> None:
    data = compress(Codec.GZIP, b"foobar\n")

    assert gzip.decompress(data) == b"foobar\n"
    assert data[:10] == unhex("1f8b 08 00 00000000 00 ff")


def test_gzip_of_others_is_read() -> None:
    data = gzip.compress(b"foobar\n", mtime=1_700_000_000)

    assert decompress(Codec.GZIP, data, limit_bytes=7, where="here") == b"foobar\n"


# --- a message -------------------------------------------------------------------------


def test_a_message_whose_crc_was_overwritten_is_not_valid() -> None:
    entry = bytearray(HELLO)
    entry[6:10] = unhex("12345678")

    (found,) = shallow(bytes(entry))

    assert not found.message.is_valid
    assert found.message.crc == 0x12345678
    assert found.message.payload == b"hello"


def test_messages_are_equal_by_their_bytes() -> None:
    assert Message.of(b"one") == Message.of(b"one")
    assert Message.of(b"one") != Message.of(b"one", magic=0)
    assert Message.of(b"one") != Message.of(b"two")
    assert Message.of(b"one").is_valid


@given(vectors.messages)
def test_a_message_is_written_back_as_it_was_read(message: Message) -> None:
    data = encode([message])

    assert encode(entry.message for entry in shallow(data)) == data


@pytest.mark.parametrize("attributes", [0x04, 0xFC])
def test_bits_of_the_attributes_that_mean_nothing_are_kept(attributes: int) -> None:
    data = wrapper_of(b"hello", attributes)

    assert payloads(data) == [b"hello"]
    assert encode(entry.message for entry in shallow(data)) == data


# --- a set -----------------------------------------------------------------------------


def test_offsets_are_positions_in_bytes() -> None:
    found = list(messages_in(set_of("test", "42", ""), 1000))

    assert [(message.offset, message.next_offset) for message in found] == [
        (1000, 1014),
        (1014, 1026),
        (1026, 1036),
    ]


@pytest.mark.parametrize("read", [payloads, lambda data: list(messages_in(data))])
def test_an_empty_set_has_no_messages(read: Callable[[bytes], list[Any]]) -> None:
    assert read(b"") == []
    assert valid_size(b"") == intact_size(b"") == 0
    assert check_set(b"", opens_wrappers=True, largest_payload_bytes=1).message_count == 0


@pytest.mark.parametrize("stray", [b"", b"\0", b"\0\0", HELLO[:4], HELLO[:5], HELLO[:-1]])
def test_the_part_of_an_entry_at_the_end_is_dropped(stray: bytes) -> None:
    two = set_of("one", "two")

    assert payloads(two + stray) == [b"one", b"two"]
    assert [message.next_offset for message in messages_in(two + stray)] == [13, 26]
    assert valid_size(two + stray) == intact_size(two + stray) == len(two)
    kept = check_set(two + stray, opens_wrappers=True, largest_payload_bytes=3)
    assert (kept.contents, kept.message_count, kept.size_bytes) == (two, 2, 26)


@pytest.mark.parametrize("kept_bytes", [1, 4, 5, 10, 29])
@pytest.mark.parametrize("read", [*READERS.values(), valid_size])
def test_a_set_without_a_whole_entry_is_an_error(
    read: Callable[[bytes], Any], kept_bytes: int
) -> None:
    """Were it taken for nothing, a consumer would ask for the same for ever."""
    cut = encode([Message.of(b"x" * 20)])[:kept_bytes]

    with pytest.raises(InvalidMessageSize, match="fetch more at once"):
        read(cut)
    assert intact_size(cut) == 0


def fetched(log: bytes, fetch_bytes: int) -> list[int]:
    """Return the sizes of the payloads of a log, read with a fetch size."""
    sizes: list[int] = []
    offset = 0
    while data := log[offset : offset + fetch_bytes]:
        sizes += map(len, payloads(data))
        offset += valid_size(data)
    return sizes


def test_a_message_that_is_larger_than_a_fetch_ends_the_reading_with_an_error() -> None:
    """With messages of 20, 20, 200 and 20 bytes and fetches of 100, others stood still."""
    log = encode(Message.of(bytes(size)) for size in (20, 20, 200, 20))

    assert fetched(log, 210) == [20, 20, 200, 20]
    with pytest.raises(InvalidMessageSize, match="100 of 210 bytes of an entry"):
        fetched(log, 100)


def test_a_size_that_is_wrong_is_an_error_each_time() -> None:
    """As in a log whose only entry was overwritten, and read twice."""
    damaged = struct.pack(">i", 1000) + HELLO[4:]

    for _ in range(2):
        with pytest.raises(InvalidMessageSize, match="15 of 1004 bytes"):
            payloads(damaged)


@pytest.mark.parametrize("size", [-(2**31), -5, -4, -1, 0, 4])
@pytest.mark.parametrize("before", [b"", HELLO], ids=["first", "second"])
@pytest.mark.parametrize("read", [*READERS.values(), valid_size])
def test_a_size_that_cannot_be_is_an_error(
    read: Callable[[bytes], Any], before: bytes, size: int
) -> None:
    with pytest.raises(InvalidMessageSize, match=f"offset {len(before)}: .*{size} bytes"):
        read(before + struct.pack(">i", size) + bytes(20))


def test_a_message_of_the_second_format_has_attributes() -> None:
    with pytest.raises(InvalidMessageSize, match="has 5 bytes, and the least is 6"):
        payloads(unhex("00000005 01 00000000"))


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_damaged_message_is_an_error_that_says_where(read: Callable[[bytes], Any]) -> None:
    damaged = set_of("one", "two")[:-1] + b"!"

    with pytest.raises(InvalidMessage, match="offset 13: a message is damaged"):
        read(damaged)


def test_a_message_in_another_format_is_an_error() -> None:
    with pytest.raises(UnknownMagic, match="magic 2"):
        payloads(HELLO[:4] + b"\2" + HELLO[5:])


@pytest.mark.parametrize("garbage", [0, 2, 4, 5, 6])
def test_zeros_at_the_end_of_a_file_are_no_messages(garbage: int) -> None:
    data = set_of("one", "two")
    file = data + bytes(garbage)

    intact_bytes = intact_size(file)

    assert len(file) - intact_bytes == garbage
    assert payloads(file[:intact_bytes]) == payloads(data)


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: entry[:-1] + b"!",
        lambda entry: entry[:4] + b"\7" + entry[5:],
        lambda entry: unhex("ffffffff") + entry[4:],
        lambda entry: unhex("7fffffff") + entry[4:],
        lambda entry: entry[:-1],
    ],
    ids=["payload", "magic", "negative size", "large size", "cut"],
)
def test_recovery_stops_at_the_first_damage(damage: Callable[[bytes], bytes]) -> None:
    data = HELLO + damage(HELLO) + HELLO

    assert intact_size(data) == len(HELLO)


@given(st.lists(vectors.messages, max_size=8), st.integers(0, 400))
def test_wherever_a_set_is_cut_the_whole_entries_are_left(
    messages: list[Message], kept_bytes: int
) -> None:
    data = encode(messages)
    ends = [0, *(message.next_offset for message in shallow(data))]
    cut = data[:kept_bytes]
    intact_bytes = max(end for end in ends if end <= len(cut))

    assert intact_size(cut) == intact_bytes
    if intact_bytes or not cut:
        assert valid_size(cut) == intact_bytes
        assert payloads(cut) == payloads(data[:intact_bytes])


def outcome(read: Callable[[bytes], Any], data: bytes) -> Any:
    """What reading gives: payloads, or the error's sentence."""
    try:
        return read(data)
    except LogError as error:
        return str(error)


@given(st.lists(vectors.messages, max_size=8), st.integers(0, 399), st.binary(max_size=6))
def test_the_fast_way_and_the_slow_way_read_the_same(
    messages: list[Message], at: int, damage: bytes
) -> None:
    """Plain entries are read by a loop of their own, up to the first that is not plain."""
    data = encode(messages)
    data = data[:at] + damage + data[at + len(damage) :]

    slow = outcome(lambda data: [message.payload for message in messages_in(data)], data)

    assert outcome(payloads, data) == slow


# --- compressed ------------------------------------------------------------------------


@given(st.lists(vectors.payloads, max_size=8), vectors.codecs)
def test_what_was_compressed_is_read_back(texts: list[bytes], codec: Codec) -> None:
    data = wrap(map(Message.of, texts), codec)

    assert payloads(data) == texts
    assert [message.payload for message in messages_in(data)] == texts
    assert check_set(data, opens_wrappers=True, largest_payload_bytes=10**6).message_count == len(
        texts
    )


@pytest.mark.parametrize("codec", Codec)
def test_nothing_is_compressed_to_nothing(codec: Codec) -> None:
    assert wrap([], codec) == b""


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_wrapper_round_nothing_is_passed_over(codec: Codec) -> None:
    """No more is made, but old producers did, and others have to get past it."""
    nothing = wrapper_of(compress(codec, b""), int(codec))

    assert payloads(nothing + HELLO) == [b"hello"]
    assert [
        (message.offset, message.next_offset) for message in messages_in(nothing + HELLO)
    ] == [(len(nothing), len(nothing) + len(HELLO))]
    assert valid_size(nothing) == len(nothing)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_what_is_compressed_has_the_offset_of_its_wrapper(codec: Codec) -> None:
    wrapper = wrap(map(Message.of, (b"one", b"two", b"three")), codec)
    end = 100 + len(wrapper)

    found = list(messages_in(wrapper + HELLO, 100))

    assert [(message.offset, message.next_offset) for message in found] == [
        (100, 100),
        (100, 100),
        (100, end),
        (end, end + len(HELLO)),
    ]


@given(st.lists(st.lists(vectors.payloads, max_size=4), max_size=5), vectors.codecs)
def test_empty_and_full_sets_one_after_the_other(sets: list[list[bytes]], codec: Codec) -> None:
    """The messages of all, twice over; they end with the data; every wrapper's end is there."""
    data = b"".join(wrap(map(Message.of, texts), codec) for texts in sets)
    found = list(messages_in(data))

    assert [message.payload for message in found] == [text for texts in sets for text in texts]
    assert found == list(messages_in(data))
    assert [message.next_offset for message in found[-1:]] == ([len(data)] if data else [])
    assert {message.next_offset for message in shallow(data)} <= {
        message.next_offset for message in found
    }


@pytest.mark.parametrize("codec", COMPRESSING)
def test_large_sets_are_compressed_in_several_blocks(codec: Codec) -> None:
    texts = [bytes([number % 251]) * 1000 for number in range(200)]

    assert payloads(wrap(map(Message.of, texts), codec)) == texts


def test_a_block_of_snappy_holds_32_kib_at_most() -> None:
    data = compress(Codec.SNAPPY, bytes(2 * 32 * 1024 + 1))
    at, sizes = 16, []
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        block = data[at + 4 : at + 4 + size]
        sizes.append(len(decompress(Codec.SNAPPY, block, limit_bytes=10**6, where="here")))
        at += 4 + size

    assert sizes == [32 * 1024, 32 * 1024, 1]


def nested(depth: int, codec: Codec) -> bytes:
    """A message within nested wrappers, and one beside each of them."""
    data = HELLO
    for _ in range(depth):
        data = wrapper_of(compress(codec, data), int(codec)) + HELLO
    return data


@pytest.mark.parametrize("codec", COMPRESSING)
def test_wrappers_within_wrappers_are_opened(codec: Codec) -> None:
    data = nested(MAX_NESTING, codec)
    outer = len(data) - len(HELLO)

    assert payloads(data) == [b"hello"] * (MAX_NESTING + 1)
    assert [message.next_offset for message in messages_in(data)] == [
        *[0] * (MAX_NESTING - 1),
        outer,
        len(data),
    ]


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_wrappers_are_not_opened_without_end(read: Callable[[bytes], Any]) -> None:
    with pytest.raises(NestedTooDeep, match=f"deeper than {MAX_NESTING}"):
        read(nested(MAX_NESTING + 1, Codec.GZIP))


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_nothing_is_cut_inside_a_wrapper(read: Callable[[bytes], Any], codec: Codec) -> None:
    """The cut happened before the compression, and no other check detects it."""
    cut = wrapper_of(compress(codec, HELLO + HELLO[:7]), int(codec))

    with pytest.raises(InvalidMessageSize, match="offset 15 of what is compressed at offset 0"):
        read(cut)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_damaged_message_inside_a_wrapper_is_an_error(codec: Codec) -> None:
    data = wrapper_of(compress(codec, HELLO[:-1] + b"!"), int(codec))

    with pytest.raises(InvalidMessage, match="offset 0 of what is compressed at offset 0"):
        payloads(data)
    with pytest.raises(InvalidMessage):
        check_set(data, opens_wrappers=True, largest_payload_bytes=100)
    assert check_set(data, opens_wrappers=False, largest_payload_bytes=100).message_count == 1


def test_a_codec_that_no_reader_knows_is_an_error() -> None:
    data = wrapper_of(b"hello", 3)

    with pytest.raises(UnknownCodec, match=r"codec 3; known are 0 \(none\), 1 \(gzip\)"):
        payloads(data)
    assert check_set(data, opens_wrappers=False, largest_payload_bytes=100).message_count == 1


GZIPPED = compress(Codec.GZIP, b"hello")
SNAPPED = compress(Codec.SNAPPY, b"hello")
DAMAGED = {
    "gzip, nothing": (Codec.GZIP, b""),
    "gzip, no gzip": (Codec.GZIP, b"hello"),
    "gzip, cut": (Codec.GZIP, GZIPPED[:-1]),
    "gzip, wrong CRC": (Codec.GZIP, GZIPPED[:-8] + bytes(8)),
    "gzip, more after it": (Codec.GZIP, GZIPPED + b"!"),
    "gzip, two of them": (Codec.GZIP, GZIPPED + GZIPPED),
    "snappy, nothing": (Codec.SNAPPY, b""),
    "snappy, no snappy": (Codec.SNAPPY, b"hello"),
    "snappy, only the magic": (Codec.SNAPPY, SNAPPED[:8]),
    "snappy, cut": (Codec.SNAPPY, SNAPPED[:-1]),
    "snappy, a cut size": (Codec.SNAPPY, SNAPPED + b"\0"),
    "snappy, a size of 0": (Codec.SNAPPY, SNAPPED + bytes(4)),
    "snappy, a negative size": (Codec.SNAPPY, SNAPPED + b"\xff" * 4),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_compression_is_an_error(what: str) -> None:
    codec, data = DAMAGED[what]

    with pytest.raises(CorruptCompression, match=r"^here: .*cannot be decompressed"):
        decompress(codec, data, limit_bytes=1000, where="here")


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_limit_is_a_limit(codec: Codec) -> None:
    data = compress(codec, bytes(100_000))

    assert len(decompress(codec, data, limit_bytes=100_000, where="here")) == 100_000
    with pytest.raises(DecompressedTooLarge, match=codec.name.lower()):
        decompress(codec, data, limit_bytes=99_999, where="here")


@pytest.mark.parametrize("codec", COMPRESSING)
def test_what_is_beyond_a_limit_is_not_even_decompressed(codec: Codec) -> None:
    bomb = compress(codec, bytes(10_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(DecompressedTooLarge):
            decompress(codec, bomb, limit_bytes=1000, where="here")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 200_000


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize(
    "read", [payloads, lambda data, **limit: list(messages_in(data, **limit))]
)
def test_the_limit_is_for_all_wrappers_together(
    read: Callable[..., list[Any]], codec: Codec
) -> None:
    inner = encode([Message.of(bytes(900))])
    data = wrapper_of(compress(codec, inner), int(codec)) * 3

    assert len(read(data, limit_bytes=3 * len(inner))) == 3
    with pytest.raises(DecompressedTooLarge):
        read(data, limit_bytes=3 * len(inner) - 1)


def test_a_snappy_block_that_lies_about_its_size_takes_no_memory() -> None:
    claims_4_gib = unhex("ffffffff0f")

    with pytest.raises(DecompressedTooLarge, match="4294967295 bytes"):
        decompress(Codec.SNAPPY, claims_4_gib, limit_bytes=1000, where="here")


# --- what a broker appends -------------------------------------------------------------


def test_a_payload_that_is_too_large_is_refused() -> None:
    fits, does_not = set_of("You", "bethe"), set_of("change")

    assert check_set(fits, opens_wrappers=True, largest_payload_bytes=5).message_count == 2
    with pytest.raises(MessageSizeTooLarge, match="6 bytes, 5 are allowed"):
        check_set(does_not, opens_wrappers=True, largest_payload_bytes=5)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_the_size_of_a_wrapper_is_what_counts(codec: Codec) -> None:
    """It is compressed that it is stored, so what is in it may be larger."""
    data = wrap([Message.of(bytes(5000))], codec)

    assert len(data) < 1000
    assert check_set(data, opens_wrappers=True, largest_payload_bytes=1000).message_count == 1
    with pytest.raises(MessageSizeTooLarge):
        check_set(data, opens_wrappers=True, largest_payload_bytes=20)


@pytest.mark.parametrize("opens_wrappers", [False, True])
def test_every_message_is_checked_before_it_is_appended(opens_wrappers: bool) -> None:
    """And not only the first."""
    with pytest.raises(InvalidMessage, match="offset 26"):
        check_set(
            set_of("one", "two", "six")[:-1] + b"!",
            opens_wrappers=opens_wrappers,
            largest_payload_bytes=3,
        )


def test_what_is_counted_is_what_is_opened() -> None:
    data = wrap([Message.of(b"one")] * 3, Codec.GZIP) + HELLO

    assert check_set(data, opens_wrappers=True, largest_payload_bytes=100).message_count == 4
    assert check_set(data, opens_wrappers=False, largest_payload_bytes=100).message_count == 2


# --- codes -----------------------------------------------------------------------------

WIRE_CODES = {
    -1: "Unknown",
    1: "OffsetOutOfRange",
    2: "InvalidMessage",
    3: "WrongPartition",
    4: "InvalidFetchSize",
}


@pytest.mark.parametrize("code", WIRE_CODES)
def test_codes_are_those_of_the_wire(code: int) -> None:
    assert error_of(code).__name__ == WIRE_CODES[code]
    assert error_of(code).code == code


@pytest.mark.parametrize("code", [-2, 5, 32767])
def test_a_code_that_no_reader_knows_is_unknown(code: int) -> None:
    assert error_of(code) is Unknown


def test_every_error_has_a_code_of_the_wire_and_a_sentence() -> None:
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    named = [kind for kind in kinds if issubclass(kind, LogError) and kind is not LogError]

    assert {kind.code for kind in named} == set(WIRE_CODES)
    assert len({kind.meaning for kind in named}) == len(named)
    assert InvalidMessageSize.code == InvalidFetchSize.code
    assert str(named[0]("offset 7", "why")) == f"offset 7: {named[0].meaning} (why)"
