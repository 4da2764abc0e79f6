"""Records as messages of Kafka 0.8, in files and between brokers.

    key     int32 epoch of the leader that appended the record
    value   int64 number of the message, and zeros up to the usual size of a message

The format of 0.8 has no field for the epoch, which Kafka stores since 0.11. As the key it is
covered by the CRC, and programs that read the format of 0.8 can show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

from watchkeeper.model.log.format.errors import InvalidMessage
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode
from watchkeeper.model.log.format.message_08 import records as messages_in
from watchkeeper.model.replication.replica_log import Record

EPOCH = Struct(">i")
NUMBER = Struct(">q")
VALUE_BYTES = 100


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
    """Encode records as a message set; the first one is at `first_offset`."""
    return encode(
        (KeyedMessage(EPOCH.pack(record.epoch), value_of(record.number)) for record in records),
        first_offset,
    )


def decoded(data: bytes) -> Iterator[Record]:
    """Yield the records of a message set; raise a `LogError` for a message of another kind."""
    for message in messages_in(data):
        where = f"offset {message.offset}"
        if message.key is None or len(message.key) != EPOCH.size:
            raise InvalidMessage(where, "its key is not the epoch of a leader")
        yield Record(EPOCH.unpack(message.key)[0], number_in(message.value, where))


ENTRY_BYTES = len(encoded([Record(0, 0)], 0))
"""The size of a record in a message set; each has the same."""
