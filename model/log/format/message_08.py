"""Messages and message sets of Kafka 0.8.0, which have a key and a logical offset.

    entry      int64 offset, int32 size, message
    message    int32 CRC, int8 magic 0, int8 attributes,
               int32 length of the key (-1: none), key, int32 length of the value, value

The CRC covers everything after it, so an offset can change without a new CRC. An offset counts
messages, no longer bytes, and the broker assigns it: it writes the offsets into the entries. It
has to decompress a wrapper, number the messages in it and compress them again
(`assign_offsets`). The offset of a wrapper is that of its last message. A message without a
value is a *tombstone*: its key was deleted.

The end of a message set is as in 0.7: a partial entry is dropped, and an error if there is no
other entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import msgspec

from watchkeeper.model.log.format.codecs import Codec, compress, decompress
from watchkeeper.model.log.format.errors import (
    InvalidMessage,
    InvalidMessageSize,
    LogError,
    NestedTooDeep,
    UnknownMagic,
)
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES

OFFSET = Struct(">q")
OFFSET_AND_SIZE = Struct(">qi")
CRC = Struct(">I")
MAGIC_AND_ATTRIBUTES = Struct(">BB")
LENGTH = Struct(">i")
KEYLESS_ENTRY = Struct(">qiIBBii")
"""Everything before the value, without a key; an entry with a key is no shorter."""
CRC_AT, KEY_LENGTH_AT, KEY_AT, KEYLESS_VALUE_AT = 12, 18, 22, 26
SMALLEST_MESSAGE_BYTES = 14
NULL_LENGTH = -1
"""The length of a null key or value."""
CODEC_BITS = 0x07
MAX_NESTING = 4
"""The limit of nested wrappers around a message; producers make one."""


class KeyedMessage(msgspec.Struct, frozen=True):
    """A message of a producer; without a value it is a tombstone."""

    key: bytes | None
    value: bytes | None
    attributes: int = 0

    def encode(self) -> bytes:
        """Encode the message, without the offset and the size before it in a message set."""
        head = MAGIC_AND_ATTRIBUTES.pack(0, self.attributes)
        rest = b"".join((head, *_nullable(self.key), *_nullable(self.value)))
        return CRC.pack(crc32(rest)) + rest


def _nullable(data: bytes | None) -> tuple[bytes, bytes]:
    return (LENGTH.pack(NULL_LENGTH), b"") if data is None else (LENGTH.pack(len(data)), data)


class Record(msgspec.Struct, frozen=True, gc=False):
    """A message as a consumer receives it."""

    offset: int
    key: bytes | None
    value: bytes | None


class AssignedSet(NamedTuple):
    """A message set with assigned offsets, and the first offset after it."""

    data: bytes
    next_offset: int


# --- writing ---------------------------------------------------------------------------


def encode(messages: Iterable[KeyedMessage], first_offset: int = 0) -> bytes:
    """Encode messages as a set, with consecutive offsets."""
    return _encoded(messages, first_offset).data


def wrap(messages: Iterable[KeyedMessage], codec: Codec, first_offset: int = 0) -> bytes:
    """Encode messages as a set, compressed into one wrapper; no messages give an empty set."""
    return _wrapped(messages, int(codec), first_offset).data


def _encoded(messages: Iterable[KeyedMessage], first_offset: int) -> AssignedSet:
    data = bytearray()
    offset = first_offset
    for message in messages:
        encoded = message.encode()
        data += OFFSET_AND_SIZE.pack(offset, len(encoded))
        data += encoded
        offset += 1
    return AssignedSet(bytes(data), offset)


def _wrapped(messages: Iterable[KeyedMessage], codec: int, first_offset: int) -> AssignedSet:
    inner, next_offset = _encoded(messages, first_offset)
    if codec == Codec.NONE or next_offset == first_offset:
        return AssignedSet(inner, next_offset)
    wrapper = KeyedMessage(None, compress(codec, inner), codec)
    return AssignedSet(encode([wrapper], next_offset - 1), next_offset)


# --- walking ---------------------------------------------------------------------------

Step = tuple[int, int, int, int, bytes | None, bytes | None]
"""The begin and end of an entry in bytes, its offset, attributes, key and value."""


def entries(data: bytes, where: str = "byte", depth: int = 0) -> Iterator[Step]:
    """Yield each entry, checked; `where` names the position of the data in error texts."""
    unpack = KEYLESS_ENTRY.unpack_from
    view = memoryview(data)
    begin, limit = 0, len(data)
    while limit - begin >= KEYLESS_ENTRY.size:
        offset, size, crc, magic, attributes, key_bytes, value_bytes = unpack(data, begin)
        end = begin + CRC_AT + size
        if size < SMALLEST_MESSAGE_BYTES:
            detail = f"{size} bytes, and the least is {SMALLEST_MESSAGE_BYTES}"
            raise InvalidMessageSize(f"{where} {begin}", detail)
        if end > limit:
            break
        if crc32(view[begin + 16 : end]) != crc:
            raise InvalidMessage(f"{where} {begin}", f"offset {offset}: its CRC is wrong")
        if magic:
            raise UnknownMagic(f"{where} {begin}", f"offset {offset}: magic {magic}, not 0")
        key, value_at = None, begin + KEYLESS_VALUE_AT
        if key_bytes != NULL_LENGTH:
            key, value_at, value_bytes = _key_at(data, begin, end, key_bytes, where)
        value = data[value_at:end] if value_bytes != NULL_LENGTH else None
        if value_at + max(value_bytes, 0) != end or value_bytes < NULL_LENGTH:
            raise _misfit(f"{where} {begin}")
        yield begin, end, offset, attributes, key, value
        begin = end
    if begin < limit and (begin == 0 or depth):
        detail = f"{limit - begin} bytes of an entry, and no whole one"
        raise InvalidMessageSize(f"{where} {begin}", detail)


def _key_at(
    data: bytes, begin: int, end: int, key_bytes: int, where: str
) -> tuple[bytes, int, int]:
    """Return the key of an entry, the position of its value, and the value's length."""
    key_at = begin + KEY_AT
    value_length_at = key_at + key_bytes
    if not 0 <= key_bytes <= end - LENGTH.size - key_at:
        raise _misfit(f"{where} {begin}")
    (value_bytes,) = LENGTH.unpack_from(data, value_length_at)
    return data[key_at:value_length_at], value_length_at + LENGTH.size, value_bytes


