"""The iteration order of a Java HashSet of strings.

ZooKeeper keeps the children of a znode, and the ephemerals of a session, in a
`java.util.HashSet<String>`, and lists them in the order of its table. That order is not
guaranteed, but every client sees it, and code that forgets to sort fails only because of
it. So it is reproduced here: a table of `capacity` buckets that doubles when it is three
quarters full and never shrinks, with the names of one bucket in the order of arrival.

One case is left out. When a bucket gets its ninth name, Java doubles a table of fewer than 64
buckets, and makes a tree of the bucket in a larger one, whose root is listed first from then
on. Names that clients choose rarely come to that: of 400 tables of 850 such names, filled in
the order of another table as a restart does it, one did.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from zlib import crc32

LOAD_FACTOR_PERCENT = 75
LONGEST_CACHED = 512
"""Longer names are not remembered: clients may send a megabyte, as often as they like."""


def string_hash(text: str) -> int:
    """Java's `String.hashCode`, over UTF-16 units, as a signed 32-bit number."""
    return _string_hash(text) if len(text) <= LONGEST_CACHED else _string_hash.__wrapped__(text)


@lru_cache(maxsize=65_536)
def _string_hash(text: str) -> int:
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def bucket(text: str, capacity: int) -> int:
    """Return the bucket that holds the text in a table of this capacity."""
    value = string_hash(text) & 0xFFFFFFFF
    return (value ^ value >> 16) & (capacity - 1)


def grown(capacity: int, size: int) -> int:
    """Return the capacity of a table that has grown to `size` entries."""
    while size * 100 > capacity * LOAD_FACTOR_PERCENT:
        capacity *= 2
    return capacity


def in_table_order(arrivals: Iterable[tuple[str, int]], capacity: int) -> tuple[str, ...]:
    """List names as a table of this capacity would, given (name, order of arrival)."""
    ordered = sorted(arrivals, key=lambda pair: (bucket(pair[0], capacity), pair[1]))
    return tuple(name for name, _ in ordered)


def in_clone_order(names: tuple[str, ...]) -> tuple[str, ...]:
    """List names as a clone of their table would, given them in that table's order.

    A clone sizes its table by the entries it finds, not by the table it copies.
    """
    wanted = len(names) * 100 // LOAD_FACTOR_PERCENT + 1
    capacity = 1
    while capacity < wanted:
        capacity *= 2
    return in_table_order(((name, at) for at, name in enumerate(names)), capacity)


def in_salted_order(names: Iterable[str], salt: int) -> tuple[str, ...]:
    """List names as another implementation might: in an order that the salt decides."""
    return tuple(sorted(names, key=lambda name: (crc32(name.encode(), salt), name)))
