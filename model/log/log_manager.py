"""All logs of one broker: start, close, lookup, and the periodic work.

A marker file records that the logs were closed cleanly. It is written after the last log was
flushed, and deleted before the first one is opened. So it exists only while no log can be torn;
without it every log is recovered.

Concurrency: `start` and `close` exclude all other use, and logs are created one at a time.
`flush_due` may run at any time. `delete_old` runs within `Log.exclusively`, as every change of
a log does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import ClassVar, Generic, NamedTuple, TypeVar

from watchkeeper.model.log.base_log import BaseLog
from watchkeeper.model.log.folder_names import folder_of, partition_of
from watchkeeper.model.log.format.errors import WrongPartition
from watchkeeper.model.log.format.requests import EARLIEST, LATEST
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.retention import delete_old
from watchkeeper.model.log.segments import Segment
from watchkeeper.model.log.settings import BrokerLogSettings
from watchkeeper.model.log.storage import CreateFile, Delete, ListFolder, MakeFolder
from watchkeeper.model.log.timestamps import offsets_before

CLEANLY_CLOSED = ".kafka_cleanshutdown"
"""The name of the marker file."""


class StartReport(NamedTuple):
    """The outcome of opening the logs."""

    was_clean: bool
    """Whether they had been closed cleanly; if not, each was recovered."""
    cut_bytes: tuple[tuple[str, int], ...]
    """(folder, bytes that recovery has truncated), without folders where it had nothing to do."""
    ignored: tuple[str, ...]
    """Names in the folder of the logs that belong to no log."""
    deleted: tuple[tuple[str, int], ...] = ()
    """(topic, partition) of the logs that were deleted with their topics."""


L = TypeVar("L", bound=BaseLog)


class Logs(Generic[L]):
    """The logs of one broker, all of one class."""

    log_class: type[L]
    delete_old_segments = staticmethod(delete_old)
    other_files: ClassVar[tuple[str, ...]] = ()
    """Names in the folder that are no logs, and are not unknown."""

    def __init__(self, settings: BrokerLogSettings | None = None) -> None:
        self.settings = settings or BrokerLogSettings()
        self._logs: dict[tuple[str, int], L] = {}
        self._is_open = False
        self._is_creating = False

    # --- start and close ---------------------------------------------------------------

    async def start(self, deleted: Collection[str] = ()) -> StartReport:
        """Open all logs, and recover them unless they were closed cleanly.

        The logs of `deleted` topics are deleted first: their topics were deleted while no
        process could do it.

        Raises `DamagedLog` for a gap or an overlap between segments: the broker must not start.
        """
        files = {file.name: file for file in await ListFolder("")}
        was_clean = files.pop(CLEANLY_CLOSED, None) is not None
        # Delete the marker first: a crash from here on must lead to recovery.
        if was_clean:
            await Delete(CLEANLY_CLOSED)
        cut, ignored, gone = [], [], []
        for name, file in files.items():
            key = partition_of(name) if file.is_folder else None
            if key is not None and key[0] in deleted:
                await Delete(name)
                gone.append(key)
                continue
            if key is None:
                if name not in self.other_files:
                    ignored.append(name)
                continue
            self._logs[key], cut_bytes = await self.log_class.open(
                name, self.settings.of(key[0]), was_clean=self._is_trusted(was_clean)
            )
            if cut_bytes:
                cut.append((name, cut_bytes))
        self._is_open = True
        return StartReport(was_clean, tuple(cut), tuple(ignored), tuple(gone))

    def _is_trusted(self, was_clean: bool) -> bool:
        """Whether the logs need no recovery."""
        return was_clean

    async def close(self) -> None:
        """Flush and close every log, and then write the marker."""
        assert self._is_open, "logs are closed that were not opened"
        self._is_open = False
        for log in self.all():
            await log.close()
        await CreateFile(CLEANLY_CLOSED)

    # --- lookup ------------------------------------------------------------------------

    def all(self) -> tuple[L, ...]:
        """Return every log."""
        return tuple(self._logs.values())

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics with a log, sorted."""
        return tuple(sorted({topic: None for topic, _ in self._logs}))

    def get(self, topic: str, partition: int) -> L | None:
        """Return the log of a partition; None if nothing was ever appended to it.

        Raises `InvalidTopic` or `WrongPartition` if there cannot be one.
        """
        log = self._logs.get((topic, partition))
        if log is None or partition >= self.settings.of(topic).partitions:
            self._folder_of(topic, partition)
        return log

    async def get_or_create(self, topic: str, partition: int) -> L:
        """Return the log of a partition, and create it first if there is none."""
        folder = self._folder_of(topic, partition)
        key = (topic, partition)
        if key not in self._logs:
            assert not self._is_creating, f"{folder}: two logs are made at once"
            assert self._is_open, f"{folder} is made while the logs are not open"
            self._is_creating = True
            try:
                await MakeFolder(folder)
                self._logs[key], _ = await self.log_class.open(
                    folder, self.settings.of(topic), was_clean=False
                )
            finally:
                self._is_creating = False
        return self._logs[key]

    def _folder_of(self, topic: str, partition: int) -> str:
        folder = folder_of(topic, partition)
        count = self.settings.of(topic).partitions
        if not 0 <= partition < count:
            raise WrongPartition(folder, f"the topic has {count} here, numbered from 0")
        return folder

    def set_partitions(self, topic: str, count: int | None) -> None:
        """Let a topic have so many partitions from now on; None: as many as a new topic."""
        number = self.settings.default.partitions if count is None else count
        own = replace(self.settings.of(topic), partitions=number)
        topics = {**dict(self.settings.topics), topic: own}
        self.settings = replace(self.settings, topics=tuple(sorted(topics.items())))

    async def delete(self, topic: str, partition: int) -> None:
        """Delete a log, unless there is none. Callers hold its lock."""
        log = self._logs.get((topic, partition))
        if log is not None:
            await log.delete()
            del self._logs[topic, partition]

    async def offsets_before(
        self, topic: str, partition: int, time_ms: int, max_offsets: int
    ) -> list[int]:
        """Return offsets as `timestamps.offsets_before`; 0 is both ends of a missing log."""
        log = self.get(topic, partition)
        if log is None:
            return [0][:max_offsets] if time_ms in (EARLIEST, LATEST) else []
        return await offsets_before(log, time_ms, max_offsets)

    # --- periodic work -----------------------------------------------------------------

    async def flush_due(self) -> None:
        """Flush every log whose last flush is older than its settings allow."""
        for log in self.all():
            await log.flush_if_older(log.settings.flush_ms)

    async def delete_old(self) -> tuple[Segment, ...]:
        """Delete the segments of all logs that exceed the retention; return them."""
        deleted: list[Segment] = []
        for log in self.all():
            deleted += await self.delete_old_segments(log)
        return tuple(deleted)


class LogManager(Logs[Log]):
    """The logs of a broker of 0.7."""

    log_class: type[Log] = Log
