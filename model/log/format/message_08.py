"""Messages and message sets of Kafka 0.8.0, which have a key and a logical offset.

    entry      int64 offset, int32 size, message
    message    int32 CRC, int8 magic 0, int8 attributes,
               int32 length of the key (-1: none), key, int32 length of the value, value

The CRC covers all that follows it, so an offset can be changed without it. An offset counts
messages and no longer bytes, and it is the broker that deals them out: it writes them into
the entries, and where those are compressed it has to open the wrapper, number what is in it
and compress it again (`assigned`). The offset of a wrapper is that of the last message in
it. A message without a value is a *tombstone*: it says that the key is gone.

A message set ends as one of 0.7 does: the part of an entry at its end is dropped, and an
error if there is nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import msgspec

from model.log.codecs import Codec, compress, decompress
from model.log.errors import (
    InvalidMessage,
    InvalidMessageSize,
    LogError,
    NestedTooDeep,
    UnknownMagic,
)
from model.log.wire import LARGEST_FRAME_BYTES

OFFSET = Struct(">q")
OFFSET_AND_SIZE = Struct(">qi")
CRC = Struct(">I")
MAGIC_AND_ATTRIBUTES = Struct(">BB")
LENGTH = Struct(">i")
KEYLESS_ENTRY = Struct(">qiIBBii")
"""All that precedes the value, if there is no key; an entry with a key is no shorter."""
CRC_AT, KEY_LENGTH_AT, KEY_AT, KEYLESS_VALUE_AT = 12, 18, 22, 26
SMALLEST_MESSAGE_BYTES = 14
NOTHING = -1
"""The length of a key or a value that is not there."""
CODEC_BITS = 0x07
DEEPEST = 4
"""How many wrappers may stand around a message; one is what producers make."""


class KeyedMessage(msgspec.Struct, frozen=True):
    """A message as a producer makes it; without a value it is a tombstone."""

    key: bytes | None
    value: bytes | None
    attributes: int = 0

    def encode(self) -> bytes:
        """Write it, without the offset and the size that precede it in a message set."""
        head = MAGIC_AND_ATTRIBUTES.pack(0, self.attributes)
        rest = b"".join((head, *_nullable(self.key), *_nullable(self.value)))
        return CRC.pack(crc32(rest)) + rest


def _nullable(data: bytes | None) -> tuple[bytes, bytes]:
    return (LENGTH.pack(NOTHING), b"") if data is None else (LENGTH.pack(len(data)), data)


class Record(msgspec.Struct, frozen=True, gc=False):
    """A message as a consumer is handed it."""

    offset: int
    key: bytes | None
    value: bytes | None


class Assigned(NamedTuple):
    """A message set in which every message has its offset, and the first offset after it."""

    data: bytes
    next_offset: int


# --- writing ---------------------------------------------------------------------------


def encode(messages: Iterable[KeyedMessage], first_offset: int = 0) -> bytes:
    """Write messages as a set, with one offset after the other."""
    return _encoded(messages, first_offset).data


def wrap(messages: Iterable[KeyedMessage], codec: Codec, first_offset: int = 0) -> bytes:
    """Write messages as a set, compressed into one wrapper; none give an empty set."""
    return _wrapped(messages, int(codec), first_offset).data


def _encoded(messages: Iterable[KeyedMessage], first_offset: int) -> Assigned:
    data = bytearray()
    offset = first_offset
    for message in messages:
        encoded = message.encode()
        data += OFFSET_AND_SIZE.pack(offset, len(encoded))
        data += encoded
        offset += 1
    return Assigned(bytes(data), offset)


def _wrapped(messages: Iterable[KeyedMessage], codec: int, first_offset: int) -> Assigned:
    inner, next_offset = _encoded(messages, first_offset)
    if codec == Codec.NONE or next_offset == first_offset:
        return Assigned(inner, next_offset)
    wrapper = KeyedMessage(None, compress(codec, inner), codec)
    return Assigned(encode([wrapper], next_offset - 1), next_offset)


# --- walking ---------------------------------------------------------------------------

Step = tuple[int, int, int, int, bytes | None, bytes | None]
"""Where an entry begins and ends, its offset, its attributes, key and value."""


def _walk(data: bytes, where: str = "byte", depth: int = 0) -> Iterator[Step]:
    """Step from entry to entry, and check each; `where` names the place of the data."""
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
        if key_bytes != NOTHING:
            key, value_at, value_bytes = _key_at(data, begin, end, key_bytes, where)
        value = data[value_at:end] if value_bytes != NOTHING else None
        if value_at + max(value_bytes, 0) != end or value_bytes < NOTHING:
            raise _misfit(f"{where} {begin}")
        yield begin, end, offset, attributes, key, value
        begin = end
    if begin < limit and (begin == 0 or depth):
        detail = f"{limit - begin} bytes of an entry, and no whole one"
        raise InvalidMessageSize(f"{where} {begin}", detail)


def _key_at(
    data: bytes, begin: int, end: int, key_bytes: int, where: str
) -> tuple[bytes, int, int]:
    """The key of an entry that has one, where its value begins, and the value's length."""
    key_at = begin + KEY_AT
    value_length_at = key_at + key_bytes
    if not 0 <= key_bytes <= end - LENGTH.size - key_at:
        raise _misfit(f"{where} {begin}")
    (value_bytes,) = LENGTH.unpack_from(data, value_length_at)
    return data[key_at:value_length_at], value_length_at + LENGTH.size, value_bytes


