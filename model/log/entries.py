"""What a log and a consumer ask of contents, be they bytes or pieces of series."""

from __future__ import annotations

from collections.abc import Iterator

from model.log import message_set, pieces
from model.log.contents import Contents
from model.log.message_set import Checked, Delivered
from model.log.wire import LARGEST_FRAME_BYTES


def whole_entries(contents: Contents) -> int:
    """How many bytes from the start are whole and undamaged entries: recovery cuts there."""
    if isinstance(contents, bytes):
        return message_set.whole_entries(contents)
    return pieces.whole_entries(contents)


def valid_size(contents: Contents) -> int:
    """How many bytes of what was fetched are whole entries: the next fetch begins there.

    `InvalidMessageSize` if there is something, and no whole entry in it.
    """
    if isinstance(contents, bytes):
        return message_set.valid_size(contents)
    return pieces.valid_size(contents)


def messages_in(
    contents: Contents, at_offset: int = 0, *, limit_bytes: int = LARGEST_FRAME_BYTES
) -> Iterator[Delivered]:
    """The messages in what was fetched from an offset on, as a consumer is handed them."""
    if isinstance(contents, bytes):
        return message_set.deep(contents, at_offset, limit_bytes=limit_bytes)
    return pieces.deep(contents, at_offset)


def checked(
    contents: Contents,
    *,
    deep: bool,
    largest_payload_bytes: int,
    limit_bytes: int = LARGEST_FRAME_BYTES,
) -> Checked:
    """Check what is to be appended, and cut off the part of an entry at its end.

    With `deep` compressed messages are opened, to check and count them too.
    """
    if isinstance(contents, bytes):
        return message_set.checked(
            contents,
            deep=deep,
            largest_payload_bytes=largest_payload_bytes,
            limit_bytes=limit_bytes,
        )
    return pieces.checked(contents, largest_payload_bytes=largest_payload_bytes)
