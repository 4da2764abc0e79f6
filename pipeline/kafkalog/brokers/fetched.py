"""Makes entries and rows of fetched bytes, which are read like a part of a segment.

The last entry of a fetch may be cut off: the next fetch begins with it. A fetch that holds no
whole entry is repeated with more bytes. What can be no entry, however much is fetched, is damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.brokers.broker_log import BrokerLog, BrokerSplit, range_of
from watchkeeper.pipeline.kafkalog.brokers.fetcher import OVERHEAD_BYTES, Deleted, Fetcher
from watchkeeper.pipeline.kafkalog.scan.folders import Gaps, deleted_unread
from watchkeeper.pipeline.kafkalog.scan.formats import FORMATS, Format, Places, int64s
from watchkeeper.pipeline.kafkalog.scan.rows import Entries, Rows, entries_of, rows_of
from watchkeeper.pipeline.kafkalog.scan.segment_scan import Walked
from watchkeeper.pipeline.kafkalog.scan.split_reader import Asked, broken_rows, check_ascent
from watchkeeper.pipeline.kafkalog.scan.valid_runs import Broken, Whole, has_right_crc, stretches

FETCH_BYTES = 2 << 20
SAMPLE_BYTES = 64 << 10
"""How much is fetched to measure how large messages are."""
MOST_BYTES = LARGEST_FRAME_BYTES - OVERHEAD_BYTES
"""The largest fetch, and so the largest entry that can be read."""


class FetchedBytes(NamedTuple):
    """Bytes in memory, read like those of a segment."""

    data: bytes

    def read(self, at: int, end: int) -> bytes:
        """The bytes from there to there."""
        return self.data[at:end]


class Fetched(NamedTuple):
    """What one fetch holds."""

    offset: int
    """The offset at which it was fetched."""
    bytes: FetchedBytes
    runs: list[Whole | Broken]
    """At least one; the last entry, if it was cut off, is in none."""


def fetches(
    split: BrokerSplit, fetcher: Fetcher, gaps: Gaps, first_bytes: int = FETCH_BYTES
) -> Iterator[Fetched]:
    """Everything in a range, fetch after fetch."""
    form = FORMATS[split.format]
    at, max_bytes = split.from_offset, first_bytes
    while at < split.to_offset:
        if form.name == "0.7":
            max_bytes = min(max_bytes, split.to_offset - at)
        try:
            data = fetcher.fetch(at, max_bytes)
        except Deleted as deleted:
            if gaps == "fail":
                raise PipelineProblem(deleted_unread(split, at, deleted.start)) from None
            at = deleted.start
            continue
        runs = list(stretches(FetchedBytes(data), form, 0, len(data), may_be_torn=True))
        is_filled = max_bytes <= len(data) < MOST_BYTES
        if form.name == "0.7":
            is_filled &= at + len(data) < split.to_offset
        if is_filled and (more_bytes := _wanted_bytes(data, runs, form)):
            max_bytes = more_bytes
            continue
        runs = _without_end(data, runs)
        yield Fetched(at, FetchedBytes(data), runs)
        at = _following(at, runs, form, split)
        max_bytes = FETCH_BYTES


def _wanted_bytes(data: bytes, runs: list[Whole | Broken], form: Format) -> int:
    """How much to fetch instead, if the first entry is not whole; else 0."""
    if runs and isinstance(runs[0], Whole):
        return 0
    claimed = form.step(data, 0)
    if len(data) < claimed <= MOST_BYTES:
        return claimed
    is_nothing = not runs or (len(runs) == 1 and isinstance(runs[0], Broken))
    return min(2 * len(data), MOST_BYTES) if is_nothing else 0


def _without_end(data: bytes, runs: list[Whole | Broken]) -> list[Whole | Broken]:
    """The runs without damage at the end, which the next fetch begins with."""
    if not runs:
        return [Broken(0, len(data))]
    if len(runs) > 1 and isinstance(runs[-1], Broken):
        return runs[:-1]
    return runs


def _following(at: int, runs: list[Whole | Broken], form: Format, split: BrokerSplit) -> int:
    """The offset to fetch next."""
    last = runs[-1]
    if form.name == "0.7":
        return at + last.end
    if isinstance(last, Broken):
        raise PipelineProblem(
            f"{split} is damaged at offset {at}: no message begins there, nor in what follows "
            f"(at {split.where}); read it from the files of the broker"
        )
    following = int(_after(last)[-1])
    if following <= at:
        raise PipelineProblem(
            f"{split} cannot be read on from offset {at}: the broker at {split.where} answers "
            f"with messages before it, up to {following}"
        )
    return following


def _after(run: Whole) -> Places:
    """In 0.8 the offset after each entry."""
    return int64s(run.data, run.bounds[:-1]) + 1


# --- rows ------------------------------------------------------------------------------


def broker_rows(split: BrokerSplit, asked: Asked) -> Iterator[Rows]:
    """The messages of a range, in the order of the log, damaged or not."""
    form = FORMATS[split.format]
    reached: int | None = split.from_offset
    """The next expected offset, if it is known."""
    with Fetcher(split) as fetcher:
        for fetched in fetches(split, fetcher, asked.gaps):
            start = fetched.offset if form.name == "0.7" else None
            for run in fetched.runs:
                if isinstance(run, Broken):
                    at = fetched.offset if reached is None else reached
                    yield broken_rows(run, fetched.bytes, start, at)
                    reached = None
                    continue
                entries = _up_to(split.to_offset, entries_of(run, form, start or 0, None))
                if form.name == "0.8" and asked.gaps == "fail":
                    check_ascent(entries, split, reached)
                yield from rows_of(entries, form, str(split))
                reached = int(entries.next_offset[-1])
                if reached >= split.to_offset:
                    return


def _up_to(offset: int, entries: Entries) -> Entries:
    """The entries up to that which ends at an offset or behind it."""
    reaches = entries.next_offset >= offset
    if not reaches.any():
        return entries
    return entries.part(0, int(np.argmax(reaches)) + 1)


# --- entries ---------------------------------------------------------------------------


def entries_from(log: BrokerLog, offset: int) -> Iterator[Walked]:
    """The entries of a log from an offset on, up to its end now."""
    split = range_of(log, offset, log.end)
    form = FORMATS[log.format]
    with Fetcher(split) as fetcher:
        for fetched in fetches(split, fetcher, "fail"):
            for run in fetched.runs:
                if isinstance(run, Broken):
                    continue
                if form.name == "0.7":
                    yield Walked(run, fetched.offset + run.at + run.bounds[1:], True)
                else:
                    yield Walked(run, _after(run), True)


def message_bytes(log: BrokerLog, low: int) -> float:
    """About how large a message of a log of 0.8 is, measured from an offset on."""
    split = range_of(log, low, log.end)
    with Fetcher(split) as fetcher:
        for fetched in fetches(split, fetcher, "allow", SAMPLE_BYTES):
            whole = [run for run in fetched.runs if isinstance(run, Whole)]
            size_bytes = sum(len(run.data) for run in whole)
            if whole:
                return max(size_bytes / (int(_after(whole[-1])[-1]) - fetched.offset), 1.0)
    return 1.0


def begins_entry(log: BrokerLog, offset: int) -> bool:
    """Whether an undamaged entry of 0.7 begins at an offset, or the log ends there."""
    if offset == log.end:
        return True
    form = FORMATS[log.format]
    split = range_of(log, offset, log.end)
    with Fetcher(split) as fetcher:
        for fetched in fetches(split, fetcher, "fail"):
            first = fetched.runs[0]
            return isinstance(first, Whole) and has_right_crc(
                first.data[: int(first.bounds[1])], form
            )
    return False
