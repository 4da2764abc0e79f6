"""Bytes of Kafka's formats from other implementations, and message sets that tests share."""

from __future__ import annotations

from hypothesis import strategies as st

from watchkeeper.model.log.format.codecs import CODECS_07, Codec
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_08 import KeyedMessage


def unhex(*parts: str) -> bytes:
    """Return the bytes of hexadecimal text with spaces."""
    return bytes.fromhex(" ".join(parts))


MAGIC_1_HELLO = unhex("0000000b 01 00 3610a686 68656c6c6f")

ENTRIES = [
    (Message.of(b"hello"), MAGIC_1_HELLO),
    (Message.of(b"hello", magic=0), unhex("0000000a 00 3610a686 68656c6c6f")),
    (Message.of(b"test"), unhex("0000000a 01 00 d87f7e0c 74657374")),
    (Message.of(b"42"), unhex("00000008 01 00 3224b088 3432")),
    (Message.of(b""), unhex("00000006 01 00 00000000")),
    (Message.of(b"x" * 100, magic=0), unhex("00000069 00 5e0e5d8f") + b"x" * 100),
]
"""Message -> its entry."""

ENTRIES_08 = [
    (
        (0, KeyedMessage(None, b"hello")),
        unhex("0000000000000000 00000013 87a77ab2 00 00 ffffffff 00000005 68656c6c6f"),
    ),
    (
        (7, KeyedMessage(b"k", b"v")),
        unhex("0000000000000007 00000010 1fecd70a 00 00 00000001 6b 00000001 76"),
    ),
    (
        (9, KeyedMessage(b"k", None)),
        unhex("0000000000000009 0000000f 908204f6 00 00 00000001 6b ffffffff"),
    ),
]
"""Offset and message -> the entry of 0.8."""

SNAPPY_FOOBAR = unhex(
    "82534e4150505900 00000001 00000001 00000009 0718666f6f6261720a",
)

COMPRESSING = (Codec.GZIP, Codec.SNAPPY)
COMPRESSING_08 = (*COMPRESSING, Codec.LZ4)

payloads = st.binary(max_size=60)
codecs = st.sampled_from(sorted(CODECS_07))
codecs_08 = st.sampled_from(Codec)
messages = st.builds(
    lambda payload, magic: Message.of(payload, magic=magic), payloads, st.sampled_from((0, 1))
)
keyed = st.builds(KeyedMessage, st.none() | payloads, st.none() | payloads)
