"""Partitioners: they map a key to an index below the number of partitions.

The hash of the default partitioner is the same in every process; a hash that differs between
runs would scatter the messages of one key over all partitions. Kafka 0.7 uses Java's
`hashCode` and `abs`. For one hash in 2**32 this is negative, and the partition does not exist.
`murmur2` is the hash of later versions, without that fault.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from watchkeeper.model.actor.tasks import below
from watchkeeper.model.clients.errors import InvalidKey, InvalidPartition
from watchkeeper.model.zookeeper.java_hash_order import string_hash

Partitioner = Callable[[Any, int], Awaitable[int]]
"""Maps a key and the number of partitions to the index of a partition."""

WORD = 0xFFFFFFFF
LOWEST_INT = -(2**31)


async def at_random(key: Any, number: int) -> int:
    """Return a random partition, for any key."""
    return await below(number)


async def by_java_hash(key: str, number: int) -> int:
    """Return `abs(key.hashCode) % number` as Java computes it: negative for -2**31."""
    if not isinstance(key, str):
        raise InvalidKey(f"key {key!r}", "java takes text; murmur2 takes bytes, too")
    value = string_hash(key)
    return java_remainder(value if value == LOWEST_INT else abs(value), number)


async def by_murmur2(key: str | bytes, number: int) -> int:
    """Return murmur2 of the key's bytes without its sign: the default of later versions."""
    data = key.encode() if isinstance(key, str) else key
    if not isinstance(data, bytes):
        raise InvalidKey(f"key {key!r}", "murmur2 takes text or bytes")
    return (murmur2(data) & 0x7FFFFFFF) % number


def custom(choose: Callable[[Any, int], int]) -> Partitioner:
    """Make a partitioner from a plain function of the application."""

    async def chosen(key: Any, number: int) -> int:
        return choose(key, number)

    return chosen


PARTITIONERS: dict[str, Partitioner] = {
    "java": by_java_hash,
    "murmur2": by_murmur2,
    "random": at_random,
}
"""Partitioners by their name in `partitioner.class`."""


async def choose(partitioner: Partitioner, key: Any, number: int) -> int:
    """Choose one of `number` partitions; a random one without a key.

    Raises `InvalidPartition` if the partitioner returns an index outside of the range.
    """
    index = await below(number) if key is None else await partitioner(key, number)
    if not 0 <= index < number:
        raise InvalidPartition(f"key {key!r}", f"partition {index} of {number}")
    return index


def java_remainder(value: int, number: int) -> int:
    """Return the remainder as Java computes it: with the sign of the dividend."""
    return value % number if value >= 0 else -(-value % number)


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 with Kafka's seed, as a signed number."""
    multiplier, length = 0x5BD1E995, len(data)
    value = (0x9747B28C ^ length) & WORD
    tail = length - length % 4
    for at in range(0, tail, 4):
        part = int.from_bytes(data[at : at + 4], "little") * multiplier & WORD
        part = (part ^ part >> 24) * multiplier & WORD
        value = (value * multiplier & WORD) ^ part
    if length % 4:
        value = (value ^ int.from_bytes(data[tail:], "little")) * multiplier & WORD
    value = (value ^ value >> 13) * multiplier & WORD
    value ^= value >> 15
    return value - (1 << 32) if value >= 1 << 31 else value
