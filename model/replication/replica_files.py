"""The replicas of a broker in files: one file for most logs, and the checkpoint.

    <root>/<topic>-<partition>/00000000000000000000.log    records as messages of 0.8
    <root>/replication-offset-checkpoint                   lines: 0, count, `topic partition end`

The log of a topic that is compacted has segments, as logs of 0.8 have:

    <root>/<topic>-<partition>/<first offset>.log          records as messages of 0.8
    <root>/<topic>-<partition>/leader-epoch-checkpoint     lines: 0, count, `epoch offset` of its
                                                           first record

A record keeps its offset. Compaction leaves offsets without an entry; the epoch of the leader
that appended what was there is in the checkpoint of epochs, as in Kafka since 0.11. Without it a
follower could not be told where an epoch ends.

What is appended is in the pagecache: it survives the process. What of it survives the host is
for the kernel to decide, which writes dirty pages to the disk after some time; replication makes
up for the rest, so nothing waits for the disk here but names and the checkpoint.

The functions yield effects of a storage (`watchkeeper.model.log.storage`), so one code runs on
the simulated pagecache and on real files. A caller changes a log only while nothing else does.

Kafka 0.8.2.2: Log, OffsetCheckpoint. Kafka 0.11: LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.folder_names import folder_of, partition_of
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.message_08 import intact_size
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    File,
    Flush,
    ListFolder,
    MakeFolder,
    NoSuchFile,
    Read,
    Rename,
    Truncate,
)
from watchkeeper.model.log_08.checks import NumberedSet
from watchkeeper.model.log_08.compaction import SegmentReader
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.log_08.segments import BYTES_ONLY, KeyedSegment, heads
from watchkeeper.model.log_08.settings import KeyedLogSettings
from watchkeeper.model.replication.messages import decoded, encoded, size_of
from watchkeeper.model.replication.replica_log import HIDDEN, NO_NUMBER, Record

CHECKPOINT = "replication-offset-checkpoint"
FRESH_CHECKPOINT = f"{CHECKPOINT}.tmp"
LOG = "00000000000000000000.log"
VERSION = "0"
ROOT = ""
EPOCHS = "leader-epoch-checkpoint"
LARGEST_EPOCHS_BYTES = 16 * 1024 * 1024

Epochs = tuple[tuple[int, int], ...]
"""Each epoch of a log with the offset of its first record, in order."""


class InvalidCheckpoint(LogError):
    """The checkpoint is not what a broker writes."""

    meaning = (
        f"expected the lines {VERSION}, a count, and that many of `topic partition offset`; "
        "delete the file, and the broker begins with high watermarks of 0"
    )


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


class ReplicaFiles:
    """The logs and the checkpoint of one broker."""

    def __init__(self, compacted: Mapping[str, KeyedLogSettings] = MappingProxyType({})) -> None:
        """`compacted` has the settings of the topics whose logs have segments."""
        self._compacted = compacted
        self._marks: dict[Partition, int] = {}
        """What the checkpoint has."""
        self.segmented: dict[Partition, SegmentedLog] = {}
        """The logs that have segments."""
        self.on_cut: Callable[[KeyedLog], Awaitable[None]] | None = None
        """Called after one of them was cut."""

    # --- opening -----------------------------------------------------------------------

    async def read_logs(self) -> dict[Partition, list[Record]]:
        """Return the intact records of every log, and cut off what follows them.

        Raises LogError and StorageError.
        """
        logs = {}
        for folder in await ListFolder(ROOT):
            found = partition_of(folder.name) if folder.is_folder else None
            if found is not None:
                partition = Partition(found[0], str(found[1]))
                settings = self._compacted.get(partition.topic)
                if settings is not None:
                    log = await self._open(partition, settings)
                    logs[partition] = await log.read_records()
                    continue
                files = {file.name: file for file in await ListFolder(folder.name)}
                if LOG in files:
                    logs[partition] = await _read_log(_path_of(partition), files[LOG])
        return logs

    async def read_checkpoint(self) -> Mapping[Partition, int]:
        """Return the high watermarks in the checkpoint; none if there is no file.

        Raises InvalidCheckpoint and StorageError.
        """
        files = {file.name: file for file in await ListFolder(ROOT)}
        if CHECKPOINT in files:
            data = await Read(CHECKPOINT, 0, files[CHECKPOINT].size_bytes)
            assert isinstance(data, bytes), "the files of a broker of 0.8 hold bytes"
            self._marks = dict(marks_in(data))
        return self._marks

    # --- changing ----------------------------------------------------------------------

    async def append(self, partition: Partition, start: int, records: Sequence[Record]) -> None:
        """Append records to a log; the first one is at the offset `start`."""
        settings = self._compacted.get(partition.topic)
        if settings is not None:
            log = self.segmented.get(partition)
            if log is None:
                await MakeFolder(_folder_of(partition))
                log = await self._open(partition, settings)
            await log.append_records(start, records)
            return
        path = _path_of(partition)
        if not start:
            await MakeFolder(_folder_of(partition))
            await CreateFile(path)
        await _append_all(path, encoded(records, start))

    async def _open(self, partition: Partition, settings: KeyedLogSettings) -> SegmentedLog:
        log, _ = await SegmentedLog.open(_folder_of(partition), settings, was_clean=False)
        self.segmented[partition] = log
        return log

    async def truncate(self, partition: Partition, kept: Sequence[Record]) -> None:
        """Cut a log behind the records that are kept."""
        log = self.segmented.get(partition)
        if log is not None:
            await log.cut(len(kept))
            if self.on_cut is not None:
                await self.on_cut(log)
            return
        await Truncate(_path_of(partition), size_of(kept))

    async def delete(self, partition: Partition) -> None:
        """Delete a log, if there is one."""
        folder = _folder_of(partition)
        log = self.segmented.pop(partition, None)
        if log is not None:
            await log.delete()
            return
        if any(file.name == folder for file in await ListFolder(ROOT)):
            await Delete(folder)

    async def write_checkpoint(self, marks: Mapping[Partition, int]) -> None:
        """Replace the checkpoint, if it has other marks."""
        if marks == self._marks:
            return
        lines = [f"{at.topic} {at.name} {end}" for at, end in marks.items()]
        await CreateFile(FRESH_CHECKPOINT)
        text = "\n".join([VERSION, str(len(lines)), *lines, ""])
        await _append_all(FRESH_CHECKPOINT, text.encode())
        await Flush(FRESH_CHECKPOINT)
        await Rename(FRESH_CHECKPOINT, CHECKPOINT)
        self._marks = dict(marks)


async def _read_log(path: str, file: File) -> list[Record]:
    data = await Read(path, 0, file.size_bytes)
    assert isinstance(data, bytes), "the files of a broker of 0.8 hold bytes"
    intact_bytes = intact_size(data)
    if intact_bytes < file.size_bytes:
        await Truncate(path, intact_bytes)
    return list(decoded(data[:intact_bytes], 0))


async def _append_all(path: str, data: bytes) -> None:
    while data:
        data = data[await Append(path, data) :]


def _folder_of(partition: Partition) -> str:
    return folder_of(partition.topic, int(partition.name))


def _path_of(partition: Partition) -> str:
    return f"{_folder_of(partition)}/{LOG}"


def marks_in(data: bytes) -> Iterator[tuple[Partition, int]]:
    """Yield the high watermarks in a checkpoint; raise InvalidCheckpoint if it is none."""
    lines = data.decode(errors="replace").splitlines()
    try:
        version, count = lines[0], int(lines[1])
        marks = [line.split(" ") for line in lines[2:]]
        if version != VERSION or count != len(marks):
            raise ValueError(f"version {version}, {len(marks)} of {count} lines")
        for topic, name, end in marks:
            yield Partition(topic, name), int(end)
    except (ValueError, IndexError) as error:
        raise InvalidCheckpoint(CHECKPOINT, str(error)) from None
