"""The identity of a message: its producer and its number there.

A message of a series carries its identity itself. A real message carries it in its payload, if
the payload was made here; any other message has no identity and is not accounted for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.log.format import series as pieces
from watchkeeper.model.log.format.contents import Contents, Series, Wrapper
from watchkeeper.model.log.format.entries import messages_in
from watchkeeper.model.log.format.message_set_07 import MessageAndOffset

_IDENTITY = re.compile(rb"([^/]+)/(\d+)/.*", re.DOTALL)
FILLER = b"."


def payload_of(producer: str, number: int, size_bytes: int) -> bytes:
    """A payload with the producer's name and sequence number, padded to `size_bytes`."""
    assert "/" not in producer, "a producer's name ends at the first slash"
    return f"{producer}/{number}/".encode().ljust(size_bytes, FILLER)


def identity_of(payload: bytes) -> tuple[str, int] | None:
    """The producer and number of a message; None if its payload has none."""
    found = _IDENTITY.fullmatch(payload)
    return None if found is None else (found[1].decode(errors="replace"), int(found[2]))


def ranges_in(contents: Contents, at_offset: int) -> list[MessageRange]:
    """The message ranges in contents that start at an offset."""
    if isinstance(contents, bytes):
        return merged(_ranges_in_bytes(contents, at_offset))
    found: list[MessageRange] = []
    for run in pieces.runs(contents, at_offset):
        offset = at_offset + run.begin
        if isinstance(run.series, Wrapper):
            found += merged(_ranges_in_wrapper(run.series, offset))
        else:
            found.append(range_of_series(run.series, run.first, run.count, offset))
    return found


def _ranges_in_wrapper(wrapper: Wrapper, offset: int) -> Iterator[MessageRange]:
    """One range for each series in a wrapper; all have its position."""
    end = offset + wrapper.entry_bytes
    for piece in wrapper.parts:
        last = piece.first + piece.count
        yield MessageRange(piece.producer, piece.first, last, offset, end, wrapper.count > 1)


def range_of_series(series: Series, skipped: int, count: int, at_offset: int) -> MessageRange:
    """A message range: `count` messages of a series after the first
    `skipped`, from an offset on."""
    first = series.first + skipped
    end = at_offset + count * series.entry_bytes
    return MessageRange(series.producer, first, first + count, at_offset, end)


def _ranges_in_bytes(contents: bytes, at_offset: int) -> Iterator[MessageRange]:
    """One range a message; the messages of one wrapper have one position."""
    for offset, group in groupby(messages_in(contents, at_offset), _offset):
        messages = list(group)
        to = messages[-1].next_offset
        for message in messages:
            assert isinstance(message.payload, bytes), "bytes hold payloads"
            identity = identity_of(message.payload)
            if identity is not None:
                producer, number = identity
                yield MessageRange(producer, number, number + 1, offset, to, len(messages) > 1)


def _offset(message: MessageAndOffset) -> int:
    return message.offset


def merged(ranges: Iterable[MessageRange]) -> list[MessageRange]:
    """The same ranges with consecutive ones merged."""
    found: list[MessageRange] = []
    for message_range in ranges:
        last = found[-1] if found else None
        if last is not None and last.precedes(message_range):
            found[-1] = last._replace(end=message_range.end, to=message_range.to)
        elif last is not None and _shares_entry(last, message_range):
            found[-1] = last._replace(end=message_range.end)
        else:
            found.append(message_range)
    return found


def _shares_entry(earlier: MessageRange, later: MessageRange) -> bool:
    return (
        earlier.one_entry
        and later.one_entry
        and (earlier.producer, earlier.end, earlier.at) == (later.producer, later.first, later.at)
    )
