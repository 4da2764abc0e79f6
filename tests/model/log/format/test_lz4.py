"""lz4: the frame as Kafka 0.8.2 writes it, as others write it, and damaged ones."""

from __future__ import annotations

import random

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.model.log.format.codecs import Codec, compress, decompress
from watchkeeper.model.log.format.errors import CorruptCompression, DecompressedTooLarge

KAFKA_08, DEFINED = 0x1A, 0x82
"""The checksum of the header in 0.8, and the one that the frame defines."""
HEADER = bytes.fromhex("04224d18 60 40 1a")
END = bytes(4)
NOISE = random.Random(8).randbytes(150_000)


def opened(data: bytes, limit_bytes: int = 1 << 20) -> bytes:
    return decompress(Codec.LZ4, data, limit_bytes=limit_bytes, where="byte 0")


def frame(*blocks: bytes, flags: int = 0x60, largest: int = 0x40, after: bytes = b"") -> bytes:
    """A frame of blocks that are not compressed."""
    sizes = [(len(block) | 1 << 31).to_bytes(4, "little") for block in blocks]
    parts = b"".join(size + block for size, block in zip(sizes, blocks, strict=True))
    return HEADER[:4] + bytes((flags, largest, KAFKA_08)) + parts + END + after


@given(st.binary(max_size=2000), st.integers(1, 100))
def test_what_is_written_is_read_and_is_a_frame_for_others(data: bytes, times: int) -> None:
    """With the checksum that the frame defines, the library reads it, too."""
    data *= times
    written = compress(Codec.LZ4, data)
    assert written.startswith(HEADER)
    assert written.endswith(END)
    assert opened(written) == data
    right = written[:6] + bytes((DEFINED,)) + written[7:]
    assert opened(right) == data
    assert bytes(cramjam.lz4.decompress(right)) == data


def test_noise_is_stored_as_it_is() -> None:
    written = compress(Codec.LZ4, NOISE)
    assert opened(written) == NOISE
    assert len(written) == len(HEADER) + len(NOISE) + 3 * 4 + len(END)


def test_a_block_has_at_most_64_kib() -> None:
    written = compress(Codec.LZ4, NOISE)
    assert written[7:11] == (65_536 | 1 << 31).to_bytes(4, "little")


def test_parts_that_kafka_does_not_write_are_stepped_over() -> None:
    """The size of the content, and checksums of blocks and content."""
    plain = frame(b"one", b"two")
    sized = plain[:4] + b"\x68" + plain[5:6] + bytes(8) + plain[6:]
    assert opened(plain) == opened(sized) == b"onetwo"
    assert opened(frame(b"one", flags=0x64, after=b"1234")) == b"one"
    checked = frame(b"one", flags=0x70)
    assert opened(checked[: -len(END)] + b"1234" + END) == b"one"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "does not begin as a frame"),
        (b"\x04\x22\x4d\x17" + bytes(7), "does not begin as a frame"),
        (frame(b"one", flags=0x40), "flags 0x40"),  # blocks that refer to each other
        (frame(b"one", flags=0xA0), "flags 0xa0"),  # another version
        (frame(b"one", flags=0x61), "flags 0x61"),  # a dictionary
        (frame(b"one", largest=0x30), "0x30"),
        (frame(b"one")[:-1], "no end among them"),
        (frame(b"one")[:9], "no end among them"),
        (frame(b"one", after=b"!"), "the end at 18"),
        (HEADER + b"\x03\0\0\0abc" + END, "a block that is damaged"),
    ],
)
def test_a_damaged_frame_is_an_error(data: bytes, why: str) -> None:
    with pytest.raises(CorruptCompression, match=why):
        opened(data)


def test_nothing_is_decompressed_beyond_the_limit() -> None:
    bomb = compress(Codec.LZ4, bytes(10 << 20))
    assert len(bomb) < 50_000
    for limit_bytes in (0, 1, 65_536, (10 << 20) - 1):
        with pytest.raises(DecompressedTooLarge):
            opened(bomb, limit_bytes)
    assert len(opened(bomb, 10 << 20)) == 10 << 20
