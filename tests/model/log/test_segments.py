"""Which segment holds an offset, what a list of segments shows, and which files are segments."""

from __future__ import annotations

from itertools import pairwise

import pytest

from watchkeeper.model.log.format.errors import OffsetOutOfRange
from watchkeeper.model.log.segments import (
    DamagedLog,
    Segment,
    SegmentList,
    find,
    segment_name,
    segment_start,
    segments_in,
)
from watchkeeper.model.log.storage import File


def segments_ending_at(*ends: int) -> list[Segment]:
    """Flushed segments that begin at 0 and end at these offsets."""
    return [Segment(f"{low}", low, high - low) for low, high in pairwise((0, *ends))]


@pytest.mark.parametrize(
    ("ends", "offset"), [((), 45), ((5, 9, 12), 12), ((35,), 35), ((35, 35), 35)]
)
def test_there_is_no_segment_at_the_end(ends: tuple[int, ...], offset: int) -> None:
    """Exactly at the end there is nothing yet, and that is no error."""
    assert find(segments_ending_at(*ends), offset) is None


@pytest.mark.parametrize(
    ("ends", "offset"), [((35,), 36), ((35, 35), 36), ((5, 9), -1), ((5, 9), 10**18)]
)
def test_an_offset_out_of_range_is_refused(ends: tuple[int, ...], offset: int) -> None:
    """Before the first and after the last, with the range in the error."""
    with pytest.raises(OffsetOutOfRange, match=f"from 0 to {ends[-1]}"):
        find(segments_ending_at(*ends), offset)


@pytest.mark.parametrize(
    ("ends", "offset"), [((5, 9, 12), 11), ((5,), 4), ((5, 8), 5), ((5, 8), 6), ((5, 8), 0)]
)
def test_the_segment_found_holds_the_offset(ends: tuple[int, ...], offset: int) -> None:
    """An offset that two segments touch belongs to the later one."""
    found = find(segments_ending_at(*ends), offset)

    assert found is not None
    assert found.start <= offset < found.end


def test_every_offset_is_found_where_counting_finds_it() -> None:
    """Against a search from the front."""
    ends = (3, 4, 9, 20)
    segments = segments_ending_at(*ends)

    for offset in range(20):
        assert find(segments, offset) is next(
            segment for segment in segments if offset < segment.end
        )


def test_what_was_not_flushed_is_out_of_range() -> None:
    """The end of a log, for readers, is where it has been flushed."""
    (segment,) = segments_ending_at(30)
    segment.flushed_bytes = 20

    assert find([segment], 20) is None
    with pytest.raises(OffsetOutOfRange):
        find([segment], 21)


def listed(*starts: int) -> SegmentList:
    """A list of empty segments."""
    return SegmentList(Segment(str(start), start) for start in starts)


def starts(segments: tuple[Segment, ...]) -> list[int]:
    """Where each begins."""
    return [segment.start for segment in segments]


def test_a_view_stays_when_a_segment_is_added() -> None:
    """Kafka's table: append 5 to 1, 2, 3, 4."""
    segments = listed(1, 2, 3, 4)
    view = segments.view

    segments.append(Segment("5", 5))

    assert starts(segments.view) == [1, 2, 3, 4, 5]
    assert starts(view) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("before", "count", "removed", "after"),
    [
        ((1, 2, 3, 4, 5, 6), 3, [1, 2, 3], [4, 5, 6]),
        ((1, 2), 3, [1, 2], []),
        ((1, 2), 0, [], [1, 2]),
    ],
)
def test_a_view_stays_when_segments_are_removed(
    before: tuple[int, ...], count: int, removed: list[int], after: list[int]
) -> None:
    """Kafka's table: take the first 3 of 6, and of 2."""
    segments = listed(*before)
    view = segments.view

    assert starts(segments.remove_first(count)) == removed
    assert starts(segments.view) == after
    assert starts(view) == list(before)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("00000000000000000000.kafka", 0),
        ("00000000000000000140.kafka", 140),
        ("00000000000.kafka", 0),
        ("15.kafka", 15),
        ("0", None),
        ("0.index", None),
        ("0.kafka.swap", None),
    ],
)
def test_any_number_of_digits_names_a_segment(name: str, start: int | None) -> None:
    """Eleven digits, as a page has it, or twenty, or two."""
    assert segment_start(name) == start


def test_twenty_digits_are_written() -> None:
    """So that names sort as their offsets do, up to the largest offset there is."""
    assert segment_name(2**63 - 1) == "09223372036854775807.kafka"
    assert segment_start(segment_name(12)) == 12


@pytest.mark.parametrize("digits", ["", "a", "-5", "+5", "1_0", "٣"])
def test_a_name_that_is_no_number_is_refused(digits: str) -> None:
    """It is not guessed what such a file is."""
    with pytest.raises(DamagedLog, match="no number"):
        segment_start(f"{digits}.kafka")


def test_files_are_taken_in_the_order_of_their_offsets() -> None:
    """Names of different lengths sort differently; what is no segment is passed over."""
    files = [File("15.kafka", 5, 0), File("5.kafka", 10, 0), File("0.kafka", 5, 0)]
    files += [File("other", 7, 0), File("7.kafka", 0, 0, is_folder=True)]

    found = segments_in("clicks-0", files)

    assert [(file.path, file.start, file.size_bytes) for file in found] == [
        ("clicks-0/0.kafka", 0, 5),
        ("clicks-0/5.kafka", 5, 10),
        ("clicks-0/15.kafka", 15, 5),
    ]
    assert [item.is_mutable for item in found] == [False, False, True]


@pytest.mark.parametrize(
    "files",
    [
        [("0.kafka", 0), ("15.kafka", 0)],
        [("0.kafka", 10), ("15.kafka", 0)],
        [("0.kafka", 20), ("15.kafka", 0)],
        [("0.kafka", 0), ("00.kafka", 0)],
        [("0.kafka", 0), ("00.kafka", 5)],
    ],
)
def test_segments_that_do_not_follow_one_another_are_refused(
    files: list[tuple[str, int]],
) -> None:
    """A gap, an overlap, or two files for one offset."""
    with pytest.raises(DamagedLog, match=r"clicks-0/0\.kafka.*0+5?\.kafka|15\.kafka"):
        segments_in("clicks-0", [File(name, size, 0) for name, size in files])


def test_a_rolled_segment_is_not_appended_to() -> None:
    """Only a bug could do that."""
    segment = Segment("0.kafka", 0)
    segment.is_mutable = False

    with pytest.raises(AssertionError, match="after it had been rolled"):
        segment.grow(1, 0)
