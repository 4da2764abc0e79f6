"""Records as messages of Kafka 0.8, in files and between brokers.

    key     int32 epoch of the leader that appended the record, and what the record holds besides
    value   int64 number of the message, and zeros up to the usual size of a message

The format of 0.8 has no field for the epoch, which Kafka stores since 0.11. As the key it is
covered by the CRC, and programs that read the format of 0.8 can show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from zlib import crc32

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.log.format.errors import InvalidMessage
from watchkeeper.model.log.format.message_08 import records as messages_in
from watchkeeper.model.replication.replica_log import Record

EPOCH = Struct(">i")
NUMBER = Struct(">q")
VALUE_BYTES = 100
HEAD = Struct(">qiI")
"""The offset of an entry, the size of its message, and the CRC of what follows."""
KEY = Struct(">BBii")
"""Magic, attributes, size of the key, and the epoch, with which the key begins."""
VALUE = Struct(f">iq{VALUE_BYTES - NUMBER.size}x")
"""Size of the value, number, and zeros."""
MESSAGE_BYTES = 4 + KEY.size + VALUE.size
ENTRY_BYTES = HEAD.size + KEY.size + VALUE.size
"""The size in a message set of a record without a message of its own; each has the same."""


def value_of(number: int) -> bytes:
    """Return the value of the message with a number."""
    return NUMBER.pack(number).ljust(VALUE_BYTES, b"\0")


def number_in(value: bytes | None, where: str) -> int:
    """Return the number in the value of a message; raise `InvalidMessage` if it has none."""
    if value is None or len(value) < NUMBER.size:
        raise InvalidMessage(where, "its value is shorter than the number of a message")
    number: int = NUMBER.unpack_from(value)[0]
    return number


def encoded(records: Iterable[Record], first_offset: int) -> bytes:
    """Encode records as a message set; the first one is at `first_offset`.

    Written out, since each message of a replicated cluster comes here once a replica.
    """
    parts: list[bytes] = []
    for offset, (epoch, number, message) in enumerate(records, first_offset):
        key_bytes = EPOCH.size + len(message)
        key = KEY.pack(0, 0, key_bytes, epoch)
        body = b"".join((key, message, VALUE.pack(VALUE_BYTES, number)))
        parts += HEAD.pack(offset, MESSAGE_BYTES + len(message), crc32(body)), body
    return b"".join(parts)


def size_of(records: Iterable[Record]) -> int:
    """Return the size of records as a message set."""
    return sum(ENTRY_BYTES + len(record.message) for record in records)


def producer_of(partition: Partition) -> str:
    """Return the producer under whose name the messages of a partition are accounted for."""
    return f"writer of {partition}"


def message_ranges(
    partition: Partition, start: int, records: Sequence[Record]
) -> Iterator[MessageRange]:
    """Yield the ranges of consecutive messages in records that begin at an offset.

    Messages of brokers are left out: no producer has sent them.
    """
    begin = 0
    for at in range(1, len(records) + 1):
        if at < len(records) and records[at].number == records[at - 1].number + 1:
            continue
        first, size = records[begin].number, at - begin
        offset = start + begin
        if not records[begin].message:
            yield MessageRange(producer_of(partition), first, first + size, offset, offset + size)
        begin = at


def decoded(data: bytes) -> Iterator[Record]:
    """Yield the records of a message set; raise a `LogError` for a message of another kind."""
    for message in messages_in(data):
        where = f"offset {message.offset}"
        if message.key is None or len(message.key) < EPOCH.size:
            raise InvalidMessage(where, "its key does not begin with the epoch of a leader")
        epoch = EPOCH.unpack_from(message.key)[0]
        yield Record(epoch, number_in(message.value, where), bytes(message.key[EPOCH.size :]))
