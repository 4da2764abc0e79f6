"""Recovery keeps every whole message, cuts what follows, and reads no file at once."""

from __future__ import annotations

import struct
import zlib

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.support.log.memory_storage import MemoryStorage
from tests.support.log.messages import (
    FOLDER,
    TEST,
    appended,
    message_set,
    opened,
    readable,
    storage_with,
)
from watchkeeper.model.actor.effects import Now
from watchkeeper.model.log.format.contents import Contents, Series, slice_contents, whole_series
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.recovery import intact_size_of_file
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import Append, ListFolder, Read, Truncate

PATH = f"{FOLDER}/0.kafka"
SMALLEST_PIECE = 10
"""An entry's size and header fit into it."""


def whole_size_by_hand(contents: bytes) -> int:
    """How much is whole entries: read one after the other, as the format says."""
    at = 0
    while len(contents) - at >= 9:
        (size,) = struct.unpack_from(">i", contents, at)
        magic = contents[at + 4]
        header = 5 if magic == 0 else 6
        if magic > 1 or size < header or at + 4 + size > len(contents):
            break
        (crc,) = struct.unpack_from(">I", contents, at + header)
        if zlib.crc32(contents[at + 4 + header : at + 4 + size]) != crc:
            break
        at += 4 + size
    return at


def recovered(contents: bytes, chunk_bytes: int) -> int:
    """How much of this is whole, according to recovery."""
    storage = storage_with([("0.kafka", contents)])
    found = storage.run(intact_size_of_file(PATH, len(contents), chunk_bytes=chunk_bytes))
    assert all(
        effect.size_bytes <= chunk_bytes for effect in storage.asked if type(effect) is Read
    )
    return found


# --- Kafka's table ---------------------------------------------------------------------


@pytest.mark.parametrize("stray_bytes", [0, 2, 4, 5, 6])
def test_zeros_after_the_last_message_are_cut_off(stray_bytes: int) -> None:
    """Their number is returned; the log keeps its messages, and accepts appends at its end."""
    storage = storage_with([("0.kafka", TEST * 3 + bytes(stray_bytes))])

    log = opened(storage)

    truncated = [effect for effect in storage.asked if isinstance(effect, Truncate)]
    assert truncated == ([Truncate(PATH, 42)] if stray_bytes else [])
    assert readable(storage, log) == TEST * 3
    appended(storage, log, TEST)
    assert storage.files[PATH].contents == TEST * 4


def test_how_much_was_cut_off_is_answered() -> None:
    """The caller can report it; the second recovery has nothing to truncate."""
    storage = storage_with([("0.kafka", TEST + TEST[:13])])

    cuts = [storage.run(Log.open(FOLDER, LogSettings(), was_clean=False))[1] for _ in range(2)]

    assert cuts == [13, 0]


# --- whatever is in the file -----------------------------------------------------------

MESSAGES = st.lists(
    st.builds(
        lambda payload, magic: Message.of(payload, magic=magic),
        st.binary(max_size=40),
        st.sampled_from([0, 1]),
    ),
    max_size=6,
)


@given(MESSAGES, st.data(), st.integers(SMALLEST_PIECE, 60))
def test_every_whole_message_is_kept_and_no_other(
    messages: list[Message], data: st.DataObject, chunk_bytes: int
) -> None:
    """A cut anywhere, zeros anywhere, any bytes after it, with chunks of any size."""
    contents = encode(messages)
    contents = contents[: data.draw(st.integers(0, len(contents)), "cut")]
    begin = data.draw(st.integers(0, len(contents)), "zeros from")
    end = data.draw(st.integers(begin, len(contents)), "zeros to")
    contents = contents[:begin] + bytes(end - begin) + contents[end:]
    contents += data.draw(st.binary(max_size=30), "after it")

    assert recovered(contents, chunk_bytes) == whole_size_by_hand(contents)


