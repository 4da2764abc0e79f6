"""The messages of the topic of offsets: bytes, and what is no offset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log.vectors import unhex
from watchkeeper.model.log.format.message_08 import KeyedMessage, Record
from watchkeeper.model.offset_manager.records import (
    CommittedOffset,
    OffsetKey,
    UnreadableRecord,
    message_of,
    read_record,
)

KEY, COMMITTED = OffsetKey("g1", "t", 0), CommittedOffset(42, "", 1000)
KEY_BYTES = unhex("0000 00026731 000174 00000000")
VALUE_BYTES = unhex("0000 000000000000002a 0000 00000000000003e8")


def test_golden_bytes() -> None:
    """As Kafka 0.8.2.2 writes them."""
    assert message_of(KEY, COMMITTED) == KeyedMessage(KEY_BYTES, VALUE_BYTES)
    assert message_of(KEY, None) == KeyedMessage(KEY_BYTES, None)
    assert read_record(Record(5, KEY_BYTES, VALUE_BYTES)) == (KEY, COMMITTED)
    assert read_record(Record(5, KEY_BYTES, None)) == (KEY, None)


def test_a_value_of_a_later_version_is_read() -> None:
    value = unhex("0001 000000000000002a 0000 00000000000003e8 0000000000000fa0")

    assert read_record(Record(5, KEY_BYTES, value)) == (KEY, COMMITTED)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (None, VALUE_BYTES, "offset 5.*no key"),
        (unhex("0002 00026731"), VALUE_BYTES, "version 2"),
        (KEY_BYTES, unhex("0009 00"), "value at offset 5.*version 9"),
        (KEY_BYTES[:-1], VALUE_BYTES, "int32"),
        (KEY_BYTES + b"!", VALUE_BYTES, "1 bytes follow"),
        (b"", None, "int16"),
    ],
)
def test_what_is_no_offset(key: bytes | None, value: bytes | None, says: str) -> None:
    with pytest.raises(UnreadableRecord, match=says):
        read_record(Record(5, key, value))


NAMES = st.text(max_size=8)
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.builds(OffsetKey, NAMES, NAMES, st.integers(-(2**31), 2**31 - 1)), INT64, NAMES, INT64)
def test_what_is_written_is_read(key: OffsetKey, offset: int, text: str, time_ms: int) -> None:
    committed = CommittedOffset(offset, text, time_ms)
    message = message_of(key, committed)

    assert read_record(Record(0, message.key, message.value)) == (key, committed)
