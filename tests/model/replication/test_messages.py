"""Records as messages of 0.8."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.errors import InvalidMessage
from watchkeeper.model.log.format.message_08 import KeyedMessage, assign_offsets, encode, wrap
from watchkeeper.model.replication.messages import (
    ENTRY_BYTES,
    EPOCH,
    VALUE_BYTES,
    decoded,
    encoded,
    message_ranges,
    sent_value,
    size_of,
    value_of,
)
from watchkeeper.model.replication.replica_log import HIDDEN, NO_EPOCH, NO_NUMBER, Record

RECORDS = st.lists(
    st.builds(
        Record,
        st.integers(-1, 2**31 - 1),
        st.integers(0, 2**63 - 1),
        st.just(b"") | st.binary(max_size=300),
    ),
    max_size=5,
)


@given(RECORDS, st.integers(0, 2**40))
def test_records_are_messages_of_the_format(records: list[Record], first: int) -> None:
    """Byte for byte what the encoder of the format makes, and read back by its reader."""
    messages = [
        KeyedMessage(EPOCH.pack(epoch) + message, value_of(number))
        for epoch, number, message in records
    ]
    data = encoded(records, first)
    assert data == encode(messages, first)
    assert len(data) == size_of(records)
    assert size_of([Record(1, 2)] * 3) == 3 * ENTRY_BYTES
    assert list(decoded(data)) == records


FOREIGN = st.builds(
    KeyedMessage,
    st.none() | st.binary(max_size=9) | st.just(EPOCH.pack(7)),
    st.none() | st.binary(max_size=9) | st.just(value_of(3)) | st.just(bytes(VALUE_BYTES + 1)),
)
SETS = st.lists(
    st.builds(
        wrap, st.lists(FOREIGN, min_size=1, max_size=3), st.sampled_from([Codec.NONE, Codec.GZIP])
    ),
    max_size=4,
).map(b"".join)


@given(SETS, st.integers(0, 2**40))
def test_messages_of_other_programs_are_kept_byte_for_byte(data: bytes, first: int) -> None:
    """With their offsets: those in a compressed message before its last one have no entry."""
    numbered, end = assign_offsets(data, first)
    found = list(decoded(numbered, first))
    assert encoded(found, first) == numbered
    assert len(found) == end - first
    assert size_of(found) == len(numbered)


@pytest.mark.parametrize(
    "message",
    [
        KeyedMessage(None, value_of(1)),
        KeyedMessage(b"123", value_of(1)),
        KeyedMessage(EPOCH.pack(1), None),
        KeyedMessage(EPOCH.pack(1), b"123"),
        KeyedMessage(EPOCH.pack(1), value_of(1)[:-1] + b"1"),
        KeyedMessage(EPOCH.pack(1), value_of(-1)),
        KeyedMessage(EPOCH.pack(1), value_of(1), attributes=8),
    ],
)
def test_other_messages_have_no_number(message: KeyedMessage) -> None:
    """A message that looks like a record in part is none."""
    assert list(decoded(encode([message]))) == [Record(NO_EPOCH, NO_NUMBER, message.encode())]


def test_offsets_are_left_out_up_to_a_limit() -> None:
    """An offset is covered by no CRC: one that is far away is taken for damage."""
    messages = encode([KeyedMessage(None, b"late")], 3)
    assert [record.is_hidden for record in decoded(messages, 0)] == [True, True, True, False]
    assert list(decoded(messages, 4)) == []
    with pytest.raises(InvalidMessage, match="offsets have no entry before it"):
        list(decoded(encode([KeyedMessage(None, b"far")], 2**40), 0))


def test_messages_of_other_programs_are_not_accounted_for() -> None:
    """No producer of a run has sent them."""
    foreign = Record(NO_EPOCH, NO_NUMBER, KeyedMessage(None, b"x").encode())
    records = [HIDDEN, Record(1, 0), Record(1, 1), foreign, HIDDEN, Record(1, 2)]
    found = [each[1:5] for each in message_ranges(Partition("clicks", "0"), 5, records)]
    assert found == [(0, 2, 6, 8), (2, 3, 10, 11)]


@given(st.none() | st.binary(max_size=9), st.integers(0, 2**50), st.integers(0, 9))
def test_a_leader_takes_what_a_load_sends(key: bytes | None, number: int, epoch: int) -> None:
    """With its epoch, and the name of the producer; what it stores, others read."""
    sent = encode([KeyedMessage(key, sent_value("shop-0", number))], 7)
    taken = list(decoded(sent, 7, taken_in=epoch))
    assert [(each.epoch, each.number) for each in taken] == [(epoch, number)]
    assert list(decoded(encoded(taken, 7), 7)) == taken
    found = list(message_ranges(Partition("clicks", "0"), 7, taken))
    assert [tuple(each[:5]) for each in found] == [("shop-0", number, number + 1, 7, 8)]


@given(SETS, st.integers(0, 9))
def test_a_leader_keeps_what_no_load_has_sent(data: bytes, epoch: int) -> None:
    """Byte for byte, whatever the epoch is."""
    assert encoded(decoded(data, 0, taken_in=epoch), 0) == encoded(decoded(data, 0), 0)
