"""The positions of the fields of entries, for many entries at once.

`watchkeeper.model.log` reads entries one after the other, and defines what they mean. Here the
same layouts are positions in an array of bytes, so that numpy reads a field of a hundred thousand
entries at once.

An entry of either format starts with its size, after an offset in 0.8: its start determines its
end. The CRC covers the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.model.log.format import message_08, message_set_07
from watchkeeper.model.log.format.codecs import CODECS_07, CODECS_08, Codec
from watchkeeper.model.log.format.message_07 import AFTER_MAGIC_0, AFTER_MAGIC_1
from watchkeeper.model.log.format.message_07 import CODEC_BITS as CODEC_BITS_07

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
"""Places in bytes, or lengths, or offsets."""
Flags = NDArray[np.bool_]

LIKELY_BYTES = 1 << 24
"""An entry of this size or more is not searched for; it is read when it is reached."""
BLOCK_BYTES = 1 << 16
"""The size of a block: its results stay in the processor's cache."""
UNREADABLE = -1
TOO_SHORT = 0


class Heads(NamedTuple):
    """The heads of some entries, an array a field."""

    checked_at: Places
    """Where the range of the CRC starts; it ends with the entry."""
    crc: NDArray[np.uint32]
    codec: Places
    fits: Flags
    """Whether the lengths in the entry add up to its size."""
    value_at: Places
    has_value: Flags
    """Where the value starts, which ends with the entry, if there is one."""
    key_at: Places
    key_end: Places
    has_key: Flags
    offset: Places | None
    """The offset in the entry; in 0.7 it is the position of the entry."""

    def part(self, cut: slice) -> Heads:
        """Those of some of the entries."""
        return Heads._make(None if column is None else column[cut] for column in self)


def int32s(data: bytes, at: Places) -> NDArray[np.int32]:
    """The 32-bit numbers at these places."""
    every = np.ndarray((max(len(data) - 3, 0),), ">i4", data, 0, (1,))
    return every[at].astype(np.int32)


def uint32s(data: bytes, at: Places) -> NDArray[np.uint32]:
    """The 32-bit numbers without a sign at these places."""
    return int32s(data, at).view(np.uint32)


def int64s(data: bytes, at: Places) -> Places:
    """The 64-bit numbers at these places."""
    every = np.ndarray((max(len(data) - 7, 0),), ">i8", data, 0, (1,))
    return every[at].astype(np.int64)


class Format:
    """The common part of both formats."""

    name = ""
    suffix = ""
    """How the names of segments end."""
    size_at = 0
    """The position of the size in an entry; the size counts what follows."""
    head_bytes = 0
    """The bytes of an entry that determine its end and whether it is possible."""
    smallest_bytes = 0
    """The least size that an entry can have."""
    codec_bits = 0
    codecs: frozenset[Codec] = frozenset()

    def likely(self, data: bytes) -> Places:
        """Where entries seem to start, in order: nearly all true starts, and few others."""
        array = np.frombuffer(data, np.uint8)
        count = len(array) - self.head_bytes
        blocks = [
            at + self._likely(array[at : min(at + BLOCK_BYTES, count) + self.head_bytes])
            for at in range(0, count, BLOCK_BYTES)
        ]
        found = np.concatenate(blocks) if blocks else np.zeros(0, np.int64)
        return found[int32s(data, found + self.size_at) >= self.smallest_bytes]

    def _likely(self, array: Bytes) -> Places:
        """The same, in a block; no entry starts in the last `head_bytes` of it."""
        raise NotImplementedError

    def step(self, data: bytes, at: int) -> int:
        """The end of the entry that starts at a place, within the data or not.

        `UNREADABLE` if none can start there, `TOO_SHORT` if the data end before its size is
        known.
        """
        raise NotImplementedError

    def ends(self, data: bytes, begins: Places) -> Places:
        """The ends of the entries that start at these places, none too near to the end."""
        return begins + (self.size_at + 4) + int32s(data, begins + self.size_at)

    def heads(self, data: bytes, begins: Places, ends: Places) -> Heads:
        """Read the heads of whole entries."""
        raise NotImplementedError


