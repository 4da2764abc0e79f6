"""A message of Kafka 0.7: a payload, its checksum, and how the payload is to be read.

    magic 0   int8 magic, int32 CRC, payload
    magic 1   int8 magic, int8 attributes, int32 CRC, payload

The CRC is that of the payload alone: a damaged attribute or magic goes unnoticed. The two
lowest bits of the attributes name a codec; where they do, the payload is a compressed
message set and the message is a *wrapper*. Readers take both magics, writers write magic 1.
"""

from __future__ import annotations

import struct
import zlib

from msgspec import Struct

from model.log.codecs import Codec

MAGIC = struct.Struct(">B")
AFTER_MAGIC_0 = struct.Struct(">I")
"""CRC."""
AFTER_MAGIC_1 = struct.Struct(">BI")
"""Attributes, CRC."""
CODEC_BITS = 0x03
"""Which bits of the attributes name the codec."""


class Message(Struct, frozen=True, gc=False):
    """A message as it is stored. `crc` is what was stored, be it right or not."""

    payload: bytes
    crc: int
    attributes: int = 0
    magic: int = 1

    @staticmethod
    def of(payload: bytes, *, codec: Codec = Codec.NONE, magic: int = 1) -> Message:
        """Make the message of a payload."""
        assert magic == 1 or (magic == 0 and not codec), "magic 0 has no attributes"
        return Message(payload, zlib.crc32(payload), int(codec), magic)

    @property
    def is_valid(self) -> bool:
        """Whether the payload is still the one that the CRC was made of."""
        return zlib.crc32(self.payload) == self.crc

    @property
    def codec(self) -> int:
        """How the payload is compressed; a number that may be no `Codec`."""
        return self.attributes & CODEC_BITS

    def encode(self) -> bytes:
        """Write it, without the size that precedes it in a message set."""
        if self.magic == 0:
            head = AFTER_MAGIC_0.pack(self.crc)
        else:
            head = AFTER_MAGIC_1.pack(self.attributes, self.crc)
        return MAGIC.pack(self.magic) + head + self.payload
