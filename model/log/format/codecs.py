"""The compression of message sets: gzip, and snappy in the framing of snappy-java.

Compressed data come from other programs and are not trusted: nothing is decompressed beyond a
limit, and every defect raises a `LogError`.

    gzip     one member of RFC 1952, with time 0 and no operating system, so that equal
             messages give equal bytes
    snappy   8 bytes magic, int32 version, int32 oldest compatible version; then blocks, each
             after its compressed size as int32. Data without the magic are one block without
             a size, as clients in languages other than Java wrote it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct

import cramjam

from watchkeeper.model.log.format.errors import (
    CorruptCompression,
    DecompressedTooLarge,
    UnknownCodec,
)


class Codec(IntEnum):
    """The codec of a message, by its number in the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2


GZIP_HEADER = bytes.fromhex("1f8b08 00 00000000 00 ff")
GZIP_TRAILER = Struct("<II")
DEFLATE_WITH_GZIP_HEADER = 31
DEFLATE_BARE = -15
GZIP_LEVEL = 6

SNAPPY_MAGIC = b"\x82SNAPPY\0"
SNAPPY_VERSIONS = Struct(">ii")
SNAPPY_HEADER = SNAPPY_MAGIC + SNAPPY_VERSIONS.pack(1, 1)
SNAPPY_BLOCK_BYTES = 32 * 1024
BLOCK_SIZE = Struct(">i")


# --- gzip ------------------------------------------------------------------------------


def _gzip(data: bytes) -> bytes:
    deflate = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, DEFLATE_BARE)
    trailer = GZIP_TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((GZIP_HEADER, deflate.compress(data), deflate.flush(), trailer))


def _gunzip(data: bytes, limit_bytes: int, where: str) -> bytes:
    inflate = zlib.decompressobj(DEFLATE_WITH_GZIP_HEADER)
    # One byte more than allowed shows that there is more, without decompressing it all: a few
    # kilobytes of gzip can expand to gigabytes.
    try:
        found = inflate.decompress(data, limit_bytes + 1)
    except zlib.error as error:
        raise CorruptCompression(where, f"gzip: {error}") from None
    if len(found) > limit_bytes:
        raise DecompressedTooLarge(where, f"gzip: more than {limit_bytes} bytes")
    if not inflate.eof:
        raise CorruptCompression(where, f"gzip: {len(data)} bytes, and no end among them")
    if inflate.unused_data:
        excess = len(inflate.unused_data)
        raise CorruptCompression(where, f"gzip: {excess} bytes follow the end")
    return found


# --- snappy ----------------------------------------------------------------------------


def _snappy(data: bytes) -> bytes:
    parts = [SNAPPY_HEADER]
    for begin in range(0, len(data), SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[begin : begin + SNAPPY_BLOCK_BYTES]))
        parts += (BLOCK_SIZE.pack(len(block)), block)
    return b"".join(parts)


def _unsnappy(data: bytes, limit_bytes: int, where: str) -> bytes:
    found: list[bytearray] = []
    left_bytes = limit_bytes
    for block in _snappy_blocks(data, where):
        found.append(_unsnappy_block(block, left_bytes, where))
        left_bytes -= len(found[-1])
    return b"".join(found)


def _snappy_blocks(data: bytes, where: str) -> Iterator[bytes]:
    if not data.startswith(SNAPPY_MAGIC):
        yield data
        return
    at, end = len(SNAPPY_HEADER), len(data)
    while end - at >= BLOCK_SIZE.size:
        (size,) = BLOCK_SIZE.unpack_from(data, at)
        at += BLOCK_SIZE.size
        if not 0 < size <= end - at:
            raise CorruptCompression(where, f"snappy: a block of {size} bytes in {end - at}")
        yield data[at : at + size]
        at += size
    if at != end:
        raise CorruptCompression(where, f"snappy: cut after {end} bytes")


def _unsnappy_block(block: bytes, limit_bytes: int, where: str) -> bytearray:
    # Snappy stores the decompressed size in front; check it before allocating the buffer.
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit_bytes:
            raise DecompressedTooLarge(where, f"snappy: {size} bytes, {limit_bytes} are allowed")
        found = bytearray(size)
        cramjam.snappy.decompress_raw_into(block, found)
    except cramjam.DecompressionError as error:
        raise CorruptCompression(where, str(error)) from None
    return found


# --- by number -------------------------------------------------------------------------

Compress = Callable[[bytes], bytes]
Decompress = Callable[[bytes, int, str], bytes]

CODECS: dict[int, tuple[Compress, Decompress]] = {
    Codec.GZIP: (_gzip, _gunzip),
    Codec.SNAPPY: (_snappy, _unsnappy),
}
"""Codec -> its functions."""


def compress(codec: int, data: bytes) -> bytes:
    """Compress with a codec; equal data give equal bytes."""
    return CODECS[codec][0](data)


def decompress(codec: int, data: bytes, *, limit_bytes: int, where: str) -> bytes:
    """Decompress to at most `limit_bytes`; `where` is the position for error texts.

    Raises `UnknownCodec`, `CorruptCompression` or `DecompressedTooLarge`.
    """
    if codec not in CODECS:
        known = ", ".join(f"{item.value} ({item.name.lower()})" for item in Codec)
        raise UnknownCodec(where, f"codec {codec}; known are {known}")
    return CODECS[codec][1](data, limit_bytes, where)
