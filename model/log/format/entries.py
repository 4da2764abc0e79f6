"""The operations of logs and consumers on contents: on bytes, or on ranges of a series."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.log.format import message_set_07, series
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES
from watchkeeper.model.log.format.message_set_07 import CheckedSet, MessageAndOffset


def intact_size(contents: Contents) -> int:
    """Return the bytes from the start that are intact entries: recovery truncates there."""
    if isinstance(contents, bytes):
        return message_set_07.intact_size(contents)
    return series.intact_size(contents)


def valid_size(contents: Contents) -> int:
    """Return the bytes of fetched contents that are whole entries: the next fetch begins there.

    Raises `InvalidMessageSize` for contents without a whole entry.
    """
    if isinstance(contents, bytes):
        return message_set_07.valid_size(contents)
    return series.valid_size(contents)


def messages_in(
    contents: Contents, at_offset: int = 0, *, limit_bytes: int = LARGEST_FRAME_BYTES
) -> Iterator[MessageAndOffset]:
    """Yield the checked messages of contents that were fetched at an offset.

    Raises a `LogError` at the first damaged entry.
    """
    if isinstance(contents, bytes):
        return message_set_07.messages_in(contents, at_offset, limit_bytes=limit_bytes)
    return series.messages_in(contents, at_offset)


def check_set(
    contents: Contents,
    *,
    opens_wrappers: bool,
    largest_payload_bytes: int,
    limit_bytes: int = LARGEST_FRAME_BYTES,
) -> CheckedSet:
    """Check contents before an append, without the partial entry at their end.

    `opens_wrappers` also checks and counts compressed messages. Raises a `LogError`.
    """
    if isinstance(contents, bytes):
        return message_set_07.check_set(
            contents,
            opens_wrappers=opens_wrappers,
            largest_payload_bytes=largest_payload_bytes,
            limit_bytes=limit_bytes,
        )
    return series.check_set(
        contents, opens_wrappers=opens_wrappers, largest_payload_bytes=largest_payload_bytes
    )
