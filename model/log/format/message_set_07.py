"""A message set of Kafka 0.7: messages one after the other, each after its size.

    entry           int32 size, message
    message set     entries, and at the end perhaps a part of one
    wrapper         a message whose payload is a compressed message set

The theory
  An offset is a position in bytes, so a broker cuts what it sends wherever the size that was
  asked for ends. The last entry may therefore be a part of one, and is dropped without a
  word. If *no* entry is whole, though, that is an error: it used to be taken for "nothing
  new", and a consumer whose fetch size was smaller than the next message asked for it for
  ever.

  A wrapper has one offset for all that is in it. Each message in it is handed out with the
  offset of the wrapper as the one to go on at, and only the last with its end: whoever stops
  in the middle reads the whole wrapper again. Nothing is cut inside of a wrapper, so a part
  of an entry is an error there. An empty set is compressed to an empty set, never to a
  wrapper round nothing.

One loop, `_walk`, knows where entries begin and end and what can be wrong with them; all else
here is a few lines on top of it. It cuts payloads out of `bytes`, which for small ones is faster
than a view. `_take_plain` is there for speed alone: it runs ahead through what is as it ought to
be, and leaves whatever is not to `_walk`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import msgspec

from model.log.codecs import Codec, compress, decompress
from model.log.contents import Contents
from model.log.errors import (
    InvalidMessage,
    InvalidMessageSize,
    LogError,
    MessageSizeTooLarge,
    NestedTooDeep,
    UnknownMagic,
)
from model.log.message import AFTER_MAGIC_0, AFTER_MAGIC_1, CODEC_BITS, Message
from model.log.wire import LARGEST_FRAME_BYTES

SIZE = Struct(">i")
SIZE_AND_MAGIC = Struct(">iB")
PLAIN_HEAD = Struct(">iHI")
"""Of an entry of magic 1: size, magic and attributes as one number, CRC."""
PLAIN = 0x0100
"""Magic 1 and no attributes."""
SMALLEST_BYTES = {0: 5, 1: 6}
"""Magic -> the size of a message without a payload."""
MANY_MESSAGES = 40  # so many are checked faster at once than one after the other
DEEPEST = 4
"""How many wrappers may stand around a message; one is what producers make."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An entry of a message set: where it begins, where it ends, and what it holds."""

    offset: int
    next_offset: int
    message: Message


class Numbered(msgspec.Struct, frozen=True, gc=False):
    """Stands for the payload of a message of a series: who made it, and its number."""

    producer: str
    number: int


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """A message as a consumer is handed it, and the offset at which to go on after it."""

    offset: int
    next_offset: int
    payload: bytes | Numbered


class Checked(msgspec.Struct, frozen=True):
    """What may be appended to a log: whole entries, each of which was checked."""

    contents: Contents
    message_count: int
    size_bytes: int


# --- writing ---------------------------------------------------------------------------


def encode(messages: Iterable[Message]) -> bytes:
    """Write messages as a set."""
    parts: list[bytes] = []
    for message in messages:
        encoded = message.encode()
        parts += (SIZE.pack(len(encoded)), encoded)
    return b"".join(parts)


def wrap(messages: Iterable[Message], codec: Codec) -> bytes:
    """Write messages as a set, compressed into one wrapper; none give an empty set."""
    inner = encode(messages)
    if codec is Codec.NONE or not inner:
        return inner
    return encode([Message.of(compress(codec, inner), codec=codec)])


# --- walking ---------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a set stands: from which offset of the log on, or in which wrapper."""

    offset: int = 0
    within: str = ""
    depth: int = 0

    def at(self, begin: int) -> str:
        """Where that is, for the sentence of an error."""
        return f"offset {self.offset + begin}{self.within}"

    def inside(self, begin: int) -> _Place:
        """The place of what is compressed in the wrapper that begins there."""
        return _Place(0, f" of what is compressed at {self.at(begin)}", self.depth + 1)


Step = tuple[int, int, int, int, int, bytes]
"""Where an entry begins and ends in the data, its magic, attributes, CRC, and payload."""


def _walk(data: bytes, place: _Place, *, begin: int = 0, checks: bool = True) -> Iterator[Step]:
    """Step from entry to entry, and check the CRC of each unless told not to."""
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
            raise _unreadable(size, magic, place.at(begin))
        if checks and crc32(payload) != crc:
            raise _damaged(crc, payload, place.at(begin))
        yield begin, end, magic, attributes, crc, payload
        begin = end
    if begin < limit and (begin == 0 or place.depth):
        raise _incomplete(data, begin, place.at(begin))


