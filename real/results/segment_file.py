"""The files of a store of results: segments that are written once and never changed.

A segment has steps, each of them results and the place behind their messages, and is there
wholly or not at all: it is written under another name, brought to the disk, and only then
given its own. So whoever finds a segment torn has lost its results and its places together,
and reads those messages again.

A name says which segments a file stands for: `0000000003-0000000007` has all steps of the
third to the seventh. It may be there beside those that it was merged from, for a process may
be killed before it has deleted them; what lies within another is deleted by whoever comes next.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct

from model.asks import Partition
from model.log.storage import Append, CreateFile, Delete, File, Flush, Listed, Read, Rename

MAGIC = b"results1"
CHECK_BYTES = 4
UNFINISHED = ".writing"
TORN = ".torn"
_NAME = re.compile(r"(\d{10})-(\d{10})\.segment")


class Step(Struct, frozen=True, array_like=True):
    """Results, and the place that was stored in one step with them."""

    group: str
    partition: Partition
    expected: int | None
    place: int
    results: tuple[bytes, ...]


class Segment(NamedTuple):
    """A file, by the segments that it stands for; in order, the widest comes first."""

    first: int
    up_to: int
    """Less than no other for the same first: it is the negative of the last."""

    @property
    def last(self) -> int:
        """The last segment that it stands for."""
        return -self.up_to

    @property
    def name(self) -> str:
        """Its name."""
        return f"{self.first:010}-{self.last:010}.segment"

    def has(self, other: Segment) -> bool:
        """Whether it stands for all that the other stands for."""
        return self.first <= other.first and other.last <= self.last


def segment(first: int, last: int) -> Segment:
    """The file that stands for these segments."""
    return Segment(first, -last)


def segments_in(files: Sequence[File]) -> list[Segment]:
    """The segments that a folder has, torn ones among them."""
    names = (_NAME.fullmatch(file.name) for file in files)
    return sorted(segment(int(name[1]), int(name[2])) for name in names if name)


# --- contents --------------------------------------------------------------------------

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[Step, ...])


def encoded(steps: Sequence[Step]) -> bytes:
    """A segment as it is written."""
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


async def written(one: Segment, steps: Sequence[Step]) -> None:
    """Write a segment; it is there when this is done, and before that it is not."""
    path, contents = one.name + UNFINISHED, encoded(steps)
    await CreateFile(path)
    while contents:
        contents = contents[await Append(path, contents) :]
    await Flush(path)
    await Rename(path, one.name)


async def read(one: Segment, size_bytes: int) -> tuple[Step, ...] | None:
    """Read a segment; None if it is torn."""
    data = await Read(one.name, 0, size_bytes)
    assert isinstance(data, bytes), "files hold bytes"
    return decoded(data)


async def swept() -> dict[Segment, int]:
    """The whole segments of a folder with their sizes, once it is rid of everything else.

    A torn one is set aside under another name: somebody may want to know what befell it.
    """
    files = await Listed("")
    for file in files:
        if file.name.endswith(UNFINISHED):
            await Delete(file.name)
    sizes = {file.name: file.size_bytes for file in files}
    kept: dict[Segment, int] = {}
    for one in segments_in(files):
        if await read(one, sizes[one.name]) is None:
            await Rename(one.name, one.name + TORN)
        elif any(other.has(one) for other in kept):
            await Delete(one.name)
        else:
            kept[one] = sizes[one.name]
    return kept


async def merged(parts: Sequence[Segment], steps: Sequence[Step]) -> Segment:
    """Put segments that follow one another into one, which has the steps of all."""
    whole = segment(parts[0].first, parts[-1].last)
    await written(whole, steps)
    for one in parts:
        await Delete(one.name)
    return whole


async def torn() -> tuple[str, ...]:
    """The names of segments that were set aside."""
    return tuple(file.name for file in await Listed("") if file.name.endswith(TORN))
