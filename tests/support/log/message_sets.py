"""Strategies of message sets for property-based tests: valid, unusual and damaged ones."""

from __future__ import annotations

import zlib

from hypothesis import strategies as st

from watchkeeper.model.log.format import bulk_checksum
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode, wrap

plain = st.builds(Message.of, st.binary(max_size=40))
nested = st.lists(plain, min_size=1, max_size=3).map(lambda some: Message.of(encode(some)))
old = st.builds(Message.of, st.binary(max_size=40), magic=st.just(0))
odd = st.builds(
    lambda payload, attributes: Message(payload, zlib.crc32(payload), attributes),
    st.binary(max_size=20),
    st.integers(0, 255),
)
wrong = st.builds(Message, st.binary(max_size=40), st.integers(0, 2**32 - 1))
wrapped = st.builds(
    wrap,
    st.lists(st.one_of(plain, wrong), min_size=1, max_size=3),
    st.sampled_from([Codec.GZIP, Codec.SNAPPY]),
)
entries = st.one_of(plain, plain, plain, nested, old, odd).map(lambda entry: encode([entry]))
mixed = st.lists(st.one_of(entries, entries, wrapped), max_size=30).map(b"".join)
of_one_size = st.builds(
    lambda size, count, seed: encode(
        Message.of(bytes((seed + at * at) % 256 for at in range(number, number + size)))
        for number in range(count)
    ),
    st.integers(0, 40),
    st.integers(1, 40),
    st.integers(0, 255),
)
sets = st.one_of(mixed, of_one_size)
some_blocks = st.sampled_from([10, 40, 97, 400, bulk_checksum.BLOCK_BYTES])


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A set with changed, removed and inserted bytes, and a truncated end."""
    data = bytearray(draw(sets))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        what = draw(st.sampled_from(["change", "take", "put"]))
        if what == "change" and data:
            data[at] ^= draw(st.integers(1, 255))
        elif what == "take":
            del data[at : at + draw(st.integers(1, 30))]
        else:
            data[at:at] = draw(st.binary(max_size=30))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)
