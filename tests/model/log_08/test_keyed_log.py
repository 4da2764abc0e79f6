"""Logs of 0.8: offsets are assigned, found again, and survive every end of the broker."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.log.memory_storage import MemoryStorage
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.errors import (
    InvalidMessage,
    InvalidMessageSize,
    LogError,
    MessageSizeTooLarge,
    OffsetOutOfRange,
)
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode, records, wrap
from watchkeeper.model.log.retention import delete_old
from watchkeeper.model.log.segments import DamagedLog
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.timestamps import offsets_before
from watchkeeper.model.log_08.checks import check_set
from watchkeeper.model.log_08.index import ENTRY, INTERVAL_BYTES, OffsetIndex
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.log_08.settings import DEFAULTS, NEVER, keyed_log_settings

FOLDER = "t-0"
LATEST, EARLIEST = -1, -2
LARGE = 1 << 30


class Home:
    """A storage with one log."""

    def __init__(self, settings: LogSettings = DEFAULTS.default) -> None:
        self.storage = MemoryStorage()
        self.storage.folders.add(FOLDER)
        self.settings = settings
        self.log = self.open(was_clean=False)[0]

    def open(self, *, was_clean: bool) -> tuple[KeyedLog, int]:
        """Open the log anew."""
        return self.storage.run(KeyedLog.open(FOLDER, self.settings, was_clean=was_clean))

    def append(self, data: bytes) -> int:
        """Append a set; returns the offset of its first message."""
        checked = check_set(data, largest_entry_bytes=self.settings.largest_payload_bytes)
        return self.storage.run(self.log.append_set(checked)).offset

    def fetched(self, offset: int, size_bytes: int = LARGE) -> list[tuple[int, bytes | None]]:
        """Offsets and values from an offset on, as a consumer sees them."""
        view = self.storage.run(self.log.find(offset, size_bytes))
        contents = self.storage.files[view.path].contents
        assert isinstance(contents, bytes)
        data = contents[view.at : view.at + view.size_bytes]
        found = records(data) if data else ()
        return [(one.offset, one.value) for one in found if one.offset >= offset]


def messages(first: int, count: int, size_bytes: int = 10) -> list[KeyedMessage]:
    """Messages with their numbers as values; every other one has a key."""
    return [
        KeyedMessage(b"key" if number % 2 else None, str(number).encode().ljust(size_bytes))
        for number in range(first, first + count)
    ]


def test_offsets_count_messages_whatever_a_producer_wrote() -> None:
    home = Home()

    assert home.append(encode(messages(0, 3), first_offset=700)) == 0
    assert home.append(wrap(messages(3, 4), Codec.SNAPPY)) == 3
    assert home.append(encode(messages(7, 1)) + wrap(messages(8, 2), Codec.GZIP)) == 7
    assert home.log.end == home.log.high_watermark == 10
    assert home.fetched(0) == [(at, each.value) for at, each in enumerate(messages(0, 10))]
    assert [at for at, _ in home.fetched(5)] == [5, 6, 7, 8, 9]
    assert home.fetched(10) == []


def test_wrappers_in_wrappers_become_one() -> None:
    home = Home()
    inner = wrap(messages(0, 3), Codec.GZIP)
    nested = wrap([KeyedMessage(None, inner[26:], Codec.GZIP)], Codec.SNAPPY)

    home.append(nested)

    assert home.fetched(0) == [(at, each.value) for at, each in enumerate(messages(0, 3))]


def test_an_empty_set_takes_no_offset() -> None:
    home = Home()
    home.append(encode(messages(0, 2)))

    assert home.append(b"") == 2
    assert home.log.end == 2


@pytest.mark.parametrize("offset", [-1, 4, 1 << 40])
def test_other_offsets_are_out_of_range(offset: int) -> None:
    home = Home()
    home.append(encode(messages(0, 3)))

    with pytest.raises(OffsetOutOfRange):
        home.fetched(offset)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (encode(messages(0, 1))[:-1], InvalidMessageSize),
        (encode(messages(0, 2))[:-1] + b"!", InvalidMessage),
        (encode([KeyedMessage(None, b"no gzip", Codec.GZIP)]), InvalidMessage),
        (encode(messages(0, 1, size_bytes=2_000_000)), MessageSizeTooLarge),
    ],
    ids=("no whole entry", "its CRC", "no gzip", "too large"),
)
def test_a_set_with_a_defect_is_refused(data: bytes, error: type[LogError]) -> None:
    home = Home()

    with pytest.raises(error):
        home.append(data)
    assert home.append(encode(messages(0, 1))) == 0


def test_a_partial_entry_at_the_end_is_dropped() -> None:
    home = Home()

    home.append(encode(messages(0, 3))[:-1])

    assert home.log.end == 2


# --- segments --------------------------------------------------------------------------


def test_a_segment_is_rolled_before_it_is_too_large() -> None:
    one = encode(messages(0, 1))
    home = Home(LogSettings(segment_bytes=3 * len(one)))
    for _ in range(7):
        home.append(one)

    sizes = [(segment.start, segment.size_bytes) for segment in home.log.segments.view]
    assert sizes == [(0, 3 * len(one)), (3, 3 * len(one)), (6, len(one))]
    assert sorted(home.storage.files) == [
        "t-0/00000000000000000000.index",
        "t-0/00000000000000000000.log",
        "t-0/00000000000000000003.index",
        "t-0/00000000000000000003.log",
        "t-0/00000000000000000006.log",
    ]
    assert [at for at, _ in home.fetched(4)] == [4, 5]
    assert home.storage.run(offsets_before(home.log, LATEST, 10)) == [7, 6, 3, 0]
    assert home.storage.run(offsets_before(home.log, EARLIEST, 10)) == [0]


def test_retention_deletes_segments_with_their_indexes() -> None:
    one = encode(messages(0, 1))
    home = Home(LogSettings(segment_bytes=2 * len(one), retention_bytes=3 * len(one)))
    for _ in range(8):
        home.append(one)

    assert len(home.storage.run(delete_old(home.log))) == 2
    assert home.log.start == 4
    assert [path for path in home.storage.files if "00000" in path and "index" in path] == [
        "t-0/00000000000000000004.index"
    ]


def test_what_is_appended_can_be_read_before_it_is_flushed() -> None:
    home = Home()
    home.append(encode(messages(0, 3)))

    assert home.log.segments.last.flushed_bytes == 0
    assert len(home.fetched(0)) == 3


# --- the end of the broker -------------------------------------------------------------

SETS = st.lists(
    st.tuples(st.integers(1, 30), st.sampled_from(Codec), st.integers(4, 400)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(SETS, st.booleans(), st.integers(0, 40), st.booleans())
def test_a_log_that_is_opened_again_goes_on(
    sets: list[tuple[int, Codec, int]], is_clean: bool, torn_bytes: int, has_index: bool
) -> None:
    """A torn end is cut off; every offset before it is found, with or without index files."""
    home = Home(LogSettings(segment_bytes=6000))
    count = 0
    for number, codec, size_bytes in sets:
        home.append(wrap(messages(count, number, size_bytes), codec))
        count += number
    torn = b""
    if is_clean:
        home.storage.run(home.log.close())
    else:
        path = home.log.segments.last.path
        whole = encode(messages(count, 1))
        torn = whole[: min(torn_bytes, len(whole) - 1)]
        before = home.storage.files[path].contents
        assert isinstance(before, bytes)
        home.storage.files[path].contents = before + torn
    if not has_index:
        for path in [path for path in home.storage.files if path.endswith(".index")]:
            del home.storage.files[path]

    home.log, cut_bytes = home.open(was_clean=is_clean)

    assert home.log.end == count
    assert cut_bytes == len(torn)
    for offset in range(count):
        first = home.fetched(offset)[0]
        assert first[0] == offset
        assert int(first[1] or b"") == offset
    assert home.append(encode(messages(count, 1))) == count


def test_recovery_cuts_at_a_damaged_entry() -> None:
    home = Home()
    home.append(encode(messages(0, 5)))
    path = home.log.segments.last.path
    contents = home.storage.files[path].contents
    assert isinstance(contents, bytes)
    home.storage.files[path].contents = contents[:-1] + b"!"

    home.log, cut_bytes = home.open(was_clean=False)

    assert (home.log.end, cut_bytes) == (4, len(encode(messages(4, 1))))


def test_a_file_whose_name_is_no_offset_stops_the_broker() -> None:
    home = Home()
    home.storage.files["t-0/old.log"] = home.storage.files[home.log.segments.last.path]

    with pytest.raises(DamagedLog, match="no number"):
        home.open(was_clean=True)


# --- the index -------------------------------------------------------------------------


def test_an_index_has_an_entry_every_few_kilobytes() -> None:
    index = OffsetIndex(100)
    for number in range(100):
        index.note(100 + number, number * 1000)

    assert len(index.encode()) == 19 * ENTRY.size
    assert index.encode()[: ENTRY.size] == ENTRY.pack(5, 5000)
    assert index.position_before(104) == 0
    assert index.position_before(105) == 5000
    again = OffsetIndex.decode(index.encode() + bytes(80), 100, 100_000)
    assert again.encode() == index.encode()
    cut = OffsetIndex.decode(index.encode(), 100, 20_001)
    assert cut.last == (120, 20_000)


def test_one_large_set_is_indexed_inside() -> None:
    home = Home()
    home.append(encode(messages(0, 1000, size_bytes=100)))
    home.storage.run(home.log.close())

    index = home.storage.files["t-0/00000000000000000000.index"].contents
    assert isinstance(index, bytes)
    rows = list(ENTRY.iter_unpack(index))
    steps = [after - before for (_, before), (_, after) in pairwise(rows)]
    assert len(rows) > 20
    assert min(steps) >= INTERVAL_BYTES


# --- settings --------------------------------------------------------------------------


def test_settings_have_the_names_and_defaults_of_0_8() -> None:
    changed = keyed_log_settings({"log.segment.bytes": "1000", "log.flush.interval.ms": 50})

    assert keyed_log_settings() == DEFAULTS
    assert DEFAULTS.default.flush_messages == NEVER
    assert (changed.default.segment_bytes, changed.default.flush_ms) == (1000, 50)
    assert changed.flush_check_ms == 50
    with pytest.raises(ValueError, match=r"did you mean log\.segment\.bytes"):
        keyed_log_settings({"log.segment.byte": 1})
    with pytest.raises(ValueError, match="at most 2147483647"):
        keyed_log_settings({"log.segment.bytes": 2**31})


# --- checks ----------------------------------------------------------------------------

NULLABLE = st.none() | st.binary(max_size=30)
PLAIN = st.lists(st.builds(KeyedMessage, NULLABLE, NULLABLE), max_size=6)


@settings(max_examples=200, deadline=None)
@given(PLAIN, st.booleans(), st.integers(0, 2**32), st.integers(0, 30))
def test_a_check_finds_what_reading_finds(
    plain: list[KeyedMessage], is_damaged: bool, seed: int, cut_bytes: int
) -> None:
    """The fast loop accepts and refuses the same sets as the one that reads messages."""
    chance = Random(seed)
    data = bytearray(encode(plain))
    data = data[: max(len(data) - cut_bytes, 0)]
    if data and is_damaged:
        at = chance.randrange(len(data))
        data[at] = chance.choice((0, 0xFF, 0x7F, chance.randrange(256)))
    try:
        expected = [(one.key, one.value) for one in records(bytes(data))]
    except LogError as error:
        with pytest.raises(type(error)):
            check_set(bytes(data), largest_entry_bytes=LARGE)
        return
    checked = check_set(bytes(data), largest_entry_bytes=LARGE)
    numbered = checked.numbered(70)

    found = list(records(numbered.data)) if numbered.data else []
    assert [(one.key, one.value) for one in found] == expected
    assert [one.offset for one in found] == list(range(70, 70 + len(expected)))
    assert (numbered.next_offset, checked.message_count) == (70 + len(expected), len(expected))