def _misfit(where: str) -> InvalidMessage:
    return InvalidMessage(where, "the lengths of key and value do not add up to its size")


# --- reading ---------------------------------------------------------------------------


class Unwrapping:
    """Decompresses wrappers, up to one limit for all of a call."""

    def __init__(self, limit_bytes: int) -> None:
        self.left_bytes = limit_bytes

    def records(self, data: bytes, where: str = "byte", depth: int = 0) -> Iterator[Record]:
        """Yield the messages of a set, also those in wrappers."""
        for begin, _, offset, attributes, key, value in entries(data, where, depth):
            if attributes & CODEC_BITS:
                yield from self.unwrapped(attributes, value, f"{where} {begin}", depth)
            else:
                yield Record(offset, key, value)

    def unwrapped(
        self, attributes: int, value: bytes | None, where: str, depth: int = 0
    ) -> Iterator[Record]:
        """Yield the messages in a wrapper."""
        if depth == MAX_NESTING:
            raise NestedTooDeep(where, f"deeper than {MAX_NESTING}")
        inner = self.opened(attributes, value, where)
        yield from self.records(inner, f"what is compressed at {where}, byte", depth + 1)

    def opened(self, attributes: int, value: bytes | None, where: str) -> bytes:
        """Return the message set in a wrapper, unchecked."""
        if value is None:
            raise InvalidMessage(where, "it is said to be compressed, and there is nothing")
        codec = attributes & CODEC_BITS
        inner = decompress(codec, value, limit_bytes=self.left_bytes, where=where)
        self.left_bytes -= len(inner)
        return inner


def records(data: bytes, *, limit_bytes: int = LARGEST_FRAME_BYTES) -> Iterator[Record]:
    """Yield the checked messages of a set, also those in wrappers; raise a `LogError`."""
    return Unwrapping(limit_bytes).records(data)


def offset_after(data: bytes) -> int | None:
    """Return the first offset after the whole entries of a set, unchecked; None without one."""
    begin, after = 0, None
    while begin + CRC_AT <= len(data):
        offset, size = OFFSET_AND_SIZE.unpack_from(data, begin)
        begin += CRC_AT + size
        if size < SMALLEST_MESSAGE_BYTES or begin > len(data):
            break
        after = offset + 1
    return after


def intact_size(data: bytes) -> int:
    """Return the number of bytes from the start that are whole entries with correct CRCs."""
    size_bytes = 0
    with suppress(LogError):
        for step in entries(data):
            size_bytes = step[1]
    return size_bytes


# --- assigning offsets -----------------------------------------------------------------


def assign_offsets(
    data: bytes, first_offset: int, *, limit_bytes: int = LARGEST_FRAME_BYTES
) -> AssignedSet:
    """Assign consecutive offsets to all messages, as a broker does before it appends a set.

    A plain entry changes in its offset alone. The messages of a wrapper, nested ones included,
    are compressed again into one wrapper; an empty wrapper is dropped. Raises a `LogError`.
    """
    unwrapping = Unwrapping(limit_bytes)
    numbered = bytearray()
    next_offset = first_offset
    for begin, end, _, attributes, _, value in entries(data):
        if attributes & CODEC_BITS:
            found = unwrapping.unwrapped(attributes, value, f"byte {begin}")
            inner = (KeyedMessage(message.key, message.value) for message in found)
            wrapper, next_offset = _wrapped(inner, attributes & CODEC_BITS, next_offset)
            numbered += wrapper
        else:
            numbered += OFFSET.pack(next_offset)
            numbered += data[begin + OFFSET.size : end]
            next_offset += 1
    return AssignedSet(bytes(numbered), next_offset)
