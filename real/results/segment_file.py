"""The files of a segment store: segments that are written once and never changed.

A segment contains steps, each with results and the position behind their messages. It exists
completely or not at all: it is written under another name, synced, and only then renamed. So a
torn segment has lost results and positions together, and its messages are read again.

A name says which segments a file covers: `0000000003-0000000007` has all steps of the third to
the seventh. It may exist beside the files that it was merged from, because a process may be
killed before it has deleted them; the next process deletes what another file covers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    File,
    Flush,
    ListFolder,
    Read,
    Rename,
)

MAGIC = b"results1"
CHECK_BYTES = 4
UNFINISHED = ".writing"
TORN = ".torn"
_NAME = re.compile(r"(\d{10})-(\d{10})\.segment")


class Step(Struct, frozen=True, array_like=True):
    """Results, and the position that was stored with them."""

    group: str
    partition: Partition
    expected: int | None
    place: int
    results: tuple[bytes, ...]


class Segment(NamedTuple):
    """A file, by the segments that it covers; sorted, the widest comes first."""

    first: int
    up_to: int
    """The negative of the last segment, so that the widest sorts first."""

    @property
    def last(self) -> int:
        """The last segment that it covers."""
        return -self.up_to

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.first:010}-{self.last:010}.segment"

    def has(self, other: Segment) -> bool:
        """Whether it covers everything that the other covers."""
        return self.first <= other.first and other.last <= self.last


def segment(first: int, last: int) -> Segment:
    """The file that covers these segments."""
    return Segment(first, -last)


def segments_in(files: Sequence[File]) -> list[Segment]:
    """The segments in a folder, including torn ones."""
    names = (_NAME.fullmatch(file.name) for file in files)
    return sorted(segment(int(name[1]), int(name[2])) for name in names if name)


# --- contents --------------------------------------------------------------------------

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[Step, ...])


def encoded(steps: Sequence[Step]) -> bytes:
    """The contents of a segment file."""
    body = _ENCODER.encode(steps)
    return MAGIC + crc32(body).to_bytes(CHECK_BYTES, "big") + body


def decoded(data: bytes) -> tuple[Step, ...] | None:
    """The steps of a segment; None if it is torn."""
    head = len(MAGIC) + CHECK_BYTES
    body = data[head:]
    if data[:head] != MAGIC + crc32(body).to_bytes(CHECK_BYTES, "big"):
        return None
    return _DECODER.decode(body)


# --- files -----------------------------------------------------------------------------


async def write_segment(part: Segment, steps: Sequence[Step]) -> None:
    """Write a segment atomically: it exists when this returns, and not before."""
    path, contents = part.name + UNFINISHED, encoded(steps)
    await CreateFile(path)
    while contents:
        contents = contents[await Append(path, contents) :]
    await Flush(path)
    await Rename(path, part.name)


async def read_segment(part: Segment, size_bytes: int) -> tuple[Step, ...] | None:
    """Read a segment; None if it is torn."""
    data = await Read(part.name, 0, size_bytes)
    assert isinstance(data, bytes), "files hold bytes"
    return decoded(data)


async def clean_up() -> dict[Segment, int]:
    """Remove leftovers from a folder; return the remaining segments with their sizes.

    A torn segment is renamed, not deleted, so that it can be examined.
    """
    files = await ListFolder("")
    for file in files:
        if file.name.endswith(UNFINISHED):
            await Delete(file.name)
    sizes = {file.name: file.size_bytes for file in files}
    kept: dict[Segment, int] = {}
    for found in segments_in(files):
        if await read_segment(found, sizes[found.name]) is None:
            await Rename(found.name, found.name + TORN)
        elif any(other.has(found) for other in kept):
            await Delete(found.name)
        else:
            kept[found] = sizes[found.name]
    return kept


async def merge_segments(parts: Sequence[Segment], steps: Sequence[Step]) -> Segment:
    """Merge consecutive segments into one that has the steps of all."""
    merged = segment(parts[0].first, parts[-1].last)
    await write_segment(merged, steps)
    for part in parts:
        await Delete(part.name)
    return merged


async def torn_segments() -> tuple[str, ...]:
    """The names of the torn segments."""
    return tuple(file.name for file in await ListFolder("") if file.name.endswith(TORN))
