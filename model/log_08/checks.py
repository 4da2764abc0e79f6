"""Message sets of 0.8: checked before an append, numbered during it.

The offsets of a set are known only when its turn to be appended comes. All that does not depend
on them is done before: CRCs are checked, wrappers are decompressed, entries are found. What is
left for the turn is to write the offsets, and to compress wrappers again.

Kafka 0.8.2.2: Log.append, ByteBufferMessageSet.assignOffsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from watchkeeper.model.log.format.codecs import compress
from watchkeeper.model.log.format.errors import MessageSizeTooLarge
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES
from watchkeeper.model.log.format.message_08 import (
    CODEC_BITS,
    KEY_AT,
    LENGTH,
    NULL_LENGTH,
    OFFSET,
    SMALLEST_MESSAGE_BYTES,
    KeyedMessage,
    Unwrapping,
    encode,
    entries,
)
from watchkeeper.model.log_08.index import INTERVAL_BYTES

PLAIN_HEAD = Struct(">8xiIHii")
"""Of an entry: size, CRC, magic and attributes, length of the key, length of the value without a
key."""
OTHER_KINDS = 0xFF << 8 | CODEC_BITS
"""The bits of magic and attributes that a plain message does not have."""
CRC_END = 16
ENTRY_HEAD_BYTES = 12
"""The offset and the size of an entry, which `message.max.bytes` counts (from 1,000,000 + 12)."""


class Run(NamedTuple):
    """Successive entries: of a set, or of what one wrapper holds."""

    data: bytearray
    begins: Sequence[int]
    """Where each entry begins."""
    codec: int = 0
    """That of the wrapper; 0: there is none."""


class NumberedSet(NamedTuple):
    """A message set with its offsets, as it is written."""

    data: bytes
    next_offset: int
    marks: Sequence[tuple[int, int]]
    """Some of its offsets, every few kilobytes, and where they are in the data."""


class CheckedSet(NamedTuple):
    """A message set without defects, whose offsets are not assigned yet."""

    runs: tuple[Run, ...]
    message_count: int
    size_bytes: int
    """As it came; compressed again, it may be a little smaller or larger."""

    def numbered(self, first_offset: int) -> NumberedSet:
        """Assign consecutive offsets to all messages. This may be done once."""
        parts: list[bytes] = []
        marks: list[tuple[int, int]] = []
        offset, position = first_offset, 0
        for data, begins, codec in self.runs:
            if codec:
                marks.append((offset, position))
            else:
                step = -(-len(begins) * INTERVAL_BYTES // len(data))
                marks += [
                    (offset + number, position + begins[number])
                    for number in range(0, len(begins), step)
                ]
            pack_into = OFFSET.pack_into
            for number, at in enumerate(begins, offset):
                pack_into(data, at, number)
            offset += len(begins)
            parts.append(_wrapped(data, codec, offset - 1) if codec else bytes(data))
            position += len(parts[-1])
        return NumberedSet(parts[0] if len(parts) == 1 else b"".join(parts), offset, marks)


def _wrapped(inner: bytearray, codec: int, last_offset: int) -> bytes:
    wrapper = KeyedMessage(None, compress(codec, bytes(inner)), codec)
    return encode([wrapper], last_offset)


def check_set(
    data: bytes, *, largest_entry_bytes: int, limit_bytes: int = LARGEST_FRAME_BYTES
) -> CheckedSet:
    """Check a message set, without the partial entry at its end.

    Raises `MessageSizeTooLarge` for an entry above the limit, compressed or not, and another
    `LogError` for a defect. Nested wrappers become one; a wrapper of no messages is dropped.
    """
    fast = _plain(data, largest_entry_bytes)
    if fast is not None:
        begins, whole_bytes = fast
        run = Run(bytearray(memoryview(data)[:whole_bytes]), begins)
        return CheckedSet((run,), len(begins), whole_bytes)
    unwrapping = Unwrapping(limit_bytes)
    runs: list[Run] = []
    plain: list[int] = []
    plain_from = end = 0
    for begin, end, _, attributes, _, value in entries(data):
        if end - begin > largest_entry_bytes:
            raise _too_large(f"byte {begin}", end - begin, largest_entry_bytes)
        if not attributes & CODEC_BITS:
            plain.append(begin - plain_from)
            continue
        if plain:
            runs.append(Run(bytearray(data[plain_from:begin]), plain))
        inner = _unwrapped(unwrapping, attributes, value, f"byte {begin}")
        if inner.begins:
            runs.append(inner)
        plain, plain_from = [], end
    if plain:
        runs.append(Run(bytearray(data[plain_from:end]), plain))
    count = sum(len(run.begins) for run in runs)
    return CheckedSet(tuple(runs), count, end)


def _plain(data: bytes, largest_entry_bytes: int) -> tuple[list[int], int] | None:
    """Return where the entries begin, and where the last whole one ends.

    None for all that is not plain and right, which `check_set` looks at again: this loop is what
    an append of plain messages costs, so it does nothing but what each of them needs.
    """
    begins: list[int] = []
    add, unpack, view = begins.append, PLAIN_HEAD.unpack_from, memoryview(data)
    at, limit = 0, len(data)
    while limit - at >= PLAIN_HEAD.size:
        size, crc, kind, key_bytes, value_bytes = unpack(data, at)
        end = at + ENTRY_HEAD_BYTES + size
        if end > limit:
            break
        if kind & OTHER_KINDS or size < SMALLEST_MESSAGE_BYTES or end - at > largest_entry_bytes:
            return None
        if key_bytes != NULL_LENGTH:
            value_length_at = at + KEY_AT + key_bytes
            if not at < value_length_at <= end - LENGTH.size:
                return None
            (value_bytes,) = LENGTH.unpack_from(data, value_length_at)
            value_at = value_length_at + LENGTH.size
        else:
            value_at = at + PLAIN_HEAD.size
        if value_at + (0 if value_bytes == NULL_LENGTH else value_bytes) != end:
            return None
        if crc32(view[at + CRC_END : end]) != crc:
            return None
        add(at)
        at = end
    return (begins, at) if begins else None


def _unwrapped(unwrapping: Unwrapping, attributes: int, value: bytes | None, where: str) -> Run:
    """Return the messages of a wrapper, and of the wrappers in it, as one run."""
    codec = attributes & CODEC_BITS
    inner = unwrapping.opened(attributes, value, where)
    fast = _plain(inner, len(inner))
    if fast is not None and fast[1] == len(inner):
        return Run(bytearray(inner), fast[0], codec)
    data, begins = bytearray(), []
    for record in unwrapping.records(inner, f"what is compressed at {where}, byte", depth=1):
        begins.append(len(data))
        data += encode([KeyedMessage(record.key, record.value)])
    return Run(data, begins, codec)


def _too_large(where: str, size_bytes: int, most_bytes: int) -> MessageSizeTooLarge:
    return MessageSizeTooLarge(where, f"{size_bytes} bytes; at most {most_bytes} are accepted")
