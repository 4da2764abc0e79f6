"""The messages of `__consumer_offsets`: a committed offset, or a tombstone that removes one.

    key      int16 version 0, group, topic, int32 partition
    value    int16 version 0, int64 offset, metadata, int64 time of the commit

Later versions of Kafka write values of version 1, with the time at which the commit expires, and
keys of version 2, which describe members of groups. The first are read here, the second skipped.

Kafka 0.8.2.2: OffsetManager.offsetCommitKey, offsetCommitValue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeVar

from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.fields import INT16, INT64, STRING, Reader
from watchkeeper.model.log.format.frames import Field, WireStruct, struct_type
from watchkeeper.model.log.format.message_08 import KeyedMessage, Record
from watchkeeper.model.log.format.requests import TOPIC
from watchkeeper.model.log.format.requests_08 import PARTITION
from watchkeeper.model.wire_08.group_offsets import GROUP, OFFSET

V = TypeVar("V", bound=WireStruct)

METADATA = Field("metadata", STRING, "a text of the client's")
COMMITTED_AT = Field("committed_ms", INT64, "the time of the commit")


class UnreadableRecord(LogError):
    """A message of the topic is no offset of a group."""

    meaning = "the message is no offset of a group"


class OffsetKey(WireStruct, frozen=True):
    """Whose offset it is, and of which partition."""

    group: str
    topic: str
    partition: int
    layout = (GROUP, TOPIC, PARTITION)


class CommittedOffset(WireStruct, frozen=True):
    """A committed offset."""

    offset: int
    metadata: str
    committed_ms: int
    layout: ClassVar[tuple[Field, ...]] = (OFFSET, METADATA, COMMITTED_AT)


class ExpiringOffset(CommittedOffset, frozen=True):
    """A committed offset as Kafka 0.9 writes it."""

    expires_ms: int
    layout: ClassVar[tuple[Field, ...]] = (
        *CommittedOffset.layout,
        Field("expires_ms", INT64, "the time at which it expires"),
    )


KEYS: dict[int, type[OffsetKey]] = {0: OffsetKey, 1: OffsetKey}
VALUES: dict[int, type[CommittedOffset]] = {0: CommittedOffset, 1: ExpiringOffset}


def encode(version: int, value: WireStruct) -> bytes:
    """Encode a key or a value after its version."""
    return b"".join((*INT16.parts(version), *struct_type(type(value)).parts(value)))


def message_of(key: OffsetKey, committed: CommittedOffset | None) -> KeyedMessage:
    """Return the message of a commit; without an offset it is a tombstone."""
    return KeyedMessage(encode(0, key), None if committed is None else encode(0, committed))


def read_record(record: Record) -> tuple[OffsetKey, CommittedOffset | None]:
    """Read a message; raise `UnreadableRecord` for one that is no offset."""
    where = f"offset {record.offset}"
    if record.key is None:
        raise UnreadableRecord(where, "it has no key")
    key = _read(record.key, KEYS, f"key at {where}")
    if record.value is None:
        return key, None
    value = _read(record.value, VALUES, f"value at {where}")
    return key, CommittedOffset(value.offset, value.metadata, value.committed_ms)


def _read(data: bytes, versions: Mapping[int, type[V]], what: str) -> V:
    reader = Reader(data, what, UnreadableRecord)
    version = INT16.read(reader)
    if version not in versions:
        known = ", ".join(map(str, versions))
        raise UnreadableRecord(what, f"it has version {version}; known are {known}")
    value: V = struct_type(versions[version]).read(reader)
    reader.finish()
    return value
