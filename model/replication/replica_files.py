"""The replicas of a broker in files: one file for most logs, and the checkpoint.

    <root>/<topic>-<partition>/00000000000000000000.log    records as messages of 0.8
    <root>/replication-offset-checkpoint                   lines: 0, count, `topic partition end`

The log of a topic that is compacted has several files (`segmented_log`).

What is appended is in the pagecache: it survives the process. What of it survives the host is
for the kernel to decide, which writes dirty pages to the disk after some time; replication makes
up for the rest, so nothing waits for the disk here but names and the checkpoint.

The functions yield effects of a storage (`watchkeeper.model.log.storage`), so one code runs on
the simulated pagecache and on real files. A caller changes a log only while nothing else does.

Kafka 0.8.2.2: Log, OffsetCheckpoint.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.folder_names import folder_of, partition_of
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
    Read,
    Rename,
    Truncate,
)
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.log_08.settings import KeyedLogSettings
from watchkeeper.model.replication.messages import decoded, encoded, size_of
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.segmented_log import SegmentedLog

CHECKPOINT = "replication-offset-checkpoint"
FRESH_CHECKPOINT = f"{CHECKPOINT}.tmp"
LOG = "00000000000000000000.log"
VERSION = "0"
ROOT = ""


class InvalidCheckpoint(LogError):
    """The checkpoint is not what a broker writes."""

    meaning = (
        f"expected the lines {VERSION}, a count, and that many of `topic partition offset`; "
        "delete the file, and the broker begins with high watermarks of 0"
    )


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
