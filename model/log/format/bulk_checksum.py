"""Checks many messages at once: one pass of the CRC over all of them.

To compute the CRC of each message of a hundred bytes costs several calls in Python a message,
which is many times what it costs to write them. Here a message costs no call of its own.

The theory
  The register of a CRC is ONES when a message begins, and the CRC that belongs to the message,
  inverted, when it ends. What is fed to a register then goes on from there, and

    - four bytes that are equal to the register make it 0, and no others do;
    - zeros leave 0 as it is;
    - the four bytes of BEGIN make ONES of 0.

  So in a copy of some entries every head is overwritten: with the stored CRC of the message
  before it, inverted, with zeros, and with BEGIN. One pass over that copy computes the CRC of
  each message and compares it with the one that is stored. If all are right, it ends with that
  of the last one.

      copy      zeros BEGIN  payload  CRC zeros BEGIN  payload  CRC zeros BEGIN  payload
      register  0     ONES            0         ONES            0         ONES

What it can tell
  What follows is the same for all registers and undoes none of them: feeding the same bytes to
  two different registers never makes them equal. One message that is damaged therefore always
  shows, exactly as it does when each is checked alone. Several in one block can hide one
  another, which chance does once in 2**32 times: as often as a CRC overlooks damage anyway. A
  CRC is no protection from somebody who wants to do harm; such a one could also make two wrong
  CRCs that hide each other, and whoever checks each message alone will find them then.

  Which message it is does not come out of it. Nothing is said of a block that is not right as
  a whole: it is left to those who look at one message after the other.

Where an entry begins is known only from where the one before it ends. If all entries have the
size of the first one, that is seen by a comparison. If not, all places that look like the
head of an entry are found at once: if the first is one, and ends where the second is, so is
the second, and so on. Nothing is guessed; what looks like a head and is none ends the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

ONES = 0xFFFFFFFF
BEGIN = 0x9226F562
"""Read from the least byte on, it makes a register ONES that was 0."""
BLOCK_BYTES = 256 * 1024
"""How much is checked in one go: the copy of it stays in the processor's cache."""
HEAD_BYTES = 10
"""Size, magic, attributes, CRC."""
SMALLEST_BYTES = 6
"""The size of a message without a payload."""
SIZE_BYTES = 4
CRC_AT = 6

WORD = np.dtype("<u4")
LONG_WORD = np.dtype("<u8")
SIZE_AND_KIND = np.uint64(0x0000FFFFFFFFFFFF)
KIND = np.uint64(0x0000FFFF000000FF)
"""What of the first bytes of a head has to be right; the highest byte of the size as well."""
PLAIN = np.uint64(0x0000000100000000)
"""Magic 1, no attributes, and a size below 2**24."""
ZEROS_AND_BEGIN = np.uint64(BEGIN << 32)

Places = slice | NDArray[np.int64]


class Found(NamedTuple):
    """Undamaged entries, from the beginning of a message set on."""

    message_count: int
    size_bytes: int


class _Run(NamedTuple):
    """Whole and uncompressed entries that follow one another; their CRCs are not looked at."""

    begins: Places
    message_count: int
    size_bytes: int


def undamaged(data: bytes, *, largest_payload_bytes: int) -> Found:
    """How many entries from the start are plain, whole, undamaged, and no larger than that.

    It stops where one is not, or at most a block before that; and where less than half of a
    block is sure to be messages, since whoever sends such could have every byte looked at often.
    """
    view = memoryview(data)
    largest_bytes = SMALLEST_BYTES + largest_payload_bytes
    message_count = at = 0
    while len(block := view[at : at + BLOCK_BYTES]) >= HEAD_BYTES:
        run = _run_of_one_size(block, largest_bytes) or _run(block, largest_bytes)
        if run is None or not _are_right(block[: run.size_bytes], run.begins):
            break
        message_count += run.message_count
        at += run.size_bytes
        if 2 * run.size_bytes < len(block):
            break
    return Found(message_count, at)


