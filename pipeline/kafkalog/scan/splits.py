"""Cuts logs into splits: parts of a segment, each of which one task reads.

A split starts at the start of an entry and ends at the end of one. A small segment is one split,
without a scan. A large one is scanned and cut on the way, and so is the last one, to find its
end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import Struct

from watchkeeper.pipeline.kafkalog.scan.folders import LogFolder, Segment
from watchkeeper.pipeline.kafkalog.scan.formats import Flags
from watchkeeper.pipeline.kafkalog.scan.segment_scan import Walk, walk, with_limits
from watchkeeper.pipeline.kafkalog.scan.valid_runs import PIECE_BYTES

SPLIT_BYTES = 128 << 20
BUNDLE_BYTES = 32 << 20
"""A task that would read less than this reads several splits."""


class LogRange(Struct, frozen=True):
    """A range of offsets of a log, which one task reads."""

    topic: str
    broker: int
    partition: int
    format: str
    from_offset: int
    to_offset: int
    """The first requested offset, and the one at which to continue."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} of broker {self.broker}"

    @property
    def where(self) -> str:
        """Where it is read."""
        raise NotImplementedError

    @property
    def size_bytes(self) -> int:
        """About how much is read."""
        raise NotImplementedError


class Split(LogRange, frozen=True):
    """A part of a segment, with its offsets."""

    path: str
    start: int
    """The offset at which the segment starts."""
    begin: int
    end: int
    """The start and end of the split in the file."""
    limit: int | None
    """The offset at which the next segment starts; None in the last."""
    is_at_end: bool
    """Whether the segment ends with it."""

    @property
    def where(self) -> str:
        """The path of the segment."""
        return self.path

    @property
    def size_bytes(self) -> int:
        """How much is read."""
        return self.end - self.begin


Range = TypeVar("Range", bound=LogRange)


class Cut(NamedTuple):
    """A log, cut."""

    splits: Sequence[LogRange]
    end: int
    """The offset at which to go on."""
    torn_bytes: int
    """Bytes at the end of the log that are no whole entry."""


class Wanted(NamedTuple):
    """The requested part of a log, and how to cut it."""

    low: int
    """From which offset on."""
    high: int | None
    """One past the last offset; None for all there is."""
    are_boundaries: bool
    """Whether entries are known to start or end at these offsets."""
    split_bytes: int


class _Mark(NamedTuple):
    """A place in a segment at which an entry starts, or the last one ends."""

    at: int
    offset: int


def cut(
    log: LogFolder,
    low: int | None = None,
    high: int | None = None,
    *,
    split_bytes: int = SPLIT_BYTES,
    are_boundaries: bool = False,
) -> Cut:
    """Cut a log from one offset up to another.

    `are_boundaries` means that entries are known to start and end there, as they do where an
    earlier batch has ended.
    """
    low = log.start if low is None else max(low, log.start)
    wanted = Wanted(low, high, are_boundaries, split_bytes)
    splits: list[Split] = []
    end, torn_bytes = low, 0
    for segment, limit in with_limits(log):
        if (limit is not None and limit <= low) or (high is not None and segment.start >= high):
            continue
        marks = _known(log, segment, limit, wanted)
        if marks is None:
            with walk(log, segment, limit) as way:
                marks, torn_bytes = _found(way, wanted)
        splits += _splits(log, segment, limit, marks)
        end = marks[-1].offset
    return Cut(splits, end, torn_bytes)


def _known(
    log: LogFolder, segment: Segment, limit: int | None, wanted: Wanted
) -> list[_Mark] | None:
    """The cuts of a small segment, if they are known without a scan."""
    is_place = log.format == "0.7" and wanted.are_boundaries
    begin = _Mark(0, segment.start)
    if wanted.low > segment.start:
        if not is_place:
            return None
        begin = _Mark(wanted.low - segment.start, wanted.low)
    if limit is not None and (wanted.high is None or limit <= wanted.high):
        end = _Mark(segment.size_bytes, limit)
    elif is_place and wanted.high is not None:
        end = _Mark(wanted.high - segment.start, wanted.high)
    else:
        return None
    return [begin, end] if end.at - begin.at <= wanted.split_bytes else None


def _found(way: Walk, wanted: Wanted) -> tuple[list[_Mark], int]:
    """Where a segment is cut, by walking through it; and how much at its end is torn."""
    segment, limit = way.segment, way.limit
    offset = max(wanted.low, segment.start)
    begin = way.place_of(offset, is_boundary=wanted.are_boundaries)
    if begin > segment.size_bytes:
        return [_Mark(segment.size_bytes, segment.start + segment.size_bytes)], 0
    log_is_bytes = way.form.name == "0.7"
    is_sure = offset == segment.start or (begin > 0 and log_is_bytes)
    reached = _Mark(begin, offset if is_sure else segment.start)
    found = [reached] if is_sure else []
    for walked in way.entries(begin, min(wanted.split_bytes, PIECE_BYTES)):
        at, after = walked.stretch.at, walked.after
        if not found:
            unwanted = _first(after > offset)
            if unwanted < len(after):
                bound = walked.stretch.bounds[unwanted]
                found.append(_Mark(at + int(bound) if unwanted else reached.at, offset))
        elif at - found[-1].at >= wanted.split_bytes and at == reached.at and walked.goes_on:
            # the offsets behind damage are unknown
            found.append(_Mark(at, reached.offset))
        if found and wanted.high is not None:
            last = _first(after >= wanted.high)
            if last < len(after):
                end_offset = int(after[last]) if log_is_bytes else wanted.high
                return [*found, _Mark(at + int(walked.stretch.bounds[last + 1]), end_offset)], 0
        reached = _Mark(walked.stretch.end, int(after[-1]))
    if limit is not None:
        return [*(found or [reached]), _Mark(segment.size_bytes, limit)], 0
    return [*found, reached], segment.size_bytes - reached.at


def _first(flags: Flags) -> int:
    """The index of the first true flag; the number of flags if none is."""
    at = int(np.argmax(flags)) if len(flags) else 0
    return at if len(flags) and flags[at] else len(flags)


def _splits(
    log: LogFolder, segment: Segment, limit: int | None, marks: list[_Mark]
) -> list[Split]:
    return [
        Split(
            topic=log.topic,
            broker=log.broker,
            partition=log.partition,
            format=log.format,
            path=segment.path,
            start=segment.start,
            begin=begin.at,
            end=end.at,
            from_offset=begin.offset,
            to_offset=end.offset,
            limit=limit,
            is_at_end=end.at == segment.size_bytes,
        )
        for begin, end in pairwise(marks)
        if begin.at < end.at
    ]


def bundles(splits: Iterable[Range], bundle_bytes: int = BUNDLE_BYTES) -> list[list[Range]]:
    """Splits in their order, small ones bundled."""
    found: list[list[Range]] = []
    size_bytes = bundle_bytes
    for split in splits:
        if size_bytes + split.size_bytes > bundle_bytes:
            found.append([])
            size_bytes = 0
        found[-1].append(split)
        size_bytes += split.size_bytes
    return found
