"""Reads a split of a segment into rows, and handles damaged entries.

What makes columns of rows, and what is done about damage, are the same for rows from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct

from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.scan.folders import Gaps, missing
from watchkeeper.pipeline.kafkalog.scan.formats import FORMATS, Flags
from watchkeeper.pipeline.kafkalog.scan.rows import Entries, Rows, entries_of, rows_of
from watchkeeper.pipeline.kafkalog.scan.splits import LogRange, Split
from watchkeeper.pipeline.kafkalog.scan.valid_runs import (
    PIECE_BYTES,
    Broken,
    Readable,
    SegmentFile,
    Whole,
    opened,
    stretches,
)

LONGEST_BYTES = 1 << 20
"""The greatest number of bytes that are no message in one row."""
WRONG_CRC = "the CRC of a message is wrong, or its lengths do not add up"

OnCorrupt = Literal["fail", "skip", "quarantine"]


class Asked(Struct, frozen=True):
    """How a split is to be read."""

    columns: tuple[str, ...]
    on_corrupt: OnCorrupt = "fail"
    gaps: Gaps = "fail"
    piece_bytes: int = PIECE_BYTES


class Counts:
    """The counts of a split."""

    def __init__(self) -> None:
        self.messages = 0
        self.corrupt = 0
        """Messages, or bytes without one, that cannot be trusted."""


class Column(NamedTuple):
    """A column: its name, its type, its values from the rows of a split, and its description."""

    name: str
    kind: pa.DataType
    make: Callable[[Rows, LogRange, int], pa.Array]
    says: str = ""


# --- columns ---------------------------------------------------------------------------


def _constant(number: int, count: int) -> pa.Array:
    return pa.array(np.full(count, number, np.int32))


def _text(text: str | None, count: int) -> pa.Array:
    """One text, repeated."""
    if text is None:
        return pa.nulls(count, pa.string())
    encoded = text.encode()
    offsets = (np.arange(count + 1) * len(encoded)).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(encoded * count)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def _codec(rows: Rows, split: LogRange, count: int) -> pa.Array:
    return _text(CODEC_NAMES.get(rows.codec), count)


def _crc_ok(rows: Rows, split: LogRange, count: int) -> pa.Array:
    return pa.array(np.ones(count, bool) if rows.crc_ok is None else rows.crc_ok)


CODEC_NAMES: dict[int | None, str] = {codec.value: codec.name.lower() for codec in Codec}


def _key(rows: Rows, split: LogRange, count: int) -> pa.Array:
    return pa.nulls(count, pa.binary()) if rows.key is None else rows.key


COLUMNS = {
    column.name: column
    for column in (
        Column("topic", pa.string(), lambda rows, split, count: _text(split.topic, count)),
        Column("broker", pa.int32(), lambda rows, split, count: _constant(split.broker, count)),
        Column(
            "partition", pa.int32(), lambda rows, split, count: _constant(split.partition, count)
        ),
        Column(
            "offset",
            pa.int64(),
            lambda rows, split, count: pa.array(rows.offset),
            "0.7: the position of the entry in bytes; 0.8: the number of the message",
        ),
        Column("key", pa.binary(), _key, "null in 0.7, and in a message without one"),
        Column(
            "payload",
            pa.binary(),
            lambda rows, split, count: rows.payload,
            "null in a tombstone of 0.8",
        ),
        Column("codec", pa.string(), _codec, "the compression: none, gzip, snappy or lz4"),
        Column("crc_ok", pa.bool_(), _crc_ok, "false for a damaged message, if these are kept"),
        Column(
            "next_offset",
            pa.int64(),
            lambda rows, split, count: pa.array(rows.next_offset),
            "the offset to read next; in a wrapper of 0.7 its own, except for the last message",
        ),
    )
}
"""Every column of a message."""


def batch_of(rows: Rows, split: LogRange, columns: Sequence[Column]) -> pa.RecordBatch:
    """Rows as a record batch."""
    count = len(rows.offset)
    arrays = [column.make(rows, split, count) for column in columns]
    schema = pa.schema([(column.name, column.kind) for column in columns])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# --- a split ---------------------------------------------------------------------------


def segment_rows(split: Split, asked: Asked) -> Iterator[Rows]:
    """The messages of a split of a segment, in the order of the log, damaged or not."""
    with opened(split.path) as file:
        yield from _rows(split, asked, file)


def treated(
    found: Iterable[Rows], split: LogRange, asked: Asked, counts: Counts
) -> Iterator[Rows]:
    """Those of the rows that are wanted, with damaged ones treated as the policy has it."""
    for each in found:
        rows = _wanted(each, split)
        if rows.crc_ok is not None and not rows.crc_ok.all():
            counts.corrupt += len(rows.crc_ok) - int(np.count_nonzero(rows.crc_ok))
            rows = _treated(rows, split, asked)
        if len(rows.offset):
            counts.messages += len(rows.offset)
            yield rows


def _rows(split: Split, asked: Asked, file: SegmentFile) -> Iterator[Rows]:
    form = FORMATS[split.format]
    reached: int | None = split.from_offset
    """The next expected offset, if it is known."""
    for run in stretches(file, form, split.begin, split.end, piece_bytes=asked.piece_bytes):
        if isinstance(run, Whole):
            entries = entries_of(run, form, split.start, split.limit)
            if form.name == "0.8" and asked.gaps == "fail":
                check_ascent(entries, split, reached)
            yield from rows_of(entries, form, str(split))
            reached = int(entries.next_offset[-1])
        else:
            yield broken_rows(run, file, _start_of_07(split), reached or split.from_offset)
            reached = None
    if form.name == "0.8" and asked.gaps == "fail" and reached is not None:
        _check_limit(split, reached)


def _start_of_07(split: Split) -> int | None:
    return split.start if split.format == "0.7" else None


def check_ascent(entries: Entries, split: LogRange, expected: int | None) -> None:
    """In 0.8 each uncompressed message has the offset after the one before."""
    first = entries.offset[0] if expected is None else expected
    due = np.append(first, entries.offset[:-1] + 1)
    is_gap = np.where(entries.heads.codec == 0, entries.offset != due, entries.offset < due)
    if entries.ok is not None:
        is_gap &= entries.ok
    if is_gap.any():
        at = int(np.argmax(is_gap))
        raise PipelineProblem(
            f"{split} has no message of offset {due[at]}: {entries.offset[at]} comes "
            f"in its place (in {split.where}); messages are missing, or the topic was compacted: "
            "read what is there by allowing gaps"
        )


def _check_limit(split: Split, reached: int) -> None:
    """In 0.8 only the last message shows whether the next segment continues after it."""
    if split.is_at_end and split.limit is not None and reached != split.limit:
        following = f"that of offset {split.limit}"
        name = f"{split.broker}/{split.topic}-{split.partition}"
        raise PipelineProblem(missing(name, split.path, reached, following, split.limit))


def _wanted(rows: Rows, split: LogRange) -> Rows:
    """The rows without messages of a 0.8 wrapper outside the requested range."""
    if split.format == "0.7":
        return rows
    wanted = (rows.offset >= split.from_offset) & (rows.offset < split.to_offset)
    if rows.crc_ok is not None:
        wanted |= ~rows.crc_ok
    return rows if wanted.all() else picked(rows, wanted)


def picked(rows: Rows, flags: Flags) -> Rows:
    """Those of the rows that are flagged."""
    mask = pa.array(flags)
    return Rows(
        rows.offset[flags],
        rows.next_offset[flags],
        None if rows.key is None else rows.key.filter(mask),
        rows.payload.filter(mask),
        rows.codec,
        None if rows.crc_ok is None else rows.crc_ok[flags],
        rows.reason,
    )


# --- what cannot be trusted ------------------------------------------------------------


def broken_rows(place: Broken, file: Readable, start: int | None, reached: int) -> Rows:
    """A place without an entry, as rows of not too many bytes each.

    `start` is the offset of the first byte in 0.7, where offsets count bytes; else None, and the
    rows have the offset that was reached.
    """
    begins = np.arange(place.at, place.end, LONGEST_BYTES)
    ends = np.minimum(begins + LONGEST_BYTES, place.end)
    places = zip(begins.tolist(), ends.tolist(), strict=True)
    data = [file.read(begin, end) for begin, end in places]
    if start is not None:
        offset, next_offset = start + begins, start + ends
    else:
        offset = next_offset = np.full(len(begins), reached)
    untrusted = np.zeros(len(begins), bool)
    payload = pa.array(data, pa.binary())
    return Rows(offset, next_offset, None, payload, None, untrusted, "no message begins there")


def _treated(rows: Rows, split: LogRange, asked: Asked) -> Rows:
    """Rows of which some cannot be trusted, as the policy has it."""
    assert rows.crc_ok is not None, "all of these rows are right"
    if asked.on_corrupt == "skip":
        return picked(rows, rows.crc_ok)
    if asked.on_corrupt == "quarantine":
        return rows
    offset = int(rows.offset[np.flatnonzero(~rows.crc_ok)[0]])
    raise PipelineProblem(
        f"{split} is damaged at offset {offset}: {rows.reason or WRONG_CRC} (in "
        f"{split.where}); have damaged messages skipped or put in quarantine, or restore the file"
    )
