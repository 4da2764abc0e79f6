"""Contents of which only sizes matter say the same of a log as bytes of those sizes do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.log.contents import Contents, Piece, Series, size_of, whole
from model.log.entries import checked, messages_in, valid_size, whole_entries
from model.log.errors import InvalidMessageSize, MessageSizeTooLarge
from model.log.message import Message
from model.log.message_set import Delivered, Numbered, encode

TEN = Series("clicks", 100, 3, 20)
"""Three messages of thirty bytes, numbered from 100."""

series = st.builds(
    Series, st.sampled_from(("a", "b")), st.integers(0, 50), st.integers(0, 5), st.integers(0, 30)
)


def as_bytes(several: list[Series]) -> bytes:
    """Messages of the same sizes, with bytes."""
    return encode(
        Message.of(bytes(one.payload_bytes)) for one in several for _ in range(one.count)
    )


def cut(pieces: tuple[Piece, ...], size_bytes: int) -> tuple[Piece, ...]:
    """The first so many bytes."""
    kept = []
    for piece in pieces:
        taken = min(piece.size_bytes, size_bytes)
        kept.append(Piece(piece.series, piece.begin, piece.begin + taken))
        size_bytes -= taken
    return tuple(kept)


def torn(pieces: tuple[Piece, ...], every_bytes: int) -> tuple[Piece, ...]:
    """The same, as if it had been written in parts."""
    return tuple(
        Piece(piece.series, begin, min(begin + every_bytes, piece.end))
        for piece in pieces
        for begin in range(piece.begin, piece.end, every_bytes)
    )


def offsets(contents: Contents, at_offset: int) -> list[tuple[int, int]]:
    return [(one.offset, one.next_offset) for one in messages_in(contents, at_offset)]


@given(st.lists(series, max_size=4), st.integers(0, 300), st.integers(1, 40), st.integers(0, 99))
def test_pieces_and_bytes_say_the_same(
    several: list[Series], kept_bytes: int, every_bytes: int, at_offset: int
) -> None:
    """Wherever they are cut at the end, and in however many parts they were written."""
    data = as_bytes(several)[:kept_bytes]
    pieces = torn(cut(tuple(p for one in several for p in whole(one)), kept_bytes), every_bytes)

    assert size_of(pieces) == len(data)
    assert whole_entries(pieces) == whole_entries(data)
    if whole_entries(data) or not data:
        assert valid_size(pieces) == valid_size(data)
        assert offsets(pieces, at_offset) == offsets(data, at_offset)
        kept, other = (
            checked(contents, deep=True, largest_payload_bytes=30) for contents in (pieces, data)
        )
        assert (kept.message_count, kept.size_bytes) == (other.message_count, other.size_bytes)
        assert size_of(kept.contents) == kept.size_bytes
    else:
        for contents in (pieces, data):
            with pytest.raises(InvalidMessageSize):
                valid_size(contents)
            with pytest.raises(InvalidMessageSize):
                offsets(contents, at_offset)
            with pytest.raises(InvalidMessageSize):
                checked(contents, deep=False, largest_payload_bytes=30)


def test_messages_are_known_by_their_numbers() -> None:
    found = list(messages_in((Piece(TEN, 30, 90),), 1030))

    assert found == [
        Delivered(1030, 1060, Numbered("clicks", 101)),
        Delivered(1060, 1090, Numbered("clicks", 102)),
    ]


def test_what_is_kept_is_trimmed_to_whole_entries() -> None:
    kept = checked((Piece(TEN, 30, 89),), deep=False, largest_payload_bytes=20)

    assert kept.contents == (Piece(TEN, 30, 60),)
    assert (kept.message_count, kept.size_bytes) == (1, 30)


def test_a_wrong_offset_is_an_error() -> None:
    """Who begins to read within an entry takes some bytes of it for its size."""
    with pytest.raises(InvalidMessageSize, match=r"offset 7: .*within an entry"):
        list(messages_in((Piece(TEN, 7, 60),), 7))


def test_a_cut_entry_with_something_after_it_ends_what_is_whole() -> None:
    contents = (Piece(TEN, 0, 45), *whole(TEN))

    assert whole_entries(contents) == 30
    with pytest.raises(InvalidMessageSize, match="something else follows"):
        valid_size(contents)


def test_a_payload_that_is_too_large_is_refused() -> None:
    with pytest.raises(MessageSizeTooLarge, match="20 bytes, 19 are allowed"):
        checked(whole(TEN), deep=True, largest_payload_bytes=19)
