"""Log files: whole records, and ends that are torn."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.zookeeper_files.histories import RandomHistory
from watchkeeper.model.zookeeper_files.txn_log import (
    FILE_HEADER,
    NotALog,
    decode_log,
    encode_record,
)

TRANSACTIONS = [step.transaction for step in RandomHistory(3).steps(25)]
RECORDS = [encode_record(transaction) for transaction in TRANSACTIONS]
ENDS = [len(FILE_HEADER) + sum(map(len, RECORDS[:number])) for number in range(26)]
LOG = FILE_HEADER + b"".join(RECORDS)


def test_a_log_comes_back() -> None:
    """Zeros after the last record are space that a server has reserved."""
    for tail in (b"", bytes(100)):
        log = decode_log(LOG + tail)

        assert list(log.transactions) == TRANSACTIONS
        assert (log.whole_bytes, log.is_torn) == (len(LOG), False)


@given(st.integers(len(FILE_HEADER), len(LOG) - 1), st.integers(0, 50))
@settings(max_examples=200, deadline=None)
def test_a_torn_end_is_left_out(length: int, zeros: int) -> None:
    """Whole records before it are read, and its place is known."""
    log = decode_log(LOG[:length] + bytes(zeros))

    whole = [end for end in ENDS if end <= length]
    assert list(log.transactions) == TRANSACTIONS[: len(whole) - 1]
    assert log.whole_bytes == whole[-1]


@pytest.mark.parametrize("length", range(8))
def test_a_torn_header_is_an_empty_log(length: int) -> None:
    """The rest of it may be missing, or be zeros."""
    for data in (FILE_HEADER[:length], FILE_HEADER[:length] + bytes(40)):
        log = decode_log(data)

        assert (log.transactions, log.whole_bytes, log.is_torn) == ((), 0, True)


@given(st.integers(len(FILE_HEADER), len(LOG) - 1), st.integers(1, 255))
@settings(max_examples=200, deadline=None)
def test_a_damaged_record_ends_the_log(at: int, change: int) -> None:
    """No byte of it may be wrong."""
    damaged = bytearray(LOG)
    damaged[at] ^= change

    log = decode_log(bytes(damaged))

    number = sum(end <= at for end in ENDS) - 1
    assert list(log.transactions) == TRANSACTIONS[:number]
    assert log.is_torn


def test_another_file_is_no_log() -> None:
    """It is not taken for an empty one."""
    for data in (b"hello, world, here", b"ZKSN" + bytes(30), FILE_HEADER[:7] + b"\3" + bytes(8)):
        with pytest.raises(NotALog):
            decode_log(data)
