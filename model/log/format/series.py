"""The entries of ranges of a series, as `message_set_07` has those of bytes.

The functions have the same names and the same results for the same log: the kind of contents
makes no difference to its offsets. A message of a series is never damaged. Only a cut can be
wrong: a range may end within an entry, as fetched contents do, but one that begins within an
entry is the result of a wrong offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from watchkeeper.model.log.format.contents import Series, SeriesRange, Wrapper
from watchkeeper.model.log.format.errors import InvalidMessageSize, LogError, MessageSizeTooLarge
from watchkeeper.model.log.format.message_set_07 import (
    CheckedSet,
    MessageAndOffset,
    SeriesMessage,
)


class EntryRun(Struct, frozen=True):
    """Consecutive whole entries of one series, or one wrapper."""

    begin: int
    """Its position in the contents."""
    series: Series | Wrapper
    first: int
    """The index of its first entry in the series, from 0."""
    count: int
    """The number of entries."""

    @property
    def size_bytes(self) -> int:
        """The size of the entries."""
        return self.count * self.series.entry_bytes

    @property
    def message_count(self) -> int:
        """The number of messages in the entries."""
        return self.series.count if isinstance(self.series, Wrapper) else self.count


def _merged(ranges: Sequence[SeriesRange]) -> Iterator[SeriesRange]:
    """Join adjacent ranges of one series: an append may have been written in parts."""
    growing: SeriesRange | None = None
    for part in ranges:
        if growing is None:
            growing = part
        elif growing.series == part.series and growing.end == part.begin:
            growing = SeriesRange(growing.series, growing.begin, part.end)
        else:
            yield growing
            growing = part
    if growing is not None:
        yield growing


def runs(ranges: Sequence[SeriesRange], at_offset: int = 0) -> Iterator[EntryRun]:
    """Yield the whole entries; raise `InvalidMessageSize` for a partial one before the end."""
    begin = 0
    is_cut = False
    for part in _merged([part for part in ranges if part.size_bytes]):
        entry_bytes = part.series.entry_bytes
        first, into_entry = divmod(part.begin, entry_bytes)
        if is_cut or into_entry:
            what = "an entry is cut, and something else follows" if is_cut else "within an entry"
            raise InvalidMessageSize(f"offset {at_offset + begin}", what)
        run = EntryRun(begin, part.series, first, part.end // entry_bytes - first)
        begin += run.size_bytes
        is_cut = run.size_bytes < part.size_bytes
        if run.count:
            yield run
    if is_cut and begin == 0:
        raise InvalidMessageSize(f"offset {at_offset}", "a part of an entry, and no whole one")


def messages_in(ranges: Sequence[SeriesRange], at_offset: int = 0) -> Iterator[MessageAndOffset]:
    """Yield the messages with their next offsets."""
    for run in runs(ranges, at_offset):
        offset = at_offset + run.begin
        if isinstance(run.series, Wrapper):
            yield from _unwrapped(run.series, offset)
            continue
        entry_bytes = run.series.entry_bytes
        number = run.series.first + run.first
        for _ in range(run.count):
            message = SeriesMessage(run.series.producer, number)
            yield MessageAndOffset(offset, offset + entry_bytes, message)
            offset += entry_bytes
            number += 1


def _unwrapped(wrapper: Wrapper, offset: int) -> Iterator[MessageAndOffset]:
    """Yield the messages of a wrapper: only the last one moves the offset."""
    left = wrapper.count
    for part in wrapper.parts:
        for number in range(part.first, part.first + part.count):
            left -= 1
            next_offset = offset if left else offset + wrapper.entry_bytes
            yield MessageAndOffset(offset, next_offset, SeriesMessage(part.producer, number))


def valid_size(ranges: Sequence[SeriesRange]) -> int:
    """Return the number of bytes that are whole entries; the rest is a partial one."""
    return sum(run.size_bytes for run in runs(ranges))


def intact_size(ranges: Sequence[SeriesRange]) -> int:
    """Return the number of bytes from the start that are whole entries, whatever follows."""
    size_bytes = 0
    with suppress(LogError):
        for run in runs(ranges):
            size_bytes += run.size_bytes
    return size_bytes


def check_set(
    ranges: Sequence[SeriesRange], *, opens_wrappers: bool, largest_payload_bytes: int
) -> CheckedSet:
    """Check messages before they are appended, and drop the partial entry at the end.

    With `opens_wrappers` the messages in wrappers are counted; otherwise a wrapper counts as one.
    """
    accepted = []
    message_count = size_bytes = 0
    for run in runs(ranges):
        payload_bytes = run.series.payload_bytes
        if payload_bytes > largest_payload_bytes:
            detail = f"{payload_bytes} bytes, {largest_payload_bytes} are allowed"
            raise MessageSizeTooLarge(f"offset {run.begin}", detail)
        begin = run.first * run.series.entry_bytes
        accepted.append(SeriesRange(run.series, begin, begin + run.size_bytes))
        message_count += run.message_count if opens_wrappers else run.count
        size_bytes += run.size_bytes
    return CheckedSet(tuple(accepted), message_count, size_bytes)
