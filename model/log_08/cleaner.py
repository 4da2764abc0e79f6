"""The cleaner of a broker: it compacts its logs one after the other, the dirtiest first.

How far each log is compacted is in the file `cleaner-offset-checkpoint`, in Kafka's format:

    0
    number of logs
    topic partition offset        of the first message that is dirty

Without the file, or with one that cannot be read, all of a log is dirty: that costs time only.

A replica may cut its log while the log is compacted. The cleaner does not hold it up: it gives
up what it has copied, and what was cut is dirty again.

Kafka 0.8.2.2: LogCleaner, LogCleanerManager.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from watchkeeper.model.log.folder_names import partition_of
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    Flush,
    NoSuchFile,
    Read,
    Rename,
    StorageError,
)
from watchkeeper.model.log.timestamps import modified_ms
from watchkeeper.model.log_08.cleaner_settings import CleanerSettings
from watchkeeper.model.log_08.compaction import (
    MOST_KEYS,
    KeyAndValue,
    Source,
    as_stored,
    copy,
    in_groups,
    latest_offsets,
)
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.log_08.manager import CLEANER_CHECKPOINT
from watchkeeper.model.log_08.segments import KeyedSegment
from watchkeeper.model.log_08.swap import cleaned_path

LARGEST_CHECKPOINT_BYTES = 16 * 1024 * 1024

Locked = Callable[[KeyedLog, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Does some work under the lock of a log."""
EndOf = Callable[[KeyedLog], int]
"""The offset in a log from which on nothing may be compacted yet."""


class Logs(Protocol):
    """The logs of a broker."""

    def all(self) -> tuple[KeyedLog, ...]:
        """Return every log."""


class _WasCut(Exception):
    """The log was cut while it was compacted."""


class Cleaned(NamedTuple):
    """What a compaction has done."""

    folder: str
    removed_messages: int
    removed_bytes: int
    first_dirty: int
    """The offset of the first message that is dirty now."""


class Dirty(NamedTuple):
    """A log, and how much of it is dirty."""

    log: KeyedLog
    first_dirty: int
    segments: tuple[KeyedSegment, ...]
    """All but the active one."""
    ratio: float


