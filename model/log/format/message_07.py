"""A message of Kafka 0.7: a payload, its checksum, and its codec.

    magic 0   int8 magic, int32 CRC, payload
    magic 1   int8 magic, int8 attributes, int32 CRC, payload

The CRC covers the payload alone: a damaged attribute or magic is not detected. The two lowest
bits of the attributes are the codec. With a codec the payload is a compressed message set, and
the message is a *wrapper*. Readers accept both magics, writers write magic 1.
"""

from __future__ import annotations

import struct
import zlib

from msgspec import Struct

from watchkeeper.model.log.format.codecs import Codec

MAGIC = struct.Struct(">B")
AFTER_MAGIC_0 = struct.Struct(">I")
"""CRC."""
AFTER_MAGIC_1 = struct.Struct(">BI")
"""Attributes, CRC."""
CODEC_BITS = 0x03
"""The bits of the attributes that hold the codec."""


class Message(Struct, frozen=True, gc=False):
    """A message as it is stored; `crc` is the stored checksum, which may be wrong."""

    payload: bytes
    crc: int
    attributes: int = 0
    magic: int = 1

    @staticmethod
    def of(payload: bytes, *, codec: Codec = Codec.NONE, magic: int = 1) -> Message:
        """Return the message of a payload."""
        assert magic == 1 or (magic == 0 and not codec), "magic 0 has no attributes"
        return Message(payload, zlib.crc32(payload), int(codec), magic)

    @property
    def is_valid(self) -> bool:
        """Whether the CRC is that of the payload."""
        return zlib.crc32(self.payload) == self.crc

    @property
    def codec(self) -> int:
        """The codec of the payload; a number that may be no `Codec`."""
        return self.attributes & CODEC_BITS

    def encode(self) -> bytes:
        """Encode the message, without the size that precedes it in a message set."""
        if self.magic == 0:
            head = AFTER_MAGIC_0.pack(self.crc)
        else:
            head = AFTER_MAGIC_1.pack(self.attributes, self.crc)
        return MAGIC.pack(self.magic) + head + self.payload
