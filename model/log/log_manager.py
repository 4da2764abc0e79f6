"""All logs of one broker: where each is, and what is done with all of them from time to time.

A marker in the folder of the logs says that they were closed cleanly. It is written when
the last of them has been flushed, and deleted before the first of them is opened. So it is
there only while nothing can be torn, and where it is missing every log is recovered.

Who may do what at once: nobody else works with the logs while they `start` or `close`, and
one at a time gets or creates logs. `flush_due` may come at any time; what `delete_old` does
with a log is done alone, as everything that changes one is.
"""

from __future__ import annotations

from typing import NamedTuple

from model.log.errors import WrongPartition
from model.log.folders import folder_of, partition_of
from model.log.log import Log
from model.log.requests import EARLIEST, LATEST
from model.log.retention import delete_old
from model.log.segments import Segment
from model.log.settings import BrokerLogSettings
from model.log.storage import CreateFile, Delete, Listed, MakeFolder
from model.log.times import offsets_before

CLEANLY_CLOSED = ".kafka_cleanshutdown"
"""The name of the marker."""


class Started(NamedTuple):
    """What was found when the logs were opened."""

    was_clean: bool
    """Whether they had been closed; if not, each was recovered."""
    cut_bytes: tuple[tuple[str, int], ...]
    """Folder -> how much recovery has cut off, where it had to."""
    ignored: tuple[str, ...]
    """What is in the folder of the logs and belongs to none."""


class Logs:
    """The logs of one broker."""

    log: type[Log] = Log
    delete_old_of = staticmethod(delete_old)

    def __init__(self, settings: BrokerLogSettings | None = None) -> None:
        self.settings = settings or BrokerLogSettings()
        self._logs: dict[tuple[str, int], Log] = {}
        self._is_open = False
        self._is_creating = False

    # --- life --------------------------------------------------------------------------

    async def start(self) -> Started:
        """Open all logs that there are; recover them, unless they were closed cleanly.

        `Damaged` if the files of one do not follow one another: the broker is not to start.
        """
        files = {file.name: file for file in await Listed("")}
        was_clean = files.pop(CLEANLY_CLOSED, None) is not None
        if was_clean:
            await Delete(CLEANLY_CLOSED)
        cut, ignored = [], []
        for name, file in files.items():
            key = partition_of(name) if file.is_folder else None
            if key is None:
                ignored.append(name)
                continue
            self._logs[key], cut_bytes = await self.log.open(
                name, self.settings.of(key[0]), was_clean=self._trusts(was_clean)
            )
            if cut_bytes:
                cut.append((name, cut_bytes))
        self._is_open = True
        return Started(was_clean, tuple(cut), tuple(ignored))

    def _trusts(self, was_clean: bool) -> bool:
        """Whether logs are as they were left, and need not be recovered."""
        return was_clean

    async def close(self) -> None:
        """Flush and close every log, and then say that this was done."""
        assert self._is_open, "logs are closed that were not opened"
        self._is_open = False
        for log in self.all():
            await log.close()
        await CreateFile(CLEANLY_CLOSED)

    # --- which there are ---------------------------------------------------------------

    def all(self) -> tuple[Log, ...]:
        """Every log."""
        return tuple(self._logs.values())

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of which there is a log, sorted."""
        return tuple(sorted({topic: None for topic, _ in self._logs}))

    def get(self, topic: str, partition: int) -> Log | None:
        """The log of a partition; None if nothing was ever appended to it.

        `InvalidTopic` and `WrongPartition` if there can be none.
        """
        log = self._logs.get((topic, partition))
        if log is None or partition >= self.settings.of(topic).partitions:
            self._folder_of(topic, partition)
        return log

    async def get_or_create(self, topic: str, partition: int) -> Log:
        """The log of a partition, made if there is none."""
        folder = self._folder_of(topic, partition)
        key = (topic, partition)
        if key not in self._logs:
            assert not self._is_creating, f"{folder}: two logs are made at once"
            assert self._is_open, f"{folder} is made while the logs are not open"
            self._is_creating = True
            try:
                await MakeFolder(folder)
                self._logs[key], _ = await self.log.open(
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

    async def offsets_before(
        self, topic: str, partition: int, time_ms: int, at_most: int
    ) -> list[int]:
        """Which go with a time; where there is no log, its beginning and its end are 0."""
        log = self.get(topic, partition)
        if log is None:
            return [0][:at_most] if time_ms in (EARLIEST, LATEST) else []
        return await offsets_before(log, time_ms, at_most)

    # --- from time to time -------------------------------------------------------------

    async def flush_due(self) -> None:
        """Flush every log that was not flushed for as long as its settings say."""
        for log in self.all():
            await log.flush_if_older(log.settings.flush_ms)

    async def delete_old(self) -> tuple[Segment, ...]:
        """Delete of every log what is too old or too much; those segments are answered."""
        deleted: list[Segment] = []
        for log in self.all():
            deleted += await self.delete_old_of(log)
        return tuple(deleted)