class Kafka07(Format):
    """Entries as `watchkeeper.model.log.format.message_set_07` has them; nearly all are of magic
    1."""

    name = "0.7"
    suffix = ".kafka"
    head_bytes = message_set_07.SIZE_AND_MAGIC.size + 1
    smallest_bytes = message_set_07.SMALLEST_BYTES[1]
    codec_bits = CODEC_BITS_07
    codecs = CODECS_07

    def _likely(self, array: Bytes) -> Places:
        """Magic 1 and a known codec, below the high byte of a size that is not large."""
        found = np.flatnonzero(array[4 : 4 - self.head_bytes] == 1)
        seems: Places = found[(array[found] == 0) & (array[found + 5] <= self.codec_bits)]
        return seems

    def step(self, data: bytes, at: int) -> int:
        """The size and the magic have to match."""
        if len(data) - at < message_set_07.SIZE_AND_MAGIC.size:
            return TOO_SHORT
        size, magic = message_set_07.SIZE_AND_MAGIC.unpack_from(data, at)
        smallest = message_set_07.SMALLEST_BYTES.get(magic)
        is_entry = smallest is not None and size >= smallest
        return at + message_set_07.SIZE.size + size if is_entry else UNREADABLE

    def heads(self, data: bytes, begins: Places, ends: Places) -> Heads:
        """The CRC covers the payload, and stands before it."""
        array = np.frombuffer(data, np.uint8)
        magic = array[begins + message_set_07.SIZE.size]
        after = np.array([AFTER_MAGIC_0.size, AFTER_MAGIC_1.size])[magic]
        payload_at = begins + message_set_07.SIZE_AND_MAGIC.size + after
        attributes = array[begins + message_set_07.SIZE_AND_MAGIC.size] * magic
        there, missing = np.ones(len(begins), bool), np.zeros(len(begins), bool)
        return Heads(
            checked_at=payload_at,
            crc=uint32s(data, payload_at - 4),
            codec=attributes.astype(np.int64) & self.codec_bits,
            fits=there,
            value_at=payload_at,
            has_value=there,
            key_at=payload_at,
            key_end=payload_at,
            has_key=missing,
            offset=None,
        )


class Kafka08(Format):
    """Entries as `watchkeeper.model.log.format.message_08` has them."""

    name = "0.8"
    suffix = ".log"
    size_at = message_08.OFFSET.size
    head_bytes = message_08.KEYLESS_ENTRY.size
    smallest_bytes = message_08.SMALLEST_MESSAGE_BYTES
    codec_bits = message_08.CODEC_BITS
    codecs = CODECS_08

    def _likely(self, array: Bytes) -> Places:
        """Magic 0 and a known codec, with an offset and a size that are not large.

        Small numbers start with zeros, so the places after the right one look right as well; of
        such a row the first is taken.
        """
        count = len(array) - self.head_bytes
        zero = array == 0
        seems = zero[:count] & zero[1 : count + 1]
        seems &= zero[8 : count + 8]
        seems &= zero[16 : count + 16]
        seems[1:] &= ~seems[:-1]
        found = np.flatnonzero(seems)
        return found[array[found + 17] <= self.codec_bits]

    def step(self, data: bytes, at: int) -> int:
        """The size has to be possible for a message; the CRC covers the rest."""
        if len(data) - at < self.head_bytes:
            return TOO_SHORT
        offset, size, _, magic, *_ = message_08.KEYLESS_ENTRY.unpack_from(data, at)
        is_entry = size >= message_08.SMALLEST_MESSAGE_BYTES and not magic and offset >= 0
        return at + message_08.CRC_AT + size if is_entry else UNREADABLE

    def heads(self, data: bytes, begins: Places, ends: Places) -> Heads:
        """The CRC covers everything behind it; a negative length means null."""
        key_bytes = int32s(data, begins + message_08.KEY_LENGTH_AT).astype(np.int64)
        has_key = key_bytes != message_08.NULL_LENGTH
        key_at = begins + message_08.KEY_AT
        key_end = key_at + np.where(has_key, key_bytes, 0)
        fits = (key_end >= key_at) & (key_end <= ends - 4)
        length_at = np.where(fits, key_end, key_at)
        value_bytes = int32s(data, length_at).astype(np.int64)
        has_value = value_bytes != message_08.NULL_LENGTH
        value_at = length_at + 4
        attributes = np.frombuffer(data, np.uint8)[begins + 17]
        fits &= value_at + np.where(has_value, value_bytes, 0) == ends
        return Heads(
            checked_at=begins + message_08.CRC_AT + 4,
            crc=uint32s(data, begins + message_08.CRC_AT),
            codec=attributes.astype(np.int64) & self.codec_bits,
            fits=fits,
            value_at=value_at,
            has_value=has_value,
            key_at=key_at,
            key_end=length_at,
            has_key=has_key,
            offset=int64s(data, begins),
        )


FORMATS: dict[str, Format] = {form.name: form for form in (Kafka07(), Kafka08())}
"""Release -> how its entries are laid out."""
