"""Reads a part of a segment as runs: of whole entries, or of bytes that are none.

The size of a read is bounded, however large the segment. An entry that does not fit into a block
is read by itself, once its size is known.

Where no entry can start, the next one is searched byte by byte: a place where one can, with a
right CRC. A message may contain what looks like entries, and after damage these can be taken for
some; without damage there is no search.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol
from zlib import crc32

import numpy as np

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.scan.entry_scan import chain
from watchkeeper.pipeline.kafkalog.scan.formats import (
    FORMATS,
    LIKELY_BYTES,
    TOO_SHORT,
    Format,
    Places,
)

PIECE_BYTES = 2 << 20


class Whole(NamedTuple):
    """Consecutive entries whose CRCs are not checked yet."""

    at: int
    """Their start in the file."""
    data: bytes
    bounds: Places
    """The start of each in the data, and the end of the last."""

    @property
    def end(self) -> int:
        """Where in the file they end."""
        return self.at + len(self.data)


class Broken(NamedTuple):
    """A place at which no entry can be read, up to the next that can."""

    at: int
    end: int


class Readable(Protocol):
    """Bytes that can be read at positions."""

    def read(self, at: int, end: int) -> bytes:
        """The bytes from there to there."""
        ...


class SegmentFile:
    """A file of a log, read at positions within the requested part."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def read(self, at: int, end: int) -> bytes:
        """The bytes from there to there; PipelineProblem if they are not all there."""
        parts = []
        begin = at
        while begin < end:
            part = os.pread(self._descriptor, end - begin, begin)
            if not part:
                raise PipelineProblem(
                    f"{self.path} has become shorter than {end} bytes while it was read: its "
                    "broker has recovered or replaced it; try again"
                )
            parts.append(part)
            begin += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


@contextmanager
def opened(path: str) -> Iterator[SegmentFile]:
    """Open a segment for reading; PipelineProblem where that cannot be."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise PipelineProblem(
            f"{path} is not there: it was deleted since it was listed, or this worker does not "
            "see the folder of the logs; try again, or give every worker the folder at that path"
        ) from None
    except OSError as error:
        raise PipelineProblem(f"{path} cannot be read: {error.strerror or error}") from None
    try:
        yield SegmentFile(path, descriptor)
    except OSError as error:
        raise PipelineProblem(f"{path} cannot be read: {error.strerror or error}") from None
    finally:
        os.close(descriptor)


def stretches(
    file: Readable,
    form: Format,
    begin: int,
    end: int,
    *,
    piece_bytes: int = PIECE_BYTES,
    may_be_torn: bool = False,
) -> Iterator[Whole | Broken]:
    """Everything from `begin`, the start of an entry, to `end`, the end of one.

    If the last entry may be torn, the bytes that look like its start are left out.
    """
    piece_bytes = max(piece_bytes, form.head_bytes)
    at = begin
    while at < end:
        found: Whole | Broken | None = _entries(file, form, at, end, piece_bytes)
        if found is None and may_be_torn and _is_beginning(file, form, at, end):
            return
        if found is None:
            found = Broken(at, _next_entry(file, form, at + 1, end, piece_bytes))
        yield found
        at = found.end


def _entries(file: Readable, form: Format, at: int, end: int, piece_bytes: int) -> Whole | None:
    """The whole entries at a place, as many as are in a block; None if there are none."""
    data = file.read(at, min(at + piece_bytes, end))
    bounds = chain(data, form)
    if len(bounds) == 1:
        size_bytes = form.step(data, 0)
        if not len(data) < size_bytes <= end - at:
            return None
        data = file.read(at, at + size_bytes)
        bounds = np.array([0, size_bytes])
    return Whole(at, data[: int(bounds[-1])], bounds)


def _is_beginning(file: Readable, form: Format, at: int, end: int) -> bool:
    """Whether an entry seems to start at a place and ends behind the end."""
    size_bytes = form.step(file.read(at, min(at + form.head_bytes, end)), 0)
    return size_bytes == TOO_SHORT or end - at < size_bytes < LIKELY_BYTES


# --- after damage ----------------------------------------------------------------------


def _next_entry(file: Readable, form: Format, at: int, end: int, piece_bytes: int) -> int:
    """The first undamaged entry from a place on; the end if there is none."""
    while at < end:
        data = file.read(at, min(at + piece_bytes, end))
        for place in _possible(data, form):
            if _is_undamaged(file, form, data, at, int(place), end):
                return at + int(place)
        # places too near to the end of a block for a head are searched with the next block
        at += max(len(data) - form.head_bytes + 1, 1) if at + len(data) < end else len(data)
    return end


def _possible(data: bytes, form: Format) -> Iterator[int]:
    """The places at which an entry of ordinary size can start."""
    zeros = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    highest = zeros - form.size_at
    for place in highest[highest >= 0].tolist():
        if 0 < form.step(data, place) < place + LIKELY_BYTES:
            yield place


def _is_undamaged(
    file: Readable, form: Format, data: bytes, at: int, place: int, end: int
) -> bool:
    """Whether the entry at a place of the data, which start at `at`, has the right CRC."""
    size_bytes = form.step(data, place) - place
    if at + place + size_bytes > end:
        return False
    entry = data[place : place + size_bytes]
    if len(entry) < size_bytes:
        entry = file.read(at + place, at + place + size_bytes)
    return has_right_crc(entry, form)


def has_right_crc(entry: bytes, form: Format) -> bool:
    """Whether one whole entry is undamaged."""
    heads = form.heads(entry, np.array([0]), np.array([len(entry)]))
    return crc32(memoryview(entry)[int(heads.checked_at[0]) :]) == int(heads.crc[0])


# --- the wrong format ------------------------------------------------------------------


def check_format(file: SegmentFile, form: Format, size_bytes: int) -> None:
    """Raise PipelineProblem if a segment starts with an entry of another format."""
    if form.step(file.read(0, min(size_bytes, form.head_bytes)), 0) >= TOO_SHORT:
        return
    data = file.read(0, min(size_bytes, PIECE_BYTES))
    for other in FORMATS.values():
        size = other.step(data, 0)
        if other is not form and 0 < size <= len(data) and has_right_crc(data[:size], other):
            raise PipelineProblem(
                f"{file.path} is named as Kafka {form.name} names its files and holds messages "
                f"of {other.name}; rename it to {other.suffix}, or move it out of the folder"
            )
    if form.name == "0.8" and len(data) > 17 and 0 < data[16] <= 2 and not data[8]:
        raise PipelineProblem(
            f"{file.path} holds messages of magic {data[16]}, as Kafka 0.10 and later write "
            "them; those of 0.7 and 0.8 can be read here"
        )
