"""A message set of Kafka 0.7: messages one after the other, each after its size.

    entry           int32 size, message
    message set     entries, and at the end perhaps a part of one
    wrapper         a message whose payload is a compressed message set

Theory of operation
  An offset is a position in bytes, and a broker cuts a fetch response at the requested size.
  So the last entry may be partial, and is dropped silently. A set *without* a whole entry is an
  error. Kafka 0.7 took it for "nothing new", and a consumer with a fetch size below the size of
  the next message requested it for ever.

  A wrapper has one offset for all its messages. Each message but the last has the offset of the
  wrapper as its next offset, and only the last has the end of the wrapper: a consumer that
  stops in the middle reads the whole wrapper again. A wrapper is never cut inside, so a
  partial entry is an error there. An empty set is compressed to an empty set, never to an
  empty wrapper.

One loop, `_walk`, finds the entries and their defects; all other functions are a few lines on
top of it. It slices payloads out of `bytes`, which is faster than a view for small ones.
`_take_plain` exists for speed alone: it handles the plain, intact entries at the start, and
leaves all others to `_walk`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import msgspec

from watchkeeper.model.log.format.codecs import CODECS_07, Codec, compress, decompress
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.errors import (
    InvalidMessage,
    InvalidMessageSize,
    LogError,
    MessageSizeTooLarge,
    NestedTooDeep,
    UnknownMagic,
)
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES
from watchkeeper.model.log.format.message_07 import (
    AFTER_MAGIC_0,
    AFTER_MAGIC_1,
    CODEC_BITS,
    Message,
)

SIZE = Struct(">i")
SIZE_AND_MAGIC = Struct(">iB")
PLAIN_HEAD = Struct(">iHI")
"""Of an entry of magic 1: size, magic and attributes as one number, CRC."""
PLAIN = 0x0100
"""Magic 1 and no attributes."""
SMALLEST_BYTES = {0: 5, 1: 6}
"""Magic -> the size of a message without a payload."""
MANY_MESSAGES = 40  # from this number on the check in bulk is faster
MAX_NESTING = 4
"""The limit of nested wrappers around a message; producers make one."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An entry of a message set: its offset, the next offset, and its message."""

    offset: int
    next_offset: int
    message: Message


class SeriesMessage(msgspec.Struct, frozen=True, gc=False):
    """The stand-in for the payload of a message of a series: its producer and its number."""

    producer: str
    number: int


class MessageAndOffset(msgspec.Struct, frozen=True, gc=False):
    """A message as a consumer receives it, and the offset to resume at after it."""

    offset: int
    next_offset: int
    payload: bytes | SeriesMessage


class CheckedSet(msgspec.Struct, frozen=True):
    """Contents that may be appended to a log: whole entries, all of them checked."""

    contents: Contents
    message_count: int
    size_bytes: int


# --- writing ---------------------------------------------------------------------------


def encode(messages: Iterable[Message]) -> bytes:
    """Encode messages as a set."""
    parts: list[bytes] = []
    for message in messages:
        encoded = message.encode()
        parts += (SIZE.pack(len(encoded)), encoded)
    return b"".join(parts)


def wrap(messages: Iterable[Message], codec: Codec) -> bytes:
    """Encode messages as a set, compressed into one wrapper; no messages give an empty set."""
    inner = encode(messages)
    if codec is Codec.NONE or not inner:
        return inner
    return encode([Message.of(compress(codec, inner), codec=codec)])


# --- walking ---------------------------------------------------------------------------


class _Origin(NamedTuple):
    """The origin of a set, for error texts: an offset of the log, or a wrapper."""

    offset: int = 0
    within: str = ""
    depth: int = 0

    def at(self, begin: int) -> str:
        """Describe the position of an entry."""
        return f"offset {self.offset + begin}{self.within}"

    def inside(self, begin: int) -> _Origin:
        """Return the origin of the set inside of the wrapper that begins there."""
        return _Origin(0, f" of what is compressed at {self.at(begin)}", self.depth + 1)


Step = tuple[int, int, int, int, int, bytes]
"""The begin and end of an entry in the data, its magic, attributes, CRC and payload."""


