"""Contents of which only sizes matter say the same of a log as bytes of those sizes do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.model.log.format.contents import (
    Contents,
    Series,
    SeriesRange,
    size_of,
    whole_series,
)
from watchkeeper.model.log.format.entries import check_set, intact_size, messages_in, valid_size
from watchkeeper.model.log.format.errors import InvalidMessageSize, MessageSizeTooLarge
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import MessageAndOffset, SeriesMessage, encode

TEN = Series("clicks", 100, 3, 20)
"""Three messages of thirty bytes, numbered from 100."""

series = st.builds(
    Series, st.sampled_from(("a", "b")), st.integers(0, 50), st.integers(0, 5), st.integers(0, 30)
)


def as_bytes(several: list[Series]) -> bytes:
    """Messages of the same sizes, with bytes."""
    return encode(
        Message.of(bytes(piece.payload_bytes)) for piece in several for _ in range(piece.count)
    )


def cut(pieces: tuple[SeriesRange, ...], size_bytes: int) -> tuple[SeriesRange, ...]:
    """Return the first bytes of a message set."""
    kept = []
    for series_range in pieces:
        taken = min(series_range.size_bytes, size_bytes)
        kept.append(
            SeriesRange(series_range.series, series_range.begin, series_range.begin + taken)
        )
        size_bytes -= taken
    return tuple(kept)


def torn(pieces: tuple[SeriesRange, ...], every_bytes: int) -> tuple[SeriesRange, ...]:
    """The same, as if it had been written in parts."""
    return tuple(
        SeriesRange(series_range.series, begin, min(begin + every_bytes, series_range.end))
        for series_range in pieces
        for begin in range(series_range.begin, series_range.end, every_bytes)
    )


def offsets(contents: Contents, at_offset: int) -> list[tuple[int, int]]:
    return [(message.offset, message.next_offset) for message in messages_in(contents, at_offset)]


@given(st.lists(series, max_size=4), st.integers(0, 300), st.integers(1, 40), st.integers(0, 99))
def test_pieces_and_bytes_say_the_same(
    several: list[Series], kept_bytes: int, every_bytes: int, at_offset: int
) -> None:
    """Wherever they are cut at the end, and in however many parts they were written."""
    data = as_bytes(several)[:kept_bytes]
    pieces = torn(
        cut(tuple(p for piece in several for p in whole_series(piece)), kept_bytes), every_bytes
    )

    assert size_of(pieces) == len(data)
    assert intact_size(pieces) == intact_size(data)
    if intact_size(data) or not data:
        assert valid_size(pieces) == valid_size(data)
        assert offsets(pieces, at_offset) == offsets(data, at_offset)
        kept, of_bytes = (
            check_set(contents, opens_wrappers=True, largest_payload_bytes=30)
            for contents in (pieces, data)
        )
        assert (kept.message_count, kept.size_bytes) == (
            of_bytes.message_count,
            of_bytes.size_bytes,
        )
        assert size_of(kept.contents) == kept.size_bytes
    else:
        for contents in (pieces, data):
            with pytest.raises(InvalidMessageSize):
                valid_size(contents)
            with pytest.raises(InvalidMessageSize):
                offsets(contents, at_offset)
            with pytest.raises(InvalidMessageSize):
                check_set(contents, opens_wrappers=False, largest_payload_bytes=30)


def test_messages_are_known_by_their_numbers() -> None:
    found = list(messages_in((SeriesRange(TEN, 30, 90),), 1030))

    assert found == [
        MessageAndOffset(1030, 1060, SeriesMessage("clicks", 101)),
        MessageAndOffset(1060, 1090, SeriesMessage("clicks", 102)),
    ]


def test_what_is_kept_is_trimmed_to_whole_entries() -> None:
    kept = check_set((SeriesRange(TEN, 30, 89),), opens_wrappers=False, largest_payload_bytes=20)

    assert kept.contents == (SeriesRange(TEN, 30, 60),)
    assert (kept.message_count, kept.size_bytes) == (1, 30)


def test_a_wrong_offset_is_an_error() -> None:
    """A read that begins within an entry takes some of its bytes for a size."""
    with pytest.raises(InvalidMessageSize, match=r"offset 7: .*within an entry"):
        list(messages_in((SeriesRange(TEN, 7, 60),), 7))


def test_a_cut_entry_with_something_after_it_ends_what_is_whole() -> None:
    contents = (SeriesRange(TEN, 0, 45), *whole_series(TEN))

    assert intact_size(contents) == 30
    with pytest.raises(InvalidMessageSize, match="something else follows"):
        valid_size(contents)


def test_a_payload_that_is_too_large_is_refused() -> None:
    with pytest.raises(MessageSizeTooLarge, match="20 bytes, 19 are allowed"):
        check_set(whole_series(TEN), opens_wrappers=True, largest_payload_bytes=19)
