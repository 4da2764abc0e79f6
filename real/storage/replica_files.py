"""The replicas of a live broker in files: one file for each log, and the checkpoint.

    <root>/<topic>-<partition>/00000000000000000000.log    records as messages of 0.8
    <beside the root>/replication-offset-checkpoint        lines: 0, count, `topic partition end`

What a process has appended is in the pagecache: it survives the process. `write_back` does what
the kernel does by its defaults, and writes what is older than 30 seconds to the disk; the sync
log of `WatchedStorage` knows what a host that is lost has lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.folder_names import folder_of, partition_of
from watchkeeper.model.log.format.message_08 import intact_size
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    Flush,
    ListFolder,
    MakeFolder,
    Read,
    StorageFailure,
    Truncate,
)
from watchkeeper.model.replication.messages import ENTRY_BYTES, decoded, encoded
from watchkeeper.model.replication.replica import WRITTEN_BACK_AFTER_MS, ReplicaStore
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.storage.host_crash import WatchedStorage

CHECKPOINT = "replication-offset-checkpoint"
LOG = "00000000000000000000.log"
VERSION = "0"


class ReplicaFiles(ReplicaStore):
    """The logs and the checkpoint of one broker."""

    def __init__(self, root: Path, sync_log: Path, now_ms: Callable[[], int]) -> None:
        """Raises EnvironmentProblem if the checkpoint cannot be read, StorageError for logs."""
        self._storage = WatchedStorage(root, sync_log)
        self._checkpoint = root.parent / CHECKPOINT
        self._now_ms = now_ms
        self._unsynced: dict[str, int] = {}
        """File -> since when it has bytes that are in the pagecache alone."""
        self._logs = dict(self._read_logs())
        self._marks = dict(marks_in(self._checkpoint))

    def logs(self) -> Mapping[Partition, Sequence[Record]]:
        """Return what is there of each partition when a broker starts."""
        return self._logs

    def high_watermarks(self) -> Mapping[Partition, int]:
        """Return what the checkpoint file had when the broker started."""
        return self._marks

    def append(self, partition: Partition, start: int, records: Sequence[Record]) -> None:
        """Append records to a log; the first one is at the offset `start`."""
        path = _path_of(partition)
        if not start:
            self._do(MakeFolder(_folder_of(partition)))
            self._do(CreateFile(path))
        data = encoded(records, start)
        self._unsynced.setdefault(path, self._now_ms())
        while data:
            data = data[self._do(Append(path, data)) :]

    def truncate(self, partition: Partition, end: int) -> None:
        """Cut a log."""
        path = _path_of(partition)
        self._do(Truncate(path, end * ENTRY_BYTES))
        self._unsynced.pop(path, None)

    def delete(self, partition: Partition) -> None:
        """Delete a log, if there is one."""
        folder = _folder_of(partition)
        if any(file.name == folder for file in self._do(ListFolder(""))):
            self._do(Delete(folder))
        self._unsynced.pop(_path_of(partition), None)

    def write_checkpoint(self, marks: Mapping[Partition, int]) -> None:
        """Replace the checkpoint file."""
        lines = [f"{at.topic} {at.name} {end}" for at, end in marks.items()]
        fresh = self._checkpoint.with_suffix(".new")
        with fresh.open("w") as file:
            file.write("\n".join([VERSION, str(len(lines)), *lines, ""]))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._checkpoint)

    def write_back(self) -> None:
        """Write to the disk what has been in the pagecache for long enough."""
        oldest_ms = self._now_ms() - WRITTEN_BACK_AFTER_MS
        for path, since_ms in list(self._unsynced.items()):
            if since_ms <= oldest_ms:
                self._do(Flush(path))
                del self._unsynced[path]

    # --- reading -----------------------------------------------------------------------

    def _read_logs(self) -> Iterator[tuple[Partition, tuple[Record, ...]]]:
        for folder in self._do(ListFolder("")):
            found = partition_of(folder.name)
            files = self._do(ListFolder(folder.name)) if found is not None else ()
            if found is not None and any(file.name == LOG for file in files):
                partition = Partition(found[0], str(found[1]))
                yield partition, self._read_log(_path_of(partition))

    def _read_log(self, path: str) -> tuple[Record, ...]:
        """Read the intact records of a file, and cut off what follows them."""
        size_bytes = os.stat(Path(self._storage.root) / path).st_size
        data = self._do(Read(path, 0, size_bytes))
        intact_bytes = intact_size(data)
        if intact_bytes < size_bytes:
            self._do(Truncate(path, intact_bytes))
        return tuple(decoded(data[:intact_bytes]))

    def _do(self, effect: Any) -> Any:
        answer = self._storage.answer(effect)
        if isinstance(answer, StorageFailure):
            raise answer.error()
        return answer


def _folder_of(partition: Partition) -> str:
    return folder_of(partition.topic, int(partition.name))


def _path_of(partition: Partition) -> str:
    return f"{_folder_of(partition)}/{LOG}"


def marks_in(path: Path) -> Iterator[tuple[Partition, int]]:
    """Yield the high watermarks in a checkpoint file; nothing if there is no file.

    Raises EnvironmentProblem if the file is not what a broker writes.
    """
    if not path.exists():
        return
    lines = path.read_text(errors="replace").splitlines()
    try:
        version, count = lines[0], int(lines[1])
        marks = [line.split(" ") for line in lines[2:]]
        if version != VERSION or count != len(marks):
            raise ValueError(f"version {version}, {len(marks)} of {count} lines")
        for topic, name, end in marks:
            yield Partition(topic, name), int(end)
    except (ValueError, IndexError) as error:
        raise EnvironmentProblem(
            f"{path} is no checkpoint of a broker ({error}); expected the lines {VERSION}, a "
            "count, and that many of `topic partition offset`; delete it, and the broker begins "
            "with high watermarks of 0"
        ) from None