def _walk(data: bytes, origin: _Origin, *, begin: int = 0, checks: bool = True) -> Iterator[Step]:
    """Yield each entry; check its CRC unless `checks` is False."""
    size_and_magic = SIZE_AND_MAGIC.unpack_from
    after_magic_0 = AFTER_MAGIC_0.unpack_from
    after_magic_1 = AFTER_MAGIC_1.unpack_from
    limit = len(data)
    last = limit - SIZE_AND_MAGIC.size
    while begin <= last:
        size, magic = size_and_magic(data, begin)
        end = begin + 4 + size
        if end > limit:
            break
        if magic == 1 and size >= SMALLEST_BYTES[1]:
            attributes, crc = after_magic_1(data, begin + 5)
            payload = data[begin + 10 : end]
        elif magic == 0 and size >= SMALLEST_BYTES[0]:
            attributes, (crc,) = 0, after_magic_0(data, begin + 5)
            payload = data[begin + 9 : end]
        else:
            raise _unreadable(size, magic, origin.at(begin))
        if checks and crc32(payload) != crc:
            raise _damaged(crc, payload, origin.at(begin))
        yield begin, end, magic, attributes, crc, payload
        begin = end
    if begin < limit and (begin == 0 or origin.depth):
        raise _incomplete(data, begin, origin.at(begin))


def _take_plain(
    data: bytes, found: list[bytes], *, largest_payload_bytes: int = LARGEST_FRAME_BYTES
) -> int:
    """Add the payloads of plain entries up to the first other one; return its position.

    It stops at an entry that is not whole, uncompressed, of magic 1, intact and small enough.
    It raises nothing: `_walk` continues there and finds the defect.
    """
    head = PLAIN_HEAD.unpack_from
    checksum = crc32
    add = found.append
    begin, limit = 0, len(data)
    last = limit - PLAIN_HEAD.size
    smallest = SMALLEST_BYTES[1]
    largest = smallest + largest_payload_bytes
    while begin <= last:
        size, magic_and_attributes, crc = head(data, begin)
        end = begin + 4 + size
        if magic_and_attributes != PLAIN or end > limit or not smallest <= size <= largest:
            break
        payload = data[begin + 10 : end]
        if checksum(payload) != crc:
            break
        add(payload)
        begin = end
    return begin


def _count_plain(data: bytes, largest_payload_bytes: int) -> tuple[int, int]:
    """Return the number of plain entries, and the position of the first other one."""
    if is_bulk(data, len(data)):
        from watchkeeper.model.log.format import (
            bulk_checksum,  # imports numpy, which few messages do not need
        )

        found = bulk_checksum.intact_prefix(data, largest_payload_bytes=largest_payload_bytes)
        if found.message_count:
            return found
    plain: list[bytes] = []
    size_bytes = _take_plain(data, plain, largest_payload_bytes=largest_payload_bytes)
    return len(plain), size_bytes


def is_bulk(data: bytes, size_bytes: int) -> bool:
    """Whether `size_bytes` hold many messages, if all are as large as the first of the set."""
    return size_bytes >= MANY_MESSAGES * (4 + int.from_bytes(data[:4]))


def _unreadable(size: int, magic: int, where: str) -> LogError:
    smallest = SMALLEST_BYTES.get(magic, min(SMALLEST_BYTES.values()))
    if size < smallest:
        detail = f"an entry says it has {size} bytes, and the least is {smallest}"
        return InvalidMessageSize(where, detail)
    return UnknownMagic(where, f"magic {magic}, not 0 or 1")


def _incomplete(data: bytes, begin: int, where: str) -> InvalidMessageSize:
    left = len(data) - begin
    wanted = f" of {SIZE.unpack_from(data, begin)[0] + 4}" if left >= SIZE.size else ""
    return InvalidMessageSize(where, f"{left}{wanted} bytes of an entry")


def _damaged(stored: int, payload: bytes, where: str) -> InvalidMessage:
    detail = f"its CRC is {stored:08x}, that of its payload {crc32(payload):08x}"
    return InvalidMessage(where, detail)


# --- wrappers --------------------------------------------------------------------------


