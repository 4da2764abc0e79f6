"""Which partition a message goes to: a number below that of the partitions there are.

The hash of the default partitioner is named, and the same in every process: a hash that
differs between runs would scatter the messages of one key over all partitions. Kafka 0.7
took Java's `hashCode` and `abs`, which for one value in four milliards is negative, and then
there is no such partition. `murmur2` is the hash that Kafka took later, without that flaw.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from model.clients.errors import InvalidKey, InvalidPartition
from model.threads import below
from model.zookeeper.java import string_hash

Partitioner = Callable[[Any, int], Awaitable[int]]
"""Given a key and how many partitions there are, which of them."""

WORD = 0xFFFFFFFF
LOWEST_INT = -(2**31)


async def at_random(key: Any, number: int) -> int:
    """Any partition, whatever the key."""
    return await below(number)


async def by_java_hash(key: str, number: int) -> int:
    """`abs(key.hashCode) % number` as Java computes it; negative for one hash of all."""
    if not isinstance(key, str):
        raise InvalidKey(f"key {key!r}", "java takes text; murmur2 takes bytes, too")
    value = string_hash(key)
    return java_remainder(value if value == LOWEST_INT else abs(value), number)


async def by_murmur2(key: str | bytes, number: int) -> int:
    """Kafka's later default: murmur2 of the key's bytes, without its sign."""
    data = key.encode() if isinstance(key, str) else key
    if not isinstance(data, bytes):
        raise InvalidKey(f"key {key!r}", "murmur2 takes text or bytes")
    return (murmur2(data) & 0x7FFFFFFF) % number


def custom(choose: Callable[[Any, int], int]) -> Partitioner:
    """A partitioner of one's own, from a function that asks for nothing."""

    async def chosen(key: Any, number: int) -> int:
        return choose(key, number)

    return chosen


PARTITIONERS: dict[str, Partitioner] = {
    "java": by_java_hash,
    "murmur2": by_murmur2,
    "random": at_random,
}
"""Those that have a name, for settings."""


async def choose(partitioner: Partitioner, key: Any, number: int) -> int:
    """Choose one of so many partitions; without a key, any of them."""
    index = await below(number) if key is None else await partitioner(key, number)
    if not 0 <= index < number:
        raise InvalidPartition(f"key {key!r}", f"partition {index} of {number}")
    return index


def java_remainder(value: int, number: int) -> int:
    """What is left of a division in Java: it has the sign of what is divided."""
    return value % number if value >= 0 else -(-value % number)


def murmur2(data: bytes) -> int:
    """MurmurHash 2 of 32 bits with Kafka's seed, as a signed number."""
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
