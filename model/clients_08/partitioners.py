"""The default partitioner of 0.8: Java's hash, without the fault of 0.7."""

from __future__ import annotations

from watchkeeper.model.clients.errors import InvalidKey
from watchkeeper.model.clients.producer.partitioners import LOWEST_INT, WORD
from watchkeeper.model.zookeeper.java_hash_order import string_hash


async def by_java_hash_08(key: str | bytes, number: int) -> int:
    """Return `Utils.abs(hash) % number`, which takes 0 for -2**31.

    The hash of text is that of `DefaultPartitioner`, the hash of bytes that of
    `ByteArrayPartitioner`: `DefaultPartitioner` hashes the identity of an array of bytes.
    """
    if isinstance(key, str):
        value = string_hash(key)
    elif isinstance(key, bytes):
        value = array_hash(key)
    else:
        raise InvalidKey(f"key {key!r}", "java takes text or bytes")
    return 0 if value == LOWEST_INT else abs(value) % number


def array_hash(data: bytes) -> int:
    """Return Java's `Arrays.hashCode` of bytes, as a signed number."""
    value = 1
    for byte in data:
        value = (31 * value + (byte - 256 if byte > 127 else byte)) & WORD
    return value - (1 << 32) if value >= 1 << 31 else value