def _misfit(where: str) -> InvalidMessage:
    return InvalidMessage(where, "the lengths of key and value do not add up to its size")


# --- reading ---------------------------------------------------------------------------


class _Unwrapping:
    """Takes messages out of wrappers, up to a limit for all that one call decompresses."""

    def __init__(self, limit_bytes: int) -> None:
        self.left_bytes = limit_bytes

    def records(self, data: bytes, where: str = "byte", depth: int = 0) -> Iterator[Record]:
        """The messages of a set, also those in wrappers."""
        for begin, _, offset, attributes, key, value in _walk(data, where, depth):
            if attributes & CODEC_BITS:
                yield from self.unwrapped(attributes, value, f"{where} {begin}", depth)
            else:
                yield Record(offset, key, value)

    def unwrapped(
        self, attributes: int, value: bytes | None, where: str, depth: int = 0
    ) -> Iterator[Record]:
        """The messages in a wrapper."""
        if depth == DEEPEST:
            raise NestedTooDeep(where, f"deeper than {DEEPEST}")
        if value is None:
            raise InvalidMessage(where, "it is said to be compressed, and there is nothing")
        codec = attributes & CODEC_BITS
        inner = decompress(codec, value, limit_bytes=self.left_bytes, where=where)
        self.left_bytes -= len(inner)
        yield from self.records(inner, f"what is compressed at {where}, byte", depth + 1)


def records(data: bytes, *, limit_bytes: int = LARGEST_FRAME_BYTES) -> Iterator[Record]:
    """The messages of a set, checked, also those in wrappers."""
    return _Unwrapping(limit_bytes).records(data)


def whole_entries(data: bytes) -> int:
    """How many bytes from the start are whole entries with right CRCs."""
    size_bytes = 0
    with suppress(LogError):
        for step in _walk(data):
            size_bytes = step[1]
    return size_bytes


# --- dealing out offsets ---------------------------------------------------------------


def assigned(
    data: bytes, first_offset: int, *, limit_bytes: int = LARGEST_FRAME_BYTES
) -> Assigned:
    """Give every message its offset, as a broker does before it appends a set.

    A plain entry keeps its bytes but for the offset. A wrapper is opened, what is in it is
    numbered, and it is compressed again, wrappers within it dissolved; one with nothing in
    it is left out.
    """
    unwrapping = _Unwrapping(limit_bytes)
    numbered = bytearray()
    next_offset = first_offset
    for begin, end, _, attributes, _, value in _walk(data):
        if attributes & CODEC_BITS:
            found = unwrapping.unwrapped(attributes, value, f"byte {begin}")
            inner = (KeyedMessage(one.key, one.value) for one in found)
            wrapper, next_offset = _wrapped(inner, attributes & CODEC_BITS, next_offset)
            numbered += wrapper
        else:
            numbered += OFFSET.pack(next_offset)
            numbered += data[begin + OFFSET.size : end]
            next_offset += 1
    return Assigned(bytes(numbered), next_offset)