@pytest.mark.parametrize("magic", [0, 1])
def test_an_entry_larger_than_a_piece_is_checked_piece_by_piece(magic: int) -> None:
    """It is kept if it is whole, and cut if one byte of it is wrong, or the last is missing."""
    large = encode([Message.of(bytes(range(256)) * 4, magic=magic)])

    assert recovered(TEST + large + TEST, 100) == len(TEST + large + TEST)
    assert recovered(TEST + large, 100) == len(TEST + large)
    for at in range(len(large)):
        wrong = large[:at] + bytes([large[at] ^ 0x80]) + large[at + 1 :]
        unprotected = magic == 1 and at == 5
        assert recovered(TEST + wrong, 100) == len(TEST) + len(large) * unprotected
    assert recovered(TEST + large[:-1], 100) == len(TEST)


def test_the_attributes_are_not_protected_by_the_format() -> None:
    """A message whose codec was damaged is whole to every reader; 0.7 has no checksum of it."""
    large = message_set(b"x" * 1000)
    assert recovered(large[:5] + b"\x80" + large[6:], 100) == len(large)


def test_a_large_size_among_garbage_is_not_read() -> None:
    """What claims to be an entry of a gigabyte is larger than the file."""
    garbage = struct.pack(">iB", 2**30, 1) + bytes(10_000)
    storage = storage_with([("0.kafka", garbage)])

    assert storage.run(intact_size_of_file(PATH, len(garbage), chunk_bytes=100)) == 0
    assert len(storage.asked) == 1


@pytest.mark.parametrize("size", [-5, 1, 50])
def test_a_checksum_of_more_than_the_entry_is_none(size: int) -> None:
    """The bytes that follow have the right CRC, but the size of the entry ends before."""
    follows = bytes(range(90))
    entry = struct.pack(">iBBI", size, 1, 0, zlib.crc32(follows))

    assert recovered(entry + follows + bytes(100), 100) == 0


# --- what is visible afterwards --------------------------------------------------------


def test_what_was_recovered_is_flushed_before_it_can_be_read() -> None:
    """It came from the pagecache of a process that crashed, and was perhaps never on the disk."""
    storage = storage_with()
    log = opened(storage, flush_messages=10)
    appended(storage, log, TEST, TEST)
    path = log.segments.last.path
    assert storage.files[path].flushed_bytes == 0

    again = opened(storage)

    assert readable(storage, again) == TEST * 2
    assert storage.files[path].flushed_bytes == 28


def test_only_the_last_segment_is_recovered() -> None:
    """Those before it were flushed when they were rolled."""
    storage = storage_with([("0.kafka", b"garbage"), ("7.kafka", TEST), ("21.kafka", TEST[:3])])

    log = opened(storage)

    assert {effect.path for effect in storage.asked if type(effect) is Read} == {
        f"{FOLDER}/21.kafka"
    }
    assert (log.start, log.end) == (0, 21)


def test_a_log_that_was_closed_is_not_read_at_all() -> None:
    """Nor flushed. Its age counts from now on."""
    storage = storage_with([("0.kafka", TEST)])

    log, cut_bytes = storage.run(Log.open(FOLDER, LogSettings(), was_clean=True))

    assert {type(effect) for effect in storage.asked} == {Now, ListFolder}
    assert (log.high_watermark, cut_bytes) == (14, 0)
    assert log.segments.last.first_append_ms == storage.now_ms


def test_pieces_of_series_are_recovered_as_bytes_are() -> None:
    """Also those whose messages are larger than what is read at once."""
    storage = MemoryStorage()
    storage.put(PATH, b"")
    series = Series("p", 0, 3, 2_000_000)
    torn = slice_contents(whole_series(series), 0, series.size_bytes - 1)
    storage.run(append(torn))

    assert storage.run(intact_size_of_file(PATH, series.size_bytes - 1)) == 2 * series.entry_bytes


async def append(contents: Contents) -> int:
    """Append to the file."""
    return await Append(PATH, contents)
