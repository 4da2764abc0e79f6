"""One log: Kafka's own table of cases, short and failed writes, and interleavings."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.support.log.memory_storage import Killed, MemoryStorage
from tests.support.log.messages import (
    FOLDER,
    FORTY_TWO,
    TEST,
    appended,
    message_set,
    opened,
    readable,
    storage_with,
)
from watchkeeper.model.log.format.contents import (
    Series,
    SeriesRange,
    slice_contents,
    whole_series,
)
from watchkeeper.model.log.format.errors import (
    InvalidMessage,
    MessageSizeTooLarge,
    OffsetOutOfRange,
)
from watchkeeper.model.log.format.message_set_07 import payloads
from watchkeeper.model.log.format.requests import EARLIEST, LATEST
from watchkeeper.model.log.log import FileView, Log, LogStopped
from watchkeeper.model.log.retention import delete_old
from watchkeeper.model.log.segments import DamagedLog
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    DiskFailed,
    DiskFull,
    Flush,
    NoSuchFile,
    StorageError,
)
from watchkeeper.model.log.timestamps import offsets_before

NEVER = 10**9
"""More messages than any test appends, so that their number causes no flush."""


def log_of(**settings: Any) -> tuple[MemoryStorage, Log]:
    """Open a new log that is flushed after every message by default."""
    storage = storage_with()
    return storage, opened(storage, **{"flush_messages": 1, **settings})


def starts(log: Log) -> list[int]:
    """Where the segments begin."""
    return [segment.start for segment in log.segments.view]


# --- Kafka's table ---------------------------------------------------------------------


def test_a_segment_is_rolled_for_its_age() -> None:
    """Its age begins with its first message; a set without messages is none."""
    storage, log = log_of(roll_ms=60_000)
    counts = []

    for contents in (None, TEST, TEST, b"", TEST):
        storage.now_ms += 60_001
        if contents is not None:
            appended(storage, log, contents)
        counts.append(len(log.segments.view))

    assert counts == [1, 1, 2, 3, 3]


def test_a_segment_is_rolled_for_its_size() -> None:
    """It is looked at before the append, so that a segment is larger than it should be."""
    storage, log = log_of(segment_bytes=10 * 13)

    appended(storage, log, *[TEST] * 10)
    assert starts(log) == [0]
    appended(storage, log, TEST)
    assert starts(log) == [0, 140]


@pytest.mark.parametrize("setting", [{"roll_ms": 1000}, {"segment_bytes": 14}])
def test_a_segment_that_has_just_reached_its_limit_is_not_rolled(setting: dict[str, int]) -> None:
    """Only one that is older or larger."""
    storage, log = log_of(**setting)
    appended(storage, log, TEST)
    storage.now_ms += 1000

    appended(storage, log, TEST)
    assert starts(log) == [0]
    storage.now_ms += 1
    appended(storage, log, TEST)
    assert starts(log) == [0, 28]


def test_the_age_of_a_segment_is_that_of_its_first_message() -> None:
    """However new the last one is."""
    storage, log = log_of(roll_ms=1000)

    for _ in range(4):
        appended(storage, log, TEST)
        storage.now_ms += 600

    assert starts(log) == [0, 28]


def test_an_empty_file_is_loaded() -> None:
    """Its name may have one digit."""
    storage = storage_with([("0.kafka", b"")])

    log = opened(storage)

    assert (log.start, log.end) == (0, 0)
    assert list(storage.files) == [f"{FOLDER}/0.kafka"]


def test_files_with_a_gap_are_not_loaded() -> None:
    """0.kafka and 15.kafka, both empty."""
    with pytest.raises(DamagedLog):
        opened(storage_with([("0.kafka", b""), ("15.kafka", b"")]))


def test_what_was_appended_is_read() -> None:
    """Ten messages, flushed, read with one fetch."""
    storage, log = log_of(flush_messages=NEVER)
    appended(storage, log, *[FORTY_TWO] * 10)
    storage.run(log.flush())

    found = storage.run(log.read(0, 1024))

    assert isinstance(found, bytes)
    assert payloads(found) == [b"42"] * 10


def test_a_log_that_begins_later_is_read_at_its_end_alone() -> None:
    """One empty file at 1024: nothing there, and nothing before or after it."""
    storage = storage_with([("1024.kafka", b"")])
    log = opened(storage)

    assert storage.run(log.read(1024, 1000)) == b""
    for offset in (0, 1025):
        with pytest.raises(OffsetOutOfRange, match="from 1024 to 1024"):
            storage.run(log.read(offset, 1000))


def test_reading_on_finds_every_message_across_segments() -> None:
    """A hundred messages in segments of a hundred bytes."""
    storage, log = log_of(segment_bytes=100)
    numbers = [str(number) for number in range(100)]
    appended(storage, log, *map(message_set, numbers))

    assert payloads(readable(storage, log)) == [number.encode() for number in numbers]
    assert len(log.segments.view) > 10


def test_the_end_stays_when_all_is_deleted() -> None:
    """A new segment is begun first; one that is empty stays, and counts as new."""
    storage, log = log_of(retention_ms=1000)
    counts, ends = [], []

    for contents in (b"", TEST, b""):
        appended(storage, log, contents)
        storage.now_ms += 2000
        counts.append(len(storage.run(delete_old(log))))
        ends.append((log.start, log.end, list(storage.files)))

    assert counts == [0, 1, 0]
    assert ends == [
        (0, 0, [f"{FOLDER}/{0:020d}.kafka"]),
        (14, 14, [f"{FOLDER}/{14:020d}.kafka"]),
        (14, 14, [f"{FOLDER}/{14:020d}.kafka"]),
    ]
    assert storage.files[f"{FOLDER}/{14:020d}.kafka"].modified_ms == storage.now_ms
    appended(storage, log, TEST)
    assert readable(storage, log) == TEST


def test_a_message_that_is_too_large_is_refused() -> None:
    """Five bytes are allowed. Nothing of a set with a larger one is appended."""
    storage, log = log_of(largest_payload_bytes=5)
    fits = message_set("You", "bethe")
    appended(storage, log, fits)

    with pytest.raises(MessageSizeTooLarge):
        appended(storage, log, message_set("You", "change"))

    assert readable(storage, log) == fits
    appended(storage, log, fits)
    assert log.end == 2 * len(fits)


def test_old_segments_are_deleted() -> None:
    """A thousand messages, all too old: one empty segment is left, and the end."""
    storage, log = log_of(segment_bytes=1024, retention_ms=1000)
    appended(storage, log, *[TEST] * 1000)
    storage.now_ms += 1000 + 3000

    storage.run(delete_old(log))

    assert starts(log) == [14_000]
    assert storage.run(log.read(14_000, 100)) == b""
    with pytest.raises(OffsetOutOfRange):
        storage.run(log.read(0, 100))
    appended(storage, log, TEST)


def test_a_segment_is_deleted_when_it_is_older_than_allowed() -> None:
    """A millisecond before that it is not."""
    storage, log = log_of(retention_ms=1000)
    appended(storage, log, TEST)
    storage.now_ms += 1000

    assert storage.run(delete_old(log)) == ()
    storage.now_ms += 1
    assert len(storage.run(delete_old(log))) == 1


def test_a_large_log_is_cut_down_to_its_limit() -> None:
    """100 segments of ten messages, of which five and a bit may stay: six do."""
    storage, log = log_of(segment_bytes=130, retention_bytes=5 * 10 * 14 + 10)
    appended(storage, log, *[TEST] * 1000)
    assert len(log.segments.view) == 100

    deleted = storage.run(delete_old(log))

    assert len(deleted) == 94
    assert starts(log) == [140 * number for number in range(94, 100)]
    assert sorted(storage.files) == [segment.path for segment in log.segments.view]
    assert storage.run(log.read(14_000, 100)) == b""
    with pytest.raises(OffsetOutOfRange):
        storage.run(log.read(0, 100))
    appended(storage, log, TEST)


OFFSETS: tuple[tuple[int | str, int, list[int]], ...] = (
    (LATEST, 10, [240, 216, 108, 0]),
    (LATEST, 2, [240, 216]),
    (LATEST, 0, []),
    ("now", 10, [216, 108, 0]),
    (EARLIEST, 10, [0]),
    (0, 10, []),
    (-3, 10, []),
)


@pytest.mark.parametrize(("time", "at_most", "expected"), OFFSETS)
def test_offsets_before_a_time(time: int | str, at_most: int, expected: list[int]) -> None:
    """Twenty messages in segments of nine; the end was written after `now`."""
    storage, log = log_of(segment_bytes=100)
    appended(storage, log, *[FORTY_TWO] * 20)
    now, storage.now_ms = storage.now_ms, storage.now_ms + 1
    time_ms = now if time == "now" else int(time)

    assert storage.run(offsets_before(log, time_ms, at_most)) == expected
    assert storage.run(log.read(240, 100)) == b""


def test_an_empty_log_has_one_offset() -> None:
    """However often it is requested, it is not 1."""
    storage, log = log_of()

    for _ in range(14):
        assert storage.run(offsets_before(log, EARLIEST, 1)) == [0]
    assert storage.run(offsets_before(log, LATEST, 9)) == [0]


# --- what can be read ------------------------------------------------------------------


def test_readers_see_what_has_been_flushed() -> None:
    """Not before, though it is in the file; the latest offset is that of the flush, too."""
    storage, log = log_of(flush_messages=3)
    seen = []

    for _ in range(4):
        appended(storage, log, TEST)
        seen.append((log.high_watermark, log.end, storage.run(offsets_before(log, LATEST, 1))))

    assert seen == [(0, 14, [0]), (0, 28, [0]), (42, 42, [42]), (42, 56, [42])]
    assert readable(storage, log) == TEST * 3
    with pytest.raises(OffsetOutOfRange):
        log.view(56, 1)


def test_an_end_that_cannot_be_read_is_no_offset_of_its_own() -> None:
    """Nothing was flushed: the beginning is the latest offset, and it is named once."""
    storage, log = log_of(flush_messages=9)
    appended(storage, log, TEST)

    assert storage.run(offsets_before(log, LATEST, 9)) == [0]


def test_messages_are_counted_through_rolls() -> None:
    """A flush follows a number of messages, in any of the sets."""
    storage, log = log_of(flush_messages=4, segment_bytes=20)

    appended(storage, log, TEST * 3)
    assert log.unflushed_messages == 3
    appended(storage, log, TEST)
    assert (log.unflushed_messages, log.high_watermark) == (1, 42)
    appended(storage, log, TEST * 3)
    assert (log.unflushed_messages, log.high_watermark) == (0, 98)


def test_a_log_is_flushed_when_its_last_flush_is_old() -> None:
    """And not before; that nothing is flushed where nothing was appended costs no ask."""
    storage, log = log_of(flush_messages=NEVER)
    appended(storage, log, TEST)
    ends = []

    for _ in range(3):
        storage.run(log.flush_if_older(100))
        ends.append(log.high_watermark)
        storage.now_ms += 50

    assert ends == [0, 0, 14]
    storage.asked.clear()
    storage.now_ms += 1000
    storage.run(log.flush_if_older(100))
    assert not any(isinstance(effect, Flush) for effect in storage.asked)


def test_a_view_ends_with_its_segment() -> None:
    """It is a part of one file, which can be sent without a copy."""
    storage, log = log_of(segment_bytes=20)
    appended(storage, log, TEST, TEST, TEST, TEST)

    first = log.segments.view[0]
    assert log.view(7, 1000) == FileView(first.path, 7, 21)
    assert log.view(7, 10) == FileView(first.path, 7, 10)
    assert log.view(28, 1000).at == 0
    assert log.view(56, 1000).size_bytes == 0


def test_a_view_is_sent_without_being_read() -> None:
    """All of it, however many times the connection has to be asked."""
    storage, log = log_of()
    appended(storage, log, TEST, FORTY_TWO)
    storage.sent_at_most = 5
    connection = bytearray()
    storage.asked.clear()

    storage.run(log.send(log.view(14, 1000), connection))

    assert connection == FORTY_TWO
    assert [type(effect).__name__ for effect in storage.asked] == ["Send"] * 3


def test_what_is_deleted_while_it_is_read_is_out_of_range() -> None:
    """The reader gets the same error as a read after the deletion."""
    storage, log = log_of(segment_bytes=20, retention_bytes=0)
    appended(storage, log, TEST, TEST, TEST)
    reading = log.read(0, 100)
    effect = reading.send(None)

    storage.run(delete_old(log))

    failure = storage.answer(effect)
    assert failure.kind is NoSuchFile
    with pytest.raises(OffsetOutOfRange):
        reading.send(failure)


@pytest.mark.parametrize("how", ["read", "send"])
def test_a_file_that_has_lost_what_was_flushed_is_damaged(how: str) -> None:
    """Missing bytes are not replaced by others."""
    storage, log = log_of()
    appended(storage, log, TEST)
    storage.files[log.segments.last.path].contents = TEST[:5]

    asking = log.read(0, 100) if how == "read" else log.send(log.view(0, 100), bytearray())
    with pytest.raises(DamagedLog, match="14 bytes from 0 were flushed, 5 are there"):
        storage.run(asking)


def test_a_file_that_has_vanished_is_named() -> None:
    """It is still in the list, so that it was not the log that has deleted it."""
    storage, log = log_of()
    appended(storage, log, TEST)
    del storage.files[log.segments.last.path]

    with pytest.raises(NoSuchFile, match=log.segments.last.path):
        storage.run(log.read(0, 100))


# --- short and failed writes -----------------------------------------------------------


def test_short_writes_are_gone_on_with() -> None:
    """However little is taken at once, all of it arrives, in order and once."""
    storage, log = log_of()
    storage.shortened.extend([1, 3, 20, 2, 1])

    appended(storage, log, message_set("one", "two", "three"), TEST)

    assert readable(storage, log) == message_set("one", "two", "three") + TEST


def test_a_damaged_message_is_refused_and_does_no_harm() -> None:
    """Nothing of its set is appended, and the log goes on."""
    storage, log = log_of()

    with pytest.raises(InvalidMessage):
        appended(storage, log, TEST + TEST[:-1] + b"x")

    appended(storage, log, TEST)
    assert readable(storage, log) == TEST


def test_the_part_of_a_message_at_the_end_of_a_set_is_not_appended() -> None:
    """Whole messages are."""
    storage, log = log_of()

    assert storage.run(log.append(TEST + TEST[:9])) == (0, 1, 14)
    assert storage.run(log.append(FORTY_TWO)) == (14, 1, 12)


FAILURES = [(Append, DiskFull, 1), (Append, DiskFailed, 1), (Flush, DiskFailed, 1)]
FAILURES += [(CreateFile, DiskFull, 3), (Delete, DiskFailed, 3)]


@pytest.mark.parametrize(("effect", "kind", "sets"), FAILURES)
def test_a_log_stops_where_the_disk_fails(
    effect: type[Any], kind: type[StorageError], sets: int
) -> None:
    """The contents of the disk are unknown then. Bytes flushed before can still be read."""
    storage, log = log_of(segment_bytes=20, retention_bytes=14)
    appended(storage, log, TEST)
    storage.failing.append((effect, kind))

    def go_on() -> None:
        for _ in range(sets):
            appended(storage, log, TEST)
        storage.run(delete_old(log))

    with pytest.raises(kind, match="on purpose"):
        go_on()
    for _ in range(2):
        with pytest.raises(LogStopped, match=kind.__name__):
            go_on()

    assert readable(storage, log).startswith(TEST)
    again = opened(storage, segment_bytes=20)
    appended(storage, again, TEST)


def test_a_log_that_has_stopped_says_what_came_first() -> None:
    """A flush fails while an append is under way, which is to be flushed as well."""
    storage, log = log_of(flush_messages=2)
    appended(storage, log, TEST)
    appending = log.append(TEST)
    effect = storage.until(appending, Append)
    storage.failing.append((Flush, DiskFailed))
    with pytest.raises(DiskFailed):
        storage.run(log.flush())

    with pytest.raises(LogStopped):
        appending.send(storage.answer(effect))

    assert log.stopped.startswith("DiskFailed: ")


def test_a_disk_that_takes_nothing_gets_few_requests() -> None:
    """A write of no bytes is an error like any other."""
    storage, log = log_of()
    storage.shortened.extend([3, 0])

    with pytest.raises(DiskFailed, match="takes no bytes"):
        appended(storage, log, TEST)

    assert log.stopped


def test_segments_that_could_not_be_deleted_leave_no_gap() -> None:
    """The oldest goes first. Whatever is left is loaded again."""
    storage, log = log_of(segment_bytes=20, retention_bytes=0)
    appended(storage, log, *[TEST] * 7)
    deleting = delete_old(log)

    with pytest.raises(Killed):
        storage.run(deleting, killed_after=6)

    assert isinstance(storage.asked[-1], Delete)
    assert starts(opened(storage)) == [56, 84, 98]


def test_a_coroutine_that_is_given_up_stops_the_log() -> None:
    """Half of a message may be in the file: nothing may be appended after it."""
    storage, log = log_of()
    storage.shortened.append(5)

    with pytest.raises(Killed):
        storage.run(log.append(TEST), killed_after=2)

    with pytest.raises(LogStopped, match="GeneratorExit"):
        appended(storage, log, TEST)
    assert readable(storage, opened(storage)) == b""


def test_a_log_that_was_closed_is_flushed_and_takes_nothing() -> None:
    """The marker of a clean shutdown is true only then."""
    storage, log = log_of(flush_messages=NEVER)
    appended(storage, log, TEST)

    storage.run(log.close())

    assert log.high_watermark == 14
    with pytest.raises(LogStopped, match="it was closed"):
        appended(storage, log, TEST)


# --- who comes in between --------------------------------------------------------------


def test_two_do_not_append_at_once() -> None:
    """The caller has to prevent it; the log detects the overlap."""
    storage, log = log_of()
    first = log.append(TEST)
    first.send(None)

    with pytest.raises(AssertionError, match="two are writing at once"):
        storage.run(log.append(TEST))

    first.close()


def test_a_flush_in_the_middle_of_an_append_shows_nothing_of_it() -> None:
    """It marks what had been appended before, and the next flush the rest."""
    storage, log = log_of(flush_messages=NEVER)
    appended(storage, log, TEST)
    storage.shortened.append(5)
    appending = log.append(FORTY_TWO)
    effect = appending.send(storage.answer(storage.until(appending, Append)))
    assert effect.contents == FORTY_TWO[5:]

    storage.run(log.flush())

    assert readable(storage, log) == TEST
    with pytest.raises(StopIteration):
        appending.send(storage.answer(effect))
    storage.run(log.flush())
    assert readable(storage, log) == TEST + FORTY_TWO


def test_an_append_in_the_middle_of_a_flush_is_not_taken_for_flushed() -> None:
    """Whether it came before or after the request to the disk is not known."""
    storage, log = log_of(flush_messages=NEVER)
    appended(storage, log, TEST)
    flushing = log.flush()
    answer = storage.answer(storage.until(flushing, Flush))

    appended(storage, log, FORTY_TWO)
    flushing.send(answer)

    assert (log.high_watermark, log.end, log.unflushed_messages) == (14, 26, 1)


def test_an_older_flush_that_ends_later_takes_nothing_back() -> None:
    """Two flushes are under way, and the second is answered first."""
    storage, log = log_of(flush_messages=NEVER)
    appended(storage, log, TEST)
    first = log.flush()
    answer = storage.answer(storage.until(first, Flush))
    appended(storage, log, TEST)
    storage.run(log.flush())

    first.send(answer)

    assert (log.high_watermark, log.unflushed_messages) == (28, 0)


# --- series ----------------------------------------------------------------------------


@given(st.lists(st.integers(1, 30), max_size=5), st.integers(0, 150), st.integers(0, 150))
def test_a_part_of_pieces_is_what_a_part_of_bytes_is(
    sizes_bytes: list[int], begin: int, end: int
) -> None:
    """Byte for byte, with any truncation of each set before."""
    series = Series("p", 0, 100, 1)
    numbered, pieces, at = b"", [], 0
    for size_bytes in sizes_bytes:
        pieces.append(SeriesRange(series, at, at + size_bytes))
        numbered += bytes(range(at, at + size_bytes))
        at += size_bytes + 7

    part = slice_contents(tuple(pieces), begin, end)

    assert isinstance(part, tuple)
    assert (
        b"".join(bytes(range(series_range.begin, series_range.end)) for series_range in part)
        == numbered[begin:end]
    )
    assert all(file.size_bytes for file in part)


def test_messages_of_which_only_the_sizes_matter_get_the_same_offsets() -> None:
    """A hundred of 100 bytes, in a storage that stores none of them."""
    storage, log = log_of(segment_bytes=1000, flush_messages=10)
    bytes_storage, bytes_log = log_of(segment_bytes=1000, flush_messages=10)

    for number in range(100):
        series = whole_series(Series("p", number, 1, 100))
        assert storage.run(log.append(series)) == bytes_storage.run(
            bytes_log.append(message_set(b"x" * 100))
        )

    assert starts(log) == starts(bytes_log)
    assert storage.run(log.read(220, 110)) == whole_series(Series("p", 2, 1, 100))