class Cleaner:
    """Compacts the logs of a broker."""

    def __init__(
        self,
        logs: Logs,
        locked: Locked,
        settings: CleanerSettings,
        is_over: Callable[[], bool] = lambda: False,
        *,
        most_keys: int = MOST_KEYS,
        end_of: EndOf | None = None,
        key_and_value: KeyAndValue = as_stored,
    ) -> None:
        """`is_over` says whether the broker ends: then a compaction raises `Interrupted`.

        `most_keys` is how many keys are collected at once; what comes after them stays dirty.
        `key_and_value` says what counts as the key and the value of a message.
        """
        self._logs = logs
        self._locked = locked
        self._settings = settings
        self._is_over = is_over
        self._most_keys = most_keys
        self._end_of = end_of
        self._key_and_value = key_and_value
        self._first_dirty: dict[str, int] | None = None

    async def clean_dirtiest(self) -> Cleaned | None:
        """Compact the dirtiest log; None if none is dirty enough."""
        if self._first_dirty is None:
            self._first_dirty = await _read_checkpoint()
        dirty = [
            each
            for each in map(self._dirtiness, self._logs.all())
            if each is not None and each.ratio > self._settings.min_dirty_ratio
        ]
        if not dirty:
            return None
        worst = max(dirty, key=lambda each: each.ratio)
        done = await self._clean_unless_cut(worst)
        if done is not None:
            self._first_dirty[worst.log.folder] = done.first_dirty
            await self._write_checkpoint(f"{CLEANER_CHECKPOINT}.tmp")
        return done

    async def note_cut(self, log: KeyedLog) -> None:
        """Count as dirty what may come now in the place of what was cut off."""
        if self._first_dirty is None:
            self._first_dirty = await _read_checkpoint()
        start = log.segments.last.start
        if self._first_dirty.get(log.folder, 0) > start:
            self._first_dirty[log.folder] = start
            await self._write_checkpoint(f"{CLEANER_CHECKPOINT}.cut.tmp")

    async def _write_checkpoint(self, temporary: str) -> None:
        """Write the checkpoint; again, if another task has changed it meanwhile."""
        written: dict[str, int] | None = None
        while written != self._first_dirty:
            assert self._first_dirty is not None, "the checkpoint was read"
            written = dict(self._first_dirty)
            await _write_checkpoint(written, temporary)

    def _dirtiness(self, log: KeyedLog) -> Dirty | None:
        """How dirty a log is; None if it is not compacted, or has only an active segment."""
        segments = tuple(map(_keyed, log.segments.view[:-1]))
        if self._end_of is not None:
            limit = self._end_of(log)
            segments = tuple(each for each in segments if each.next_offset <= limit)
        if not log.is_compacted or not segments:
            return None
        assert self._first_dirty is not None, "the checkpoint was read"
        end = segments[-1].next_offset
        first_dirty = self._first_dirty.get(log.folder, log.start)
        if not log.start <= first_dirty <= end:
            first_dirty = log.start
        sizes = [(each.next_offset > first_dirty, each.size_bytes) for each in segments]
        dirty_bytes = sum(size_bytes for is_dirty, size_bytes in sizes if is_dirty)
        all_bytes = sum(size_bytes for _, size_bytes in sizes)
        ratio = dirty_bytes / all_bytes if all_bytes else 0.0
        return Dirty(log, first_dirty, segments, ratio)

    async def _clean_unless_cut(self, dirty: Dirty) -> Cleaned | None:
        """Compact a log; None if it was cut meanwhile."""
        cuts = dirty.log.cuts
        try:
            done = await self._clean(dirty, cuts)
        except _WasCut:
            return None
        except (LogError, StorageError):
            # What was read may have been deleted at that moment.
            if dirty.log.cuts == cuts:
                raise
            return None
        return done if dirty.log.cuts == cuts else None

    async def _clean(self, dirty: Dirty, cuts: int) -> Cleaned:
        log = dirty.log
        sources = self._sources(dirty, await modified_ms(log, dirty.segments))
        latest = await latest_offsets(
            dirty.segments,
            dirty.first_dirty,
            self._is_over,
            self._most_keys,
            self._key_and_value,
        )
        messages = size_bytes = 0
        read = [source for source in sources if source.segment.start < latest.end]
        for group in in_groups(read, log.settings.segment_bytes):
            copied = await copy(group, latest, self._is_over, self._key_and_value)
            replaced = tuple(source.segment for source in group)
            if len(group) == 1 and not copied.removed_messages:
                await Delete(cleaned_path(copied.segment.path))
                continue
            await self._locked(log, partial(_replace, log, cuts, replaced, copied.segment))
            messages += copied.removed_messages
            size_bytes += copied.removed_bytes
        return Cleaned(log.folder, messages, size_bytes, latest.end)

    def _sources(self, dirty: Dirty, modified: Sequence[int]) -> tuple[Source, ...]:
        """The segments, and whether their tombstones stay.

        They go with a clean segment that is old, against the last clean one. The older messages
        of their keys have gone before. Those of a dirty one may be there still: not all keys need
        have been collected.
        """
        pairs = tuple(zip(dirty.segments, modified, strict=True))
        clean = [time for each, time in pairs if each.next_offset <= dirty.first_dirty]
        horizon_ms = clean[-1] - self._settings.delete_retention_ms if clean else 0
        return tuple(
            Source(each, time, each.next_offset > dirty.first_dirty or time > horizon_ms)
            for each, time in pairs
        )


async def _replace(
    log: KeyedLog, cuts: int, old: Sequence[KeyedSegment], new: KeyedSegment
) -> KeyedSegment:
    if log.cuts != cuts:
        raise _WasCut
    await log.replace(old, new)
    return new


def _keyed(segment: object) -> KeyedSegment:
    assert isinstance(segment, KeyedSegment), "a log of 0.8 has segments of its own class"
    return segment


# --- the checkpoint --------------------------------------------------------------------


async def _read_checkpoint() -> dict[str, int]:
    try:
        data = await Read(CLEANER_CHECKPOINT, 0, LARGEST_CHECKPOINT_BYTES)
    except NoSuchFile:
        return {}
    assert isinstance(data, bytes), "a checkpoint is text"
    lines = data.decode("utf-8", "replace").splitlines()
    if lines[:1] != ["0"]:
        return {}
    return dict(_rows(lines[2:]))


def _rows(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    for line in lines:
        words = line.split(" ")
        if len(words) == 3 and words[1].isdecimal() and words[2].isdecimal():
            yield f"{words[0]}-{int(words[1])}", int(words[2])


async def _write_checkpoint(first_dirty: dict[str, int], temporary: str) -> None:
    keys = ((partition_of(folder), offset) for folder, offset in sorted(first_dirty.items()))
    rows = [f"{key[0]} {key[1]} {offset}" for key, offset in keys if key is not None]
    data = "\n".join(("0", str(len(rows)), *rows, "")).encode()
    await CreateFile(temporary)
    while data:
        data = data[await Append(temporary, data) :]
    await Flush(temporary)
    await Rename(temporary, CLEANER_CHECKPOINT)
