"""The compression of message sets: gzip, snappy in the framing of snappy-java, and lz4.

Compressed data come from other programs and are not trusted: nothing is decompressed beyond a
limit, and every defect raises a `LogError`.

    gzip     one member of RFC 1952, with time 0 and no operating system, so that equal
             messages give equal bytes
    snappy   8 bytes magic, int32 version, int32 oldest compatible version; then blocks, each
             after its compressed size as int32. Data without the magic are one block without
             a size, as clients in languages other than Java wrote it.
    lz4      the LZ4 frame, as of Kafka 0.8.2: magic, two bytes of flags and block size, a
             checksum of the header; then blocks, each after its size; then size 0. Kafka 0.8
             computes the checksum over the magic as well, against the definition of the frame,
             and refuses the right one; later versions write the right one. It is written here
             as 0.8 does, and not read: the CRC of the message covers it.
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
    LZ4 = 3
    """Of 0.8.2 and later."""


CODECS_07 = frozenset({Codec.NONE, Codec.GZIP, Codec.SNAPPY})
CODECS_08 = frozenset(Codec)

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

LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_FLAGS, LZ4_BLOCKS_OF_64_KIB = 0x60, 0x40
"""Version 1 of the frame, with blocks that do not refer to each other; no other flag."""
LZ4_CHECKSUM_OF_0_8 = 0x1A
LZ4_HEADER = LZ4_MAGIC + bytes((LZ4_FLAGS, LZ4_BLOCKS_OF_64_KIB, LZ4_CHECKSUM_OF_0_8))
LZ4_BLOCK_BYTES = 64 * 1024
LZ4_VERSION, LZ4_INDEPENDENT, LZ4_BLOCK_CHECKSUM = 0xC0, 0x20, 0x10
LZ4_CONTENT_SIZE, LZ4_CONTENT_CHECKSUM, LZ4_REST = 0x08, 0x04, 0x03
"""The parts of the flags."""
LZ4_LARGEST = {number: 1 << (8 + 2 * number) for number in range(4, 8)}
"""Number in the header -> the largest size of a block: 64 KiB to 4 MiB."""
LZ4_SIZE = Struct("<I")
LZ4_PLAIN = 1 << 31
"""In the size of a block: it is not compressed."""


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


# --- lz4 -------------------------------------------------------------------------------


def _lz4(data: bytes) -> bytes:
    parts = [LZ4_HEADER]
    for begin in range(0, len(data), LZ4_BLOCK_BYTES):
        plain = data[begin : begin + LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += (LZ4_SIZE.pack(len(block)), block)
        else:
            parts += (LZ4_SIZE.pack(len(plain) | LZ4_PLAIN), plain)
    parts.append(LZ4_SIZE.pack(0))
    return b"".join(parts)


def _unlz4(data: bytes, limit_bytes: int, where: str) -> bytes:
    found: list[bytes] = []
    left_bytes = limit_bytes
    for block, is_plain, most_bytes in _lz4_blocks(data, where):
        most_bytes = min(most_bytes, max(left_bytes, LZ4_BLOCK_BYTES))
        found.append(block if is_plain else _unlz4_block(block, most_bytes, where))
        left_bytes -= len(found[-1])
        if left_bytes < 0:
            raise DecompressedTooLarge(where, f"lz4: more than {limit_bytes} bytes")
    return b"".join(found)


def _lz4_blocks(data: bytes, where: str) -> Iterator[tuple[bytes, bool, int]]:
    """Yield each block, whether it is plain, and the largest size that it may have."""
    flags, largest_bytes, at = _lz4_header(data, where)
    after_block = LZ4_SIZE.size if flags & LZ4_BLOCK_CHECKSUM else 0
    while at + LZ4_SIZE.size <= len(data):
        (size,) = LZ4_SIZE.unpack_from(data, at)
        at += LZ4_SIZE.size
        if not size:
            at += LZ4_SIZE.size if flags & LZ4_CONTENT_CHECKSUM else 0
            if at != len(data):
                raise CorruptCompression(where, f"lz4: {len(data)} bytes, and the end at {at}")
            return
        is_plain = size >= LZ4_PLAIN
        end = at + (size & ~LZ4_PLAIN)
        if end + after_block > len(data):
            break
        yield data[at:end], is_plain, largest_bytes
        at = end + after_block
    raise CorruptCompression(where, f"lz4: {len(data)} bytes, and no end among them")


def _lz4_header(data: bytes, where: str) -> tuple[int, int, int]:
    """Return the flags of a frame, the largest size of a block, and where the blocks begin."""
    if len(data) < len(LZ4_HEADER) or not data.startswith(LZ4_MAGIC):
        raise CorruptCompression(where, "lz4: it does not begin as a frame")
    flags, block_bytes = data[4], data[5]
    is_known = flags & LZ4_VERSION == 0x40 and not flags & LZ4_REST
    if not is_known or not flags & LZ4_INDEPENDENT or block_bytes >> 4 not in LZ4_LARGEST:
        raise CorruptCompression(where, f"lz4: a frame with flags {flags:#x}, {block_bytes:#x}")
    content_size_bytes = 8 if flags & LZ4_CONTENT_SIZE else 0
    return flags, LZ4_LARGEST[block_bytes >> 4], len(LZ4_HEADER) + content_size_bytes


def _unlz4_block(block: bytes, most_bytes: int, where: str) -> bytes:
    # The decompressed size of a block is stored nowhere, only the largest one of the frame.
    buffer = bytearray(most_bytes)
    try:
        size_bytes = cramjam.lz4.decompress_block_into(block, buffer)
    except cramjam.DecompressionError:
        detail = f"lz4: a block that is damaged, or of more than {most_bytes} bytes"
        raise CorruptCompression(where, detail) from None
    return bytes(memoryview(buffer)[:size_bytes])


# --- by number -------------------------------------------------------------------------

Compress = Callable[[bytes], bytes]
Decompress = Callable[[bytes, int, str], bytes]

CODECS: dict[int, tuple[Compress, Decompress]] = {
    Codec.GZIP: (_gzip, _gunzip),
    Codec.SNAPPY: (_snappy, _unsnappy),
    Codec.LZ4: (_lz4, _unlz4),
}
"""Codec -> its functions."""


def compress(codec: int, data: bytes) -> bytes:
    """Compress with a codec; equal data give equal bytes."""
    return CODECS[codec][0](data)


def decompress(
    codec: int,
    data: bytes,
    *,
    limit_bytes: int,
    where: str,
    known: frozenset[Codec] = CODECS_08,
) -> bytes:
    """Decompress to at most `limit_bytes`; `where` is the position for error texts.

    Raises `UnknownCodec` for a codec that is not `known`, `CorruptCompression` or
    `DecompressedTooLarge`.
    """
    if codec not in known:
        names = ", ".join(f"{item.value} ({item.name.lower()})" for item in sorted(known))
        raise UnknownCodec(where, f"codec {codec}; known are {names}")
    return CODECS[codec][1](data, limit_bytes, where)
