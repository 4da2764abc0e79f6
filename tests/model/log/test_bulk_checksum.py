"""Many messages checked at once are the same to a broker as one checked after the other."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.log.message_sets import damaged, sets, some_blocks
from watchkeeper.model.log.format import bulk_checksum, message_set_07
from watchkeeper.model.log.format.bulk_checksum import BEGIN, ONES, intact_prefix
from watchkeeper.model.log.format.codecs import Codec, compress
from watchkeeper.model.log.format.errors import InvalidMessage, LogError
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import CheckedSet, check_set, encode, payloads
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.validation import check_for_log, check_sets_for_log

LARGEST = 10**6
AT_ONCE, ONE_BY_ONE = 0, 10**9
"""From how many messages on they are checked at once."""


def outcome(data: bytes, many: int, largest: int, opens_wrappers: bool) -> tuple[object, ...]:
    """What a check says of a set: what may be appended, or the error in full."""
    with patch.object(message_set_07, "MANY_MESSAGES", many):
        try:
            found = check_set(data, opens_wrappers=opens_wrappers, largest_payload_bytes=largest)
        except LogError as error:
            return type(error), str(error)
    return found.contents, found.message_count, found.size_bytes


def check_both(data: bytes, largest: int = LARGEST, *, opens_wrappers: bool = True) -> None:
    """Check that both ways say the same of a set."""
    assert outcome(data, AT_ONCE, largest, opens_wrappers) == outcome(
        data, ONE_BY_ONE, largest, opens_wrappers
    )


def numbered(sizes: list[int]) -> bytes:
    """Messages of these sizes, no two of them equal."""
    return encode(
        Message.of((b"%d," % number * size)[:size]) for number, size in enumerate(sizes)
    )


# --- both ways are one -----------------------------------------------------------------


@settings(max_examples=300)
@given(damaged(), some_blocks, st.sampled_from([0, 5, 20, LARGEST]), st.booleans())
def test_whatever_a_set_holds_both_ways_say_the_same(
    data: bytes, block_bytes: int, largest: int, opens_wrappers: bool
) -> None:
    with patch.object(bulk_checksum, "BLOCK_BYTES", block_bytes):
        check_both(data, largest, opens_wrappers=opens_wrappers)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=30), some_blocks, st.data())
def test_every_changed_bit_of_a_payload_or_crc_is_seen(
    sizes: list[int], block_bytes: int, data: st.DataObject
) -> None:
    contents = numbered(sizes)
    which = data.draw(st.integers(0, len(sizes) - 1))
    begin = sum(sizes[:which]) + 10 * which
    at = begin + data.draw(st.integers(6, 9 + sizes[which]))
    broken = bytearray(contents)
    broken[at] ^= 1 << data.draw(st.integers(0, 7))

    with patch.object(bulk_checksum, "BLOCK_BYTES", block_bytes):
        found = intact_prefix(bytes(broken), largest_payload_bytes=LARGEST)

    assert found.size_bytes <= begin
    with pytest.raises(InvalidMessage, match=f"offset {begin}:"):
        check_set(bytes(broken), opens_wrappers=True, largest_payload_bytes=LARGEST)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=30))
def test_sets_of_plain_messages_are_seen_to_their_end(sizes: list[int]) -> None:
    contents = numbered(sizes)

    found = intact_prefix(contents, largest_payload_bytes=60)

    assert found == (len(sizes), len(contents))


# --- several sets ----------------------------------------------------------------------


def one_by_one(
    log: LogSettings, several: list[bytes]
) -> tuple[list[CheckedSet], tuple[object, str] | None]:
    """Return the outcome of checking the sets one after the other, up to the first refusal."""
    found: list[CheckedSet] = []
    for data in several:
        try:
            found.append(check_for_log(log, data))
        except LogError as error:
            return found, (type(error), str(error))
    return found, None


@settings(max_examples=300)
@example([b"\0", b"\0"], 10, 0, 0)
@given(
    st.lists(st.one_of(sets, sets, damaged()), min_size=1, max_size=6),
    some_blocks,
    st.sampled_from([0, 5, 20, LARGEST]),
    st.sampled_from([AT_ONCE, 20]),
)
def test_sets_are_checked_together_as_if_alone(
    several: list[bytes], block_bytes: int, largest: int, many: int
) -> None:
    log = LogSettings(largest_payload_bytes=largest)
    with patch.object(bulk_checksum, "BLOCK_BYTES", block_bytes):
        expected = one_by_one(log, several)
        with patch.object(message_set_07, "MANY_MESSAGES", many):
            found, error = check_sets_for_log(log, several)

    assert (found, error and (type(error), str(error))) == expected


@given(st.lists(st.integers(0, 60), min_size=2, max_size=30), st.data())
def test_an_entry_that_goes_on_in_the_next_set_is_none(
    sizes: list[int], data: st.DataObject
) -> None:
    """Whole together is not enough: each set has to be."""
    contents = numbered(sizes)
    ends = [sum(sizes[:count]) + 10 * count for count in range(len(sizes) + 1)]
    at = data.draw(st.integers(1, len(contents) - 1))

    counts = bulk_checksum.entry_counts([contents[:at], contents[at:]], largest_payload_bytes=60)

    if at in ends:
        assert counts == [ends.index(at), len(sizes) - ends.index(at)]
    else:
        assert counts is None


def test_small_entries_at_the_end_are_not_taken_for_a_part_of_one() -> None:
    """All that there are of the size of the first one are not all that there are."""
    contents = numbered([38, 0])

    assert bulk_checksum.entry_counts(
        [contents[:48], contents[48:]], largest_payload_bytes=LARGEST
    ) == [1, 1]


def test_sets_that_are_checked_together_are_seen_in_one_pass() -> None:
    """Of five sets of two hundred messages none is looked at by itself."""
    several = [numbered([20 + at * 37 % 160 for at in range(200)])] * 5
    with patch.object(message_set_07, "check_set", side_effect=AssertionError):
        found, error = check_sets_for_log(LogSettings(), several)

    assert error is None
    assert [item.message_count for item in found] == [200] * 5


# --- sets of some size -----------------------------------------------------------------


@pytest.mark.parametrize("size_of", [lambda at: 100, lambda at: 20 + at * 37 % 160])
def test_a_large_set_is_checked_block_by_block(size_of: Callable[[int], int]) -> None:
    sizes = [size_of(at) for at in range(6000)]
    contents = numbered(sizes)
    assert len(contents) > 2 * bulk_checksum.BLOCK_BYTES

    assert intact_prefix(contents, largest_payload_bytes=LARGEST) == (6000, len(contents))

    broken = bytearray(contents)
    broken[-1] ^= 1
    found = intact_prefix(bytes(broken), largest_payload_bytes=LARGEST)
    assert len(contents) - 2 * bulk_checksum.BLOCK_BYTES < found.size_bytes < len(contents)
    check_both(bytes(broken))


def test_a_message_in_a_payload_is_not_taken_for_one() -> None:
    inner = encode([Message.of(b"inside")])
    data = encode([Message.of(b"before"), Message.of(b"--" + inner), Message.of(b"after")])

    assert intact_prefix(data, largest_payload_bytes=LARGEST) == (3, len(data))
    check_both(data)


def test_payloads_full_of_messages_are_left_to_others_at_once() -> None:
    inner = encode([Message.of(b"inside")])
    data = encode(Message.of(b"-" * (at % 7) + inner) for at in range(1, 99))

    assert intact_prefix(data, largest_payload_bytes=LARGEST).message_count == 1
    check_both(data)


def test_messages_larger_than_a_block_are_left_to_others() -> None:
    data = numbered([30, 31, bulk_checksum.BLOCK_BYTES, 30])

    assert intact_prefix(data, largest_payload_bytes=LARGEST).message_count == 2
    check_both(data)


WRAPPED = compress(Codec.GZIP, encode([Message.of(b"one"), Message.of(b"two")]))
OF_ONE_SIZE = {
    "of magic 0": [Message.of(b"first format", magic=0)] * 50,
    "wrappers": [Message.of(WRAPPED, codec=Codec.GZIP)] * 50,
    "a wrapper among them": [Message.of(bytes(len(WRAPPED)))] * 49
    + [Message.of(WRAPPED, codec=Codec.GZIP)],
    "with attributes": [Message(b"odd", zlib.crc32(b"odd"), 0x40)] * 50,
}


@pytest.mark.parametrize("what", OF_ONE_SIZE)
def test_entries_of_one_size_need_not_be_plain(what: str) -> None:
    check_both(encode(OF_ONE_SIZE[what]))


# --- what one pass can tell ------------------------------------------------------------


def test_the_word_that_begins_a_message_makes_the_register_what_it_is_at_first() -> None:
    assert zlib.crc32(BEGIN.to_bytes(4, "little"), ONES) == 0


def after_zeros(register: int, count: int) -> int:
    """What becomes of a register without a message in it."""
    return zlib.crc32(bytes(count), register ^ ONES) ^ ONES


def test_wrong_crcs_that_were_made_to_hide_each_other_are_found_by_who_reads_them() -> None:
    """The page on the log says so; chance does this once in 2**32 times."""
    first, second = Message.of(b"first"), Message.of(b"second")
    wrong = Message(first.payload, first.crc ^ 0xBAD)
    hiding = Message(second.payload, second.crc ^ after_zeros(0xBAD, 10 + len(second.payload)))
    data = encode([wrong, hiding])

    assert intact_prefix(data, largest_payload_bytes=LARGEST).message_count == 2
    with pytest.raises(InvalidMessage):
        payloads(data)
    assert (
        intact_prefix(encode([wrong, second]), largest_payload_bytes=LARGEST).message_count == 0
    )
    assert (
        intact_prefix(encode([first, hiding]), largest_payload_bytes=LARGEST).message_count == 0
    )