class _Unwrapping:
    """Decompresses wrappers, also nested ones, up to one limit for all of a call.

    The limit covers everything that one call decompresses: a small set can contain many
    wrappers that each expand to a large one.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.left_bytes = limit_bytes

    def add_payloads(self, data: bytes, origin: _Origin, found: list[bytes]) -> None:
        """Append the payloads of a set to `found`."""
        plain_bytes = _take_plain(data, found)
        for begin, _, _, attributes, _, payload in _walk(data, origin, begin=plain_bytes):
            if attributes & CODEC_BITS:
                self.unwrap(payload, attributes, origin, begin, found)
            else:
                found.append(payload)

    def unwrap(
        self, payload: bytes, attributes: int, origin: _Origin, begin: int, found: list[bytes]
    ) -> None:
        """Append the payloads of the wrapper that begins there to `found`."""
        where = origin.at(begin)
        if origin.depth == MAX_NESTING:
            raise NestedTooDeep(where, f"deeper than {MAX_NESTING}")
        codec = attributes & CODEC_BITS
        inner = decompress(
            codec, payload, limit_bytes=self.left_bytes, where=where, known=CODECS_07
        )
        self.left_bytes -= len(inner)
        self.add_payloads(inner, origin.inside(begin), found)


# --- reading ---------------------------------------------------------------------------


def shallow(data: bytes, at_offset: int = 0) -> Iterator[Entry]:
    """Yield the entries as they are stored, without opening wrappers or checking CRCs."""
    for begin, end, magic, attributes, crc, payload in _walk(
        data, _Origin(at_offset), checks=False
    ):
        message = Message(payload, crc, attributes, magic)
        yield Entry(at_offset + begin, at_offset + end, message)


def messages_in(
    data: bytes, at_offset: int = 0, *, limit_bytes: int = LARGEST_FRAME_BYTES
) -> Iterator[MessageAndOffset]:
    """Yield the checked messages, also those in wrappers, with their next offsets.

    Raises a `LogError` at the first damaged entry.
    """
    unwrapping = _Unwrapping(limit_bytes)
    origin = _Origin(at_offset)
    for begin, end, _, attributes, _, payload in _walk(data, origin):
        if not attributes & CODEC_BITS:
            yield MessageAndOffset(at_offset + begin, at_offset + end, payload)
            continue
        inner: list[bytes] = []
        unwrapping.unwrap(payload, attributes, origin, begin, inner)
        # Only the last message moves the offset: a consumer that stops within a wrapper has to
        # read all of it again.
        for message in inner[:-1]:
            yield MessageAndOffset(at_offset + begin, at_offset + begin, message)
        for message in inner[-1:]:
            yield MessageAndOffset(at_offset + begin, at_offset + end, message)


def payloads(data: bytes, *, limit_bytes: int = LARGEST_FRAME_BYTES) -> list[bytes]:
    """Return the checked payloads, also those in wrappers: the fastest way to read a set."""
    found: list[bytes] = []
    _Unwrapping(limit_bytes).add_payloads(data, _Origin(), found)
    return found


# --- sizes -----------------------------------------------------------------------------


def valid_size(data: bytes) -> int:
    """Return the number of bytes that are whole entries, unchecked; the rest is a partial one."""
    size_bytes = 0
    for step in _walk(data, _Origin(), checks=False):
        size_bytes = step[1]
    return size_bytes


def intact_size(data: bytes) -> int:
    """Return the number of bytes from the start that are whole entries with correct CRCs.

    Recovery truncates a file there, whatever follows: a partial entry, zeros or other bytes.
    """
    size_bytes = _take_plain(data, [])
    with suppress(LogError):
        for step in _walk(data, _Origin(), begin=size_bytes):
            size_bytes = step[1]
    return size_bytes


def check_set(
    data: bytes,
    *,
    opens_wrappers: bool,
    largest_payload_bytes: int,
    limit_bytes: int = LARGEST_FRAME_BYTES,
) -> CheckedSet:
    """Check a set before it is appended, and drop the partial entry at its end.

    `largest_payload_bytes` limits payloads as they are stored: compressed, in a wrapper. With
    `opens_wrappers` the messages in wrappers are checked and counted; otherwise a wrapper
    counts as one message. Raises a `LogError`.
    """
    unwrapping = _Unwrapping(limit_bytes)
    origin = _Origin()
    message_count, size_bytes = _count_plain(data, largest_payload_bytes)
    for begin, end, _, attributes, _, payload in _walk(data, origin, begin=size_bytes):
        if len(payload) > largest_payload_bytes:
            detail = f"{len(payload)} bytes, {largest_payload_bytes} are allowed"
            raise MessageSizeTooLarge(origin.at(begin), detail)
        inner: list[bytes] = []
        if opens_wrappers and attributes & CODEC_BITS:
            unwrapping.unwrap(payload, attributes, origin, begin, inner)
            message_count += len(inner)
        else:
            message_count += 1
        size_bytes = end
    return CheckedSet(data[:size_bytes], message_count, size_bytes)
