"""Records as messages of 0.8."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.model.log.format.errors import InvalidMessage
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode
from watchkeeper.model.replication.messages import (
    ENTRY_BYTES,
    EPOCH,
    decoded,
    encoded,
    size_of,
    value_of,
)
from watchkeeper.model.replication.replica_log import Record

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


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (KeyedMessage(None, value_of(1)), "its key does not begin with the epoch"),
        (KeyedMessage(b"123", value_of(1)), "its key does not begin with the epoch"),
        (KeyedMessage(EPOCH.pack(1), None), "shorter than the number"),
        (KeyedMessage(EPOCH.pack(1), b"123"), "shorter than the number"),
    ],
)
def test_other_messages_are_no_records(message: KeyedMessage, why: str) -> None:
    """A log of another program is not taken for one of replicas."""
    with pytest.raises(InvalidMessage, match=why):
        list(decoded(encode([message])))
