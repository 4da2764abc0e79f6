"""Scans a segment from entry to entry, without reading the messages.

A broker may be appending to the last segment, or may have died while it did: an incomplete entry
at its end is *torn*, and left for the next time. So is a last entry with a wrong CRC: a broker
that starts after a crash cuts both off. If a whole entry follows, it is damage, and no reason to
stop.

The CRC of 0.8 does not cover an entry's offset. A wrong one in the middle of a log is one wrong
message; after a wrong last one the next read would miss all later messages. So the last entry
counts as torn too, unless its offset is the expected one; and a segment is cut only where offsets
ascend.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

from watchkeeper.model.log.format import message_08
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.pipeline.kafkalog.scan.folders import LogFolder, Segment
from watchkeeper.pipeline.kafkalog.scan.formats import FORMATS, Format, Places, int64s
from watchkeeper.pipeline.kafkalog.scan.index import nearest
from watchkeeper.pipeline.kafkalog.scan.valid_runs import (
    PIECE_BYTES,
    SegmentFile,
    Whole,
    check_format,
    has_right_crc,
    opened,
    stretches,
)


class Walked(NamedTuple):
    """Scanned entries, none of them torn."""

    stretch: Whole
    after: Places
    """The offset at which to go on after each."""
    goes_on: bool
    """Whether the offsets before them ascend up to these."""


class Walk:
    """A scan through a segment."""

    def __init__(
        self, file: SegmentFile, form: Format, segment: Segment, limit: int | None
    ) -> None:
        self.file = file
        self.form = form
        self.segment = segment
        self.limit = limit
        """The start of the next segment; None if this is the last."""

    def place_of(self, offset: int, *, is_boundary: bool) -> int:
        """A place to start from, so that no message from this offset on is missed.

        In 0.7 an offset is a position; but unless an entry is known to start there, only one at
        the start of the segment is trusted.
        """
        if offset == self.segment.start:
            return 0
        if self.form.name == "0.7":
            return offset - self.segment.start if is_boundary else 0
        return nearest(self.file, self.form, self.segment.start, offset, self.segment.size_bytes)

    def entries(self, begin: int, piece_bytes: int = PIECE_BYTES) -> Iterator[Walked]:
        """All entries from the start of one on."""
        size_bytes = self.segment.size_bytes
        held: Whole | None = None
        before: Places | None = None
        for run in stretches(
            self.file,
            self.form,
            begin,
            size_bytes,
            piece_bytes=piece_bytes,
            may_be_torn=self.limit is None,
        ):
            if not isinstance(run, Whole):
                continue
            if held is not None:
                yield (passed := self._passed(held, before))
                before = passed.after
            held = run
        if held is not None and self.limit is None:
            held = _without_damaged_end(held, self.form)
        if held is not None:
            yield self._passed(held, before)

    def _passed(self, run: Whole, before: Places | None) -> Walked:
        if self.form.name == "0.7":
            after = self.segment.start + run.at + run.bounds[1:]
            return Walked(run, after, goes_on=True)
        after = int64s(run.data, run.bounds[:-1]) + 1
        goes_on = before is not None and bool(
            before[-1] < after[0] and (before[1:] > before[:-1]).all()
        )
        return Walked(run, after, goes_on)


def _without_damaged_end(run: Whole, form: Format) -> Whole | None:
    """The run without the untrusted entries at its end; None if no entry is left."""
    bounds = run.bounds.tolist()
    before: bytes | None = None
    while len(bounds) > 1:
        entry = run.data[bounds[-2] : bounds[-1]]
        before = run.data[bounds[-3] : bounds[-2]] if len(bounds) > 2 else None
        if has_right_crc(entry, form) and (form.name == "0.7" or _goes_on(before, entry)):
            count = len(bounds)
            return Whole(run.at, run.data[: bounds[-1]], run.bounds[:count])
        bounds.pop()
    return None


def _goes_on(before: bytes | None, entry: bytes) -> bool:
    """Whether an entry of 0.8 has the offset that follows the one before."""
    attributes = entry[message_08.CRC_AT + 5]
    (offset,) = message_08.OFFSET.unpack_from(entry)
    if attributes & message_08.CODEC_BITS:
        try:
            last = [record.offset for record in message_08.records(entry)][-1:]
        except LogError:
            return True
        return last in ([offset], [])
    return before is None or offset == message_08.OFFSET.unpack_from(before)[0] + 1


@contextmanager
def walk(log: LogFolder, segment: Segment, limit: int | None) -> Iterator[Walk]:
    """Open a segment to walk through it; PipelineProblem if it is of another format."""
    form = FORMATS[log.format]
    with opened(segment.path) as file:
        if segment.size_bytes:
            check_format(file, form, segment.size_bytes)
        yield Walk(file, form, segment, limit)


def with_limits(log: LogFolder) -> Iterator[tuple[Segment, int | None]]:
    """Each segment, and the offset at which the next one starts; None for the last."""
    for segment, following in pairwise((*log.segments, None)):
        assert segment is not None, "the end comes last"
        yield segment, None if following is None else following.start
