"""Checks the CRCs of many messages at once.

Theory
A CRC is linear. If A and B are messages and |B| is the length of B,

    crc(AB) = shift(crc(A), |B|) xor crc(B)

where `shift(c, n)` is the CRC c after n more zero bytes: a linear map of 32 bits, so that it can
be looked up byte by byte of c. It follows that the CRC of concatenated messages is the xor of
their CRCs, each shifted by the length behind it.

So one CRC is computed over all of them, by zlib and at its full speed, and compared with the one
that the stored CRCs give. A single wrong CRC always shows, since no shift maps a nonzero value to
zero; two or more cancel once in 2**32 times, as often as a CRC overlooks damage anyway. Only if
they differ is each message checked.

A shift by any number of bytes below 2**16 is two look-ups: one by its low byte, one by its high
byte. Messages are therefore taken in blocks, each of which ends within 2**16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from watchkeeper.pipeline.kafkalog.scan.formats import Flags, Places

Crcs = NDArray[np.uint32]
Table = NDArray[np.uint32]
"""Number of units, byte of the CRC, value of that byte -> shifted value."""

ONES = 0xFFFFFFFF
"""zlib's initial and final value, which takes no part in a shift."""
BYTE = 8
BLOCK_BITS = 2 * BYTE


def are_right(values: bytes | memoryview, offsets: Places, stored: Crcs) -> Flags | None:
    """Which messages have their stored CRC; None if all do.

    `values` holds the messages one after the other; message i is from `offsets[i]` to
    `offsets[i + 1]`.
    """
    if crc32(values) == _joined(stored, offsets[-1] - offsets[1:]):
        return None
    places = offsets.tolist()
    view = memoryview(values)
    found = (crc32(view[begin:end]) for begin, end in pairwise(places))
    right: Flags = np.fromiter(found, np.uint32, len(stored)) == stored
    return right


def _joined(crcs: Crcs, following: Places) -> int:
    """The CRC of all, from the CRC of each and how many bytes follow it."""
    if not len(crcs):
        return 0
    by_low, by_high = _tables()
    low = following & 0xFF
    high = following >> BYTE & 0xFF
    shifted = _looked_up(by_high, high, _looked_up(by_low, low, crcs))
    block = following >> BLOCK_BITS
    begins = np.flatnonzero(np.append(True, block[1:] != block[:-1]))
    joined, before = 0, int(block[0])
    for crc, at in zip(np.bitwise_xor.reduceat(shifted, begins), block[begins], strict=True):
        joined = _shifted_by_blocks(joined, before - int(at)) ^ int(crc)
        before = int(at)
    return _shifted_by_blocks(joined, before)


def _looked_up(table: Table, unit: Places, crcs: Crcs) -> Crcs:
    """Each CRC shifted by a number of units."""
    flat = table.reshape(-1)
    base = unit << 10
    found = flat[base + (crcs & 0xFF)]
    found ^= flat[base + (256 + (crcs >> 8 & 0xFF))]
    found ^= flat[base + (512 + (crcs >> 16 & 0xFF))]
    found ^= flat[base + (768 + (crcs >> 24))]
    return found


def _shifted_by_blocks(crc: int, blocks: int) -> int:
    """A CRC shifted by a number of blocks of 2**16 bytes."""
    by_block = _block_table()
    for _ in range(blocks):
        crc = (
            by_block[crc & 0xFF]
            ^ by_block[256 + (crc >> 8 & 0xFF)]
            ^ by_block[512 + (crc >> 16 & 0xFF)]
            ^ by_block[768 + (crc >> 24)]
        )
    return crc


@cache
def _block_table() -> list[int]:
    """The shift by 2**16 bytes, for each value of each byte."""
    by_high = _tables()[1]
    once = _looked_up(by_high, np.array([1]), by_high[0xFF].reshape(-1))
    return [int(number) for number in once]


@cache
def _tables() -> tuple[Table, Table]:
    """Shifts by 0 to 255 bytes, and by 0 to 255 times 256 bytes."""
    step = np.array([crc32(bytes([value]), ONES) ^ ONES for value in range(256)], np.uint32)
    by_low = _powers(lambda crcs: step[crcs & 0xFF] ^ (crcs >> 8))
    last = by_low[-1]

    def by_256(crcs: Crcs) -> Crcs:
        by_255 = last.reshape(-1)
        found = by_255[crcs & 0xFF]
        for place in (1, 2, 3):
            found = found ^ by_255[256 * place + (crcs >> 8 * place & 0xFF)]
        shifted: Crcs = step[found & 0xFF] ^ (found >> 8)
        return shifted

    return by_low, _powers(by_256)


def _powers(shift: Callable[[Crcs], Crcs]) -> Table:
    """The shift by 0, 1, 2 ... units, for each value of each byte."""
    values = np.arange(256, dtype=np.uint32)
    table = np.empty((256, 4, 256), np.uint32)
    table[0] = [values << 8 * place for place in range(4)]
    for times in range(1, 256):
        table[times] = shift(table[times - 1])
    return table
