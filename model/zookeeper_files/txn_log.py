"""A log file: a header and records, as Apache's servers write them.

The header is a magic word, a version and the number of the database. A record is a checksum
(Adler-32), a length, that many bytes of a transaction, and `B`. Zeros may follow the last
record: servers reserve space.

When a machine stops in the middle of a write, the end of the file has a part of a record, or
records of which some bytes never reached the disk. Nothing after the last whole record was
ever answered, since an answer waits until the disk has confirmed everything before it. So the
first record that is not whole ends the file.
"""

from __future__ import annotations

import struct
from zlib import adler32

from msgspec import Struct

from watchkeeper.model.zookeeper_files.transactions import (
    HEADER,
    Transaction,
    decode_transaction,
    encode_transaction,
)

FILE_HEADER = struct.pack(">4siq", b"ZKLG", 2, 0)
_RECORD = struct.Struct(">qi")
_END_OF_RECORD = b"B"


class NotALog(Exception):
    """The bytes are of another kind of file."""


class LogFile(Struct, frozen=True):
    """What a log file holds."""

    transactions: tuple[Transaction, ...]
    whole_bytes: int
    """How many bytes the header and the whole records take."""
    is_torn: bool
    """Whether something other than zeros follows them, or the header itself is not whole."""


def encode_record(transaction: Transaction) -> bytes:
    """Write a record."""
    payload = encode_transaction(transaction)
    return _RECORD.pack(adler32(payload), len(payload)) + payload + _END_OF_RECORD


def decode_log(data: bytes) -> LogFile:
    """Read a log file up to the first record that is not whole; raises NotALog."""
    header = data[: len(FILE_HEADER)]
    if header != FILE_HEADER:
        if not _is_part_of_header(header):
            raise NotALog("it does not begin as a transaction log of version 2 does")
        return LogFile((), 0, True)
    transactions = []
    at = len(FILE_HEADER)
    while (end := _end_of_record(data, at)) is not None:
        transactions.append(decode_transaction(data[at + _RECORD.size : end - 1]))
        at = end
    return LogFile(tuple(transactions), at, bool(data[at:].strip(b"\0")))


def _is_part_of_header(header: bytes) -> bool:
    """Whether this can be what a write of the header has left: the rest is missing or zero."""
    written = header.rstrip(b"\0")
    return FILE_HEADER.startswith(written)


def _end_of_record(data: bytes, at: int) -> int | None:
    """Where the record ends that begins here; None if there is no whole one."""
    start = at + _RECORD.size
    if start > len(data):
        return None
    checksum, length = _RECORD.unpack_from(data, at)
    end = start + length
    if length < HEADER.size or data[end : end + 1] != _END_OF_RECORD:
        return None
    return end + 1 if adler32(data[start:end]) == checksum else None
