"""Records as messages of Kafka 0.8, in files and between brokers.

    key     int32 epoch of the leader that appended the record, and what the record holds besides
    value   int64 number of the message, and zeros up to the usual size of a message

The format of 0.8 has no field for the epoch, which Kafka stores since 0.11. As the key it is
covered by the CRC, and programs that read the format of 0.8 can show it.

A load whose producers speak the protocol of 0.8 has a key of its own, or none, and a value that
names the producer. A leader stores it with its epoch, and with the producer and the key behind
that in the key.

A message of another program, such as a producer of Kafka, is kept byte for byte: replicas have to
be equal. It names no epoch. A compressed one has the offset of the last message in it; the
offsets before have no entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from struct import Struct
from zlib import crc32

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.log.format.errors import InvalidMessage
from watchkeeper.model.log.format.message_08 import CRC_AT, OFFSET_AND_SIZE, Step, entries
from watchkeeper.model.log.format.message_08 import records as messages_in
from watchkeeper.model.replication.replica_log import HIDDEN, NO_EPOCH, NO_NUMBER, Record

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
ZEROS = bytes(VALUE_BYTES - NUMBER.size)
SENT_TAIL = b"of load\n"
"""The end of the value of a message that a producer of a load sends."""
LONGEST_NAME = VALUE_BYTES - NUMBER.size - len(SENT_TAIL)
"""The most bytes of the name of such a producer."""
PRODUCED = b"\xff"
"""Begins what a record holds beside its number if a producer by name has sent it.

A message set begins with an offset, which is not negative.
"""
LONGEST_GAP = 10_000_000
"""More offsets than that are not left out between two entries: the offset is damaged."""


def value_of(number: int) -> bytes:
    """Return the value of the message with a number."""
    return NUMBER.pack(number).ljust(VALUE_BYTES, b"\0")


def sent_value(producer: str, number: int) -> bytes:
    """Return the value of a message that a producer of a load sends."""
    name = producer.encode()
    assert len(name) <= LONGEST_NAME, f"{producer} has a name of at most {LONGEST_NAME} bytes"
    return NUMBER.pack(number) + name.ljust(LONGEST_NAME, b"\0") + SENT_TAIL


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
        if number == NO_NUMBER:
            parts += (OFFSET_AND_SIZE.pack(offset, len(message)), message) if message else ()
            continue
        key_bytes = EPOCH.size + len(message)
        key = KEY.pack(0, 0, key_bytes, epoch)
        body = b"".join((key, message, VALUE.pack(VALUE_BYTES, number)))
        parts += HEAD.pack(offset, MESSAGE_BYTES + len(message), crc32(body)), body
    return b"".join(parts)


def size_of(records: Iterable[Record]) -> int:
    """Return the size of records as a message set."""
    return sum(
        0 if record.is_hidden else _head_bytes(record) + len(record.message) for record in records
    )


def _head_bytes(record: Record) -> int:
    return CRC_AT if record.number == NO_NUMBER else ENTRY_BYTES


def producer_of(partition: Partition) -> str:
    """Return the producer under whose name the messages of a partition are accounted for."""
    return f"writer of {partition}"


def _producer_of(partition: Partition, message: bytes) -> str:
    """Return the producer of a message, by what its record holds; empty for that of a broker."""
    if not message:
        return producer_of(partition)
    if message.startswith(PRODUCED):
        return message[len(PRODUCED) :].partition(b"\0")[0].decode()
    return ""


def message_ranges(
    partition: Partition, start: int, records: Sequence[Record]
) -> Iterator[MessageRange]:
    """Yield the ranges of consecutive messages in records that begin at an offset.

    Messages of brokers are left out: no producer has sent them.
    """
    begin = 0
    for at in range(1, len(records) + 1):
        before = records[at - 1].number
        if at < len(records) and records[at].number == before + 1 and before != NO_NUMBER:
            continue
        first, size = records[begin].number, at - begin
        offset = start + begin
        producer = _producer_of(partition, records[begin].message)
        if producer and first != NO_NUMBER:
            yield MessageRange(producer, first, first + size, offset, offset + size)
        begin = at


def decoded(
    data: bytes, first_offset: int | None = None, *, taken_in: int | None = None
) -> Iterator[Record]:
    """Yield the records of a message set, from an offset or from that of its first entry on.

    An offset without an entry yields a hidden record. With `taken_in`, the epoch of a leader, the
    messages come from a producer: those of a load become records of that epoch. Raises a
    `LogError`.
    """
    at = first_offset
    for entry in entries(data):
        offset = entry[2]
        gap = 0 if at is None else offset - at
        if gap > LONGEST_GAP:
            raise InvalidMessage(f"offset {offset}", f"{gap} offsets have no entry before it")
        if gap >= 0:
            of_load = None if taken_in is None else _record_of_load(entry, taken_in)
            record = of_load or _record(data, entry)
            # The epoch that was there is not known; epochs never fall from one to the next.
            yield from repeat(HIDDEN._replace(epoch=record.epoch), gap)
            yield record
            at = offset + 1


def _record_of_load(entry: Step, epoch: int) -> Record | None:
    """Return the record of a message that a producer of a load has sent; None for another."""
    _, _, _, attributes, key, value = entry
    if attributes or value is None or len(value) != VALUE_BYTES:
        return None
    if not value.endswith(SENT_TAIL):
        return None
    name = bytes(value[NUMBER.size : -len(SENT_TAIL)]).rstrip(b"\0")
    message = b"".join((PRODUCED, name, b"\0", bytes(key or b"")))
    return Record(epoch, NUMBER.unpack_from(value)[0], message)


def _record(data: bytes, entry: Step) -> Record:
    """Return what encodes to the same bytes again."""
    begin, end, _, attributes, key, value = entry
    own = None if attributes else _own_record(key, value)
    return own or Record(NO_EPOCH, NO_NUMBER, bytes(data[begin + CRC_AT : end]))


def _own_record(key: bytes | None, value: bytes | None) -> Record | None:
    """Return the record with this key and value; None if another program has made them."""
    if (
        key is not None
        and len(key) >= EPOCH.size
        and value is not None
        and len(value) == VALUE_BYTES
        and value.endswith(ZEROS)
    ):
        number = NUMBER.unpack_from(value)[0]
        if number > NO_NUMBER:
            return Record(EPOCH.unpack_from(key)[0], number, bytes(key[EPOCH.size :]))
    return None


def key_and_value(key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Return the key and the value of the message in a record; that of a producer has no key."""
    record = _own_record(key, value)
    if record is None:
        return key, value
    if not record.message:
        return None, value
    [message] = messages_in(record.message)
    return message.key, message.value


def message_set_of(record: Record) -> bytes:
    """Return what a record holds beside its number: a message set."""
    return encoded([record], 0) if record.number == NO_NUMBER else record.message
