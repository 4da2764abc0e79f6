"""Checks many messages at once, with one CRC pass over all of them.

A separate CRC for each message of a hundred bytes takes several Python calls a message, which
costs many times more than writing the messages. Here a message costs no call of its own.

Theory of operation
  The register of a CRC is ONES when a message begins, and the inverted CRC of the message when
  it ends. Further input continues from there, and

    - four bytes that equal the register set it to 0, and no others do;
    - zeros keep a register of 0;
    - the four bytes of BEGIN turn 0 into ONES.

  So the check makes a copy of some entries and overwrites each header: with the inverted stored
  CRC of the message before it, with zeros, and with BEGIN. One pass over that copy computes the
  CRC of each message and compares it with the stored one. If all are correct, the result is
  the stored CRC of the last message.

      copy      zeros BEGIN  payload  CRC zeros BEGIN  payload  CRC zeros BEGIN  payload
      register  0     ONES            0         ONES            0         ONES

What the check detects
  The same input never makes two different registers equal. So one damaged message is always
  detected, exactly as by a separate check. Several damaged messages in one block can cancel
  each other by chance once in 2**32 times: as often as a CRC misses damage anyway. A CRC does
  not protect against an attacker, who could also construct two wrong CRCs that cancel each
  other; only a check of each message finds those.

  The check does not find out which message is damaged. If a block does not pass as a whole, the
  caller checks its messages one after the other.

Finding the entries
  The start of an entry is known only from the end of the one before it. If all entries have the
  size of the first one, a single comparison shows it. If not, all positions that look like the
  header of an entry are found at once. If the first candidate is an entry and ends at the
  second one, the second is an entry as well, and so on. This is no guess: a candidate that is
  no header breaks the chain, and the chain ends before it.
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
"""As four little-endian bytes, it turns a register of 0 into ONES."""
BLOCK_BYTES = 256 * 1024
"""The size of one check: the copy of a block stays in the processor's cache."""
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
"""The bits of the first bytes of a header to compare, with the highest byte of the size."""
PLAIN = np.uint64(0x0000000100000000)
"""Magic 1, no attributes, and a size below 2**24."""
ZEROS_AND_BEGIN = np.uint64(BEGIN << 32)

Positions = slice | NDArray[np.int64]


class IntactPrefix(NamedTuple):
    """The intact entries at the beginning of a message set."""

    message_count: int
    size_bytes: int


class _Run(NamedTuple):
    """Consecutive whole and uncompressed entries; their CRCs are not checked yet."""

    begins: Positions
    message_count: int
    size_bytes: int


def intact_prefix(data: bytes, *, largest_payload_bytes: int) -> IntactPrefix:
    """Return the entries from the start that are plain, whole, intact and not too large.

    The result ends at the first other entry, or at most a block before it.
    """
    view = memoryview(data)
    largest_bytes = SMALLEST_BYTES + largest_payload_bytes
    message_count = at = 0
    while len(block := view[at : at + BLOCK_BYTES]) >= HEAD_BYTES:
        run = _run_of_one_size(block, largest_bytes) or _run(block, largest_bytes)
        if run is None or not _crcs_match(block[: run.size_bytes], run.begins):
            break
        message_count += run.message_count
        at += run.size_bytes
        # A sender could craft blocks with few recognizable entries, so that every byte is
        # scanned many times. Leave such data to the check of single messages.
        if 2 * run.size_bytes < len(block):
            break
    return IntactPrefix(message_count, at)


def entry_counts(sets: Sequence[bytes], *, largest_payload_bytes: int) -> list[int] | None:
    """Return the number of entries of each set; None unless all are plain, whole and intact.

    None as well if the sets exceed one block, are too small for a header, or if one of them is
    empty or holds a payload larger than `largest_payload_bytes`.
    """
    assert len(sets) > 1, "one set is checked by `intact_prefix`"
    block = memoryview(b"".join(sets))
    if not HEAD_BYTES <= len(block) <= BLOCK_BYTES or not all(sets):
        return None
    largest_bytes = SMALLEST_BYTES + largest_payload_bytes
    run = _run_of_one_size(block, largest_bytes)
    if run is None or run.size_bytes < len(block):
        run = _run(block, largest_bytes)
    if run is None or run.size_bytes < len(block) or not _crcs_match(block, run.begins):
        return None
    if isinstance(run.begins, slice):
        parts = [divmod(len(part), run.begins.step) for part in sets]
        return None if any(rest for _, rest in parts) else [count for count, _ in parts]
    ends = [*accumulate(map(len, sets[:-1]))]
    before = np.searchsorted(run.begins, ends)
    if before[-1] == run.message_count or run.begins[before].tolist() != ends:
        return None  # an entry continues in the next set
    return [end - begin for begin, end in pairwise([0, *before.tolist(), run.message_count])]


def _every(form: np.dtype[np.unsignedinteger], data: memoryview | bytearray, at: int = 0) -> Any:
    """Return a view of the overlapping numbers that begin at byte `at`, `at` + 1, and so on."""
    return np.ndarray((len(data) - at - form.itemsize + 1,), form, data, at, (1,))


# --- where entries begin ---------------------------------------------------------------


def _run_of_one_size(block: memoryview, largest_bytes: int) -> _Run | None:
    """Return all whole entries of a block if they have one size, else None."""
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
    """Return the entries of a block up to the first uncertain one; None without any."""
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


# --- the check -------------------------------------------------------------------------


def _crcs_match(entries: memoryview, begins: Positions) -> bool:
    """Whether every stored CRC is that of its payload."""
    crcs = _every(WORD, entries, CRC_AT)[begins].byteswap()
    before = ~crcs
    before[1:] = before[:-1]
    before[0] = 0
    copy = bytearray(entries)
    _every(LONG_WORD, copy, CRC_AT - 4)[begins] = ZEROS_AND_BEGIN
    _every(WORD, copy)[begins] = before
    return crc32(copy, ONES) == int(crcs[-1])