def counts(sets: Sequence[bytes], *, largest_payload_bytes: int) -> list[int] | None:
    """How many entries each set has; None unless all are plain, whole, undamaged and not large.

    None as well if they are too much for one block, too little for a head, or if one of them
    is empty.
    """
    assert len(sets) > 1, "one set is checked by `undamaged`"
    block = memoryview(b"".join(sets))
    if not HEAD_BYTES <= len(block) <= BLOCK_BYTES or not all(sets):
        return None
    largest_bytes = SMALLEST_BYTES + largest_payload_bytes
    run = _run_of_one_size(block, largest_bytes)
    if run is None or run.size_bytes < len(block):
        run = _run(block, largest_bytes)
    if run is None or run.size_bytes < len(block) or not _are_right(block, run.begins):
        return None
    if isinstance(run.begins, slice):
        parts = [divmod(len(one), run.begins.step) for one in sets]
        return None if any(rest for _, rest in parts) else [count for count, _ in parts]
    ends = [*accumulate(map(len, sets[:-1]))]
    before = np.searchsorted(run.begins, ends)
    if before[-1] == run.message_count or run.begins[before].tolist() != ends:
        return None  # an entry goes on in the next set
    return [end - begin for begin, end in pairwise([0, *before.tolist(), run.message_count])]


def _every(form: np.dtype[np.unsignedinteger], data: memoryview | bytearray, at: int = 0) -> Any:
    """The numbers of this form that begin at a place, at the next one, and so on."""
    return np.ndarray((len(data) - at - form.itemsize + 1,), form, data, at, (1,))


# --- where entries begin ---------------------------------------------------------------


def _run_of_one_size(block: memoryview, largest_bytes: int) -> _Run | None:
    """All whole entries of a block, if they are of one size."""
    size = int.from_bytes(block[:SIZE_BYTES])
    entry_bytes = SIZE_BYTES + size
    if not SMALLEST_BYTES <= size <= largest_bytes or entry_bytes > len(block):
        return None
    count = len(block) // entry_bytes
    end = count * entry_bytes
    begins = slice(0, end, entry_bytes)
    heads = _every(LONG_WORD, block)[begins] & SIZE_AND_KIND
    first = heads[0]
    if first & KIND != PLAIN or np.count_nonzero(heads != first):
        return None
    return _Run(begins, count, end)


def _run(block: memoryview, largest_bytes: int) -> _Run | None:
    """The entries of a block up to the first of which it is not sure; None if it is of none."""
    magic = np.frombuffer(block, np.uint8)[SIZE_BYTES : len(block) - LONG_WORD.itemsize + 5]
    places = np.flatnonzero(magic == 1)
    heads = _every(LONG_WORD, block)[places]
    sizes = heads.astype(WORD).byteswap()
    seems = (heads & KIND == PLAIN) & (sizes >= SMALLEST_BYTES) & (sizes <= largest_bytes)
    begins = places[seems]
    ends = begins + SIZE_BYTES + sizes[seems]
    if not len(begins) or begins[0]:
        return None
    is_last = ends != np.append(begins[1:], -1)
    count = int(is_last.argmax()) + 1
    if ends[count - 1] > len(block):
        count -= 1
    if not count:
        return None
    return _Run(begins[:count], count, int(ends[count - 1]))


# --- what is in them -------------------------------------------------------------------


def _are_right(entries: memoryview, begins: Places) -> bool:
    """Whether the CRCs are those of the payloads."""
    crcs = _every(WORD, entries, CRC_AT)[begins].byteswap()
    before = ~crcs
    before[1:] = before[:-1]
    before[0] = 0
    copy = bytearray(entries)
    _every(LONG_WORD, copy, CRC_AT - 4)[begins] = ZEROS_AND_BEGIN
    _every(WORD, copy)[begins] = before
    return crc32(copy, ONES) == int(crcs[-1])