def _take_plain(
    data: bytes, found: list[bytes], *, largest_payload_bytes: int = LARGEST_FRAME_BYTES
) -> int:
    """Add the payloads of plain entries up to the first that is not; where that begins.

    It judges nothing: at whatever is not whole, uncompressed, of magic 1, undamaged and no
    larger than that it stops, and `_walk` goes on there.
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
    """The same without the payloads: how many entries, and where the first begins that is not."""
    if are_many(data, len(data)):
        from model.log import at_once  # numpy, which nobody needs who appends a few messages

        found = at_once.undamaged(data, largest_payload_bytes=largest_payload_bytes)
        if found.message_count:
            return found
    plain: list[bytes] = []
    size_bytes = _take_plain(data, plain, largest_payload_bytes=largest_payload_bytes)
    return len(plain), size_bytes


def are_many(data: bytes, size_bytes: int) -> bool:
    """Whether so much is many messages, if all are as large as the first of this set."""
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
    """Takes messages out of wrappers, and out of wrappers within them, up to a limit.

    The limit holds for all that one call decompresses together: a small set can hold many
    wrappers, each of which holds much.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.left_bytes = limit_bytes

    def add_payloads(self, data: bytes, place: _Place, found: list[bytes]) -> None:
        """Add the payloads of a set to what was found."""
        plain_bytes = _take_plain(data, found)
        for begin, _, _, attributes, _, payload in _walk(data, place, begin=plain_bytes):
            if attributes & CODEC_BITS:
                self.unwrap(payload, attributes, place, begin, found)
            else:
                found.append(payload)

    def unwrap(
        self, payload: bytes, attributes: int, place: _Place, begin: int, found: list[bytes]
    ) -> None:
        """Add the payloads in the wrapper that begins there to what was found."""
        where = place.at(begin)
        if place.depth == DEEPEST:
            raise NestedTooDeep(where, f"deeper than {DEEPEST}")
        codec = attributes & CODEC_BITS
        inner = decompress(codec, payload, limit_bytes=self.left_bytes, where=where)
        self.left_bytes -= len(inner)
        self.add_payloads(inner, place.inside(begin), found)


# --- reading ---------------------------------------------------------------------------


def shallow(data: bytes, at_offset: int = 0) -> Iterator[Entry]:
    """The entries as they are stored: wrappers unopened, CRCs unchecked."""
    for begin, end, magic, attributes, crc, payload in _walk(
        data, _Place(at_offset), checks=False
    ):
        message = Message(payload, crc, attributes, magic)
        yield Entry(at_offset + begin, at_offset + end, message)


def deep(
    data: bytes, at_offset: int = 0, *, limit_bytes: int = LARGEST_FRAME_BYTES
) -> Iterator[Delivered]:
    """The messages, checked, also those in wrappers, each with the offset to go on at."""
    unwrapping = _Unwrapping(limit_bytes)
    place = _Place(at_offset)
    for begin, end, _, attributes, _, payload in _walk(data, place):
        if not attributes & CODEC_BITS:
            yield Delivered(at_offset + begin, at_offset + end, payload)
            continue
        inner: list[bytes] = []
        unwrapping.unwrap(payload, attributes, place, begin, inner)
        for one in inner[:-1]:
            yield Delivered(at_offset + begin, at_offset + begin, one)
        for one in inner[-1:]:
            yield Delivered(at_offset + begin, at_offset + end, one)


def payloads(data: bytes, *, limit_bytes: int = LARGEST_FRAME_BYTES) -> list[bytes]:
    """The payloads alone, checked, also those in wrappers: the fastest way to read a set."""
    found: list[bytes] = []
    _Unwrapping(limit_bytes).add_payloads(data, _Place(), found)
    return found


# --- sizes -----------------------------------------------------------------------------


def valid_size(data: bytes) -> int:
    """How many bytes are whole entries, unchecked; the rest is the part of one."""
    size_bytes = 0
    for step in _walk(data, _Place(), checks=False):
        size_bytes = step[1]
    return size_bytes


def whole_entries(data: bytes) -> int:
    """How many bytes from the start are whole entries with right CRCs.

    Recovery cuts a file there, whatever follows: a part of an entry, zeros, anything.
    """
    size_bytes = _take_plain(data, [])
    with suppress(LogError):
        for step in _walk(data, _Place(), begin=size_bytes):
            size_bytes = step[1]
    return size_bytes


def checked(
    data: bytes,
    *,
    deep: bool,
    largest_payload_bytes: int,
    limit_bytes: int = LARGEST_FRAME_BYTES,
) -> Checked:
    """Check a set before it is appended, and cut off the part of an entry at its end.

    The size is that of payloads as they are stored, so that of wrappers. `deep` opens
    wrappers, to check and count what is in them; otherwise a wrapper counts as one message.
    """
    unwrapping = _Unwrapping(limit_bytes)
    place = _Place()
    message_count, size_bytes = _count_plain(data, largest_payload_bytes)
    for begin, end, _, attributes, _, payload in _walk(data, place, begin=size_bytes):
        if len(payload) > largest_payload_bytes:
            detail = f"{len(payload)} bytes, {largest_payload_bytes} are allowed"
            raise MessageSizeTooLarge(place.at(begin), detail)
        inner: list[bytes] = []
        if deep and attributes & CODEC_BITS:
            unwrapping.unwrap(payload, attributes, place, begin, inner)
            message_count += len(inner)
        else:
            message_count += 1
        size_bytes = end
    return Checked(data[:size_bytes], message_count, size_bytes)
