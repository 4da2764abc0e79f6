"""The log of a replica in segments, so that it can be compacted as logs of 0.8 are.

    <partition>/<first offset>.log          records as messages of 0.8
    <partition>/leader-epoch-checkpoint     lines: 0, count, `epoch offset` of its first record

A record keeps its offset. Compaction leaves offsets without an entry; the epoch of the leader
that appended what was there is in the checkpoint of epochs, as in Kafka since 0.11. Without it a
follower could not be told where an epoch ends.

Kafka 0.11: LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.storage import Append, CreateFile, Flush, NoSuchFile, Read, Rename
from watchkeeper.model.log_08.checks import NumberedSet
from watchkeeper.model.log_08.compaction import SegmentReader
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.log_08.segments import BYTES_ONLY, KeyedSegment, heads
from watchkeeper.model.replication.messages import decoded, encoded
from watchkeeper.model.replication.replica_log import HIDDEN, NO_NUMBER, Record

EPOCHS = "leader-epoch-checkpoint"
VERSION = "0"
LARGEST_EPOCHS_BYTES = 16 * 1024 * 1024

Epochs = tuple[tuple[int, int], ...]
"""Each epoch of a log with the offset of its first record, in order."""


class SegmentedLog(KeyedLog):
    """The log of one replica, in a folder of its own."""

    written_epochs: Epochs = ()
    """What the checkpoint of epochs has."""

    # --- appending and reading ---------------------------------------------------------

    async def append_records(self, start: int, records: Sequence[Record]) -> None:
        """Append records; the first one is at the offset `start`."""
        data = encoded(records, start)
        if data:
            marks = [(offset, begin) for offset, begin, _ in heads(data)]
            await self.append_numbered(NumberedSet(data, start + len(records), marks))

    async def read_records(self) -> list[Record]:
        """Return all records, with those that are hidden, and know their epochs."""
        self.written_epochs = await _read_epochs(self.folder)
        found: list[Record] = []
        for segment in self.segments.view:
            assert isinstance(segment, KeyedSegment), "a log of 0.8 has its own segments"
            found += [HIDDEN] * (segment.start - len(found))
            reader = SegmentReader(segment)
            while data := await reader.next():
                found += decoded(data, len(found))
        return list(with_epochs(found, self.written_epochs))

    async def offsets_in(self, segment: KeyedSegment) -> Collection[int]:
        """Return the offsets that have an entry in a segment."""
        found: set[int] = set()
        reader = SegmentReader(segment)
        while data := await reader.next():
            found.update(offset for offset, _, _ in heads(data))
        return found

    # --- epochs ------------------------------------------------------------------------

    async def write_epochs(self, records: Sequence[Record]) -> None:
        """Write the checkpoint of epochs, if those of the records differ from what it has."""
        epochs = epochs_of(records)
        if epochs == self.written_epochs:
            return
        path, temporary = f"{self.folder}/{EPOCHS}", f"{self.folder}/{EPOCHS}.tmp"
        lines = (VERSION, str(len(epochs)), *(f"{epoch} {start}" for epoch, start in epochs), "")
        data = "\n".join(lines).encode()
        await CreateFile(temporary)
        while data:
            data = data[await Append(temporary, data) :]
        await Flush(temporary)
        await Rename(temporary, path)
        self.written_epochs = epochs


def hide(log: list[Record], start: int, end: int, kept: Collection[int]) -> None:
    """Leave only these offsets of a part of a log; what others held is forgotten."""
    for offset in range(start, end):
        if offset not in kept:
            log[offset] = Record(log[offset].epoch, NO_NUMBER)


def epochs_of(records: Sequence[Record]) -> Epochs:
    """Return the epochs of a log, each with the offset of its first record."""
    found: list[tuple[int, int]] = []
    for offset, record in enumerate(records):
        if record.epoch >= 0 and (not found or record.epoch > found[-1][0]):
            found.append((record.epoch, offset))
    return tuple(found)


def with_epochs(records: Iterable[Record], epochs: Epochs) -> Iterator[Record]:
    """Yield records; a hidden one has the epoch that the checkpoint says of its offset."""
    starts = [start for _, start in epochs]
    for offset, record in enumerate(records):
        place = bisect_right(starts, offset) - 1
        is_known = record.is_hidden and place >= 0
        yield record._replace(epoch=epochs[place][0]) if is_known else record


async def _read_epochs(folder: str) -> Epochs:
    """Read the checkpoint; one that cannot be read says nothing."""
    data: Contents = b""
    with suppress(NoSuchFile):
        data = await Read(f"{folder}/{EPOCHS}", 0, LARGEST_EPOCHS_BYTES)
    assert isinstance(data, bytes), BYTES_ONLY
    lines = data.decode("utf-8", "replace").splitlines()
    rows = [line.split(" ") for line in lines[2:]]
    is_whole = lines[:2] == [VERSION, str(len(rows))] and all(
        len(row) == 2 and row[0].isdecimal() and row[1].isdecimal() for row in rows
    )
    return tuple((int(epoch), int(start)) for epoch, start in rows) if is_whole else ()
