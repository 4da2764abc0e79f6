"""Mutants of the log: faults that Kafka's log had, each in an otherwise correct log.

A mutant is a class that overrides one step; the correct classes do not know of them. The table
names the invariant that each one violates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from tests.mutants.invariants import Invariant
from watchkeeper.model.log import retention
from watchkeeper.model.log.format.contents import Contents, size_of
from watchkeeper.model.log.format.message_set_07 import CheckedSet
from watchkeeper.model.log.log import AppendResult, Log
from watchkeeper.model.log.log_manager import CLEANLY_CLOSED, LogManager
from watchkeeper.model.log.recovery import recover
from watchkeeper.model.log.segments import Segment, segment_name
from watchkeeper.model.log.storage import Append, CreateFile, StorageError


class WritesAgainFromTheStart(Log):
    """After a short write the whole buffer is written again, until enough bytes are written."""

    async def _write(self, segment: Segment, contents: Contents) -> None:
        written = 0
        while written < size_of(contents):
            written += await Append(segment.path, contents)


class GrowsBeforeItWrites(Log):
    """The end of the log advances before the bytes are written."""

    async def _append_to(self, segment: Segment, contents: Contents, now: int) -> None:
        segment.grow(size_of(contents), now)
        await self._write(segment, contents)


class GoesOnAfterAFailedWrite(Log):
    """A disk error is treated as an error of the request, and the next request is served."""

    async def append_sets(self, sets: Sequence[CheckedSet]) -> list[AppendResult]:
        """Append, and ignore a disk error."""
        try:
            return await super().append_sets(sets)
        except StorageError:
            self.stopped = ""
            return [AppendResult(self.end, 0, 0) for _ in sets]


async def recover_but_for_the_age(segment: Segment) -> int:
    """Truncate the torn part, but keep the age of a segment that is empty then."""
    began_ms = segment.first_append_ms
    cut_bytes = await recover(segment)
    segment.first_append_ms = began_ms
    return cut_bytes


class KeepsItsAge(Log):
    """A segment that recovery empties keeps its age."""

    recover = staticmethod(recover_but_for_the_age)


async def delete_old_with_the_new(log: Log) -> tuple[Segment, ...]:
    """If all segments expire, roll first, even if the last one is empty."""
    return await log.exclusively(partial(_delete_all_before_the_next, log))


async def _delete_all_before_the_next(log: Log) -> tuple[Segment, ...]:
    count = await retention.count_deletable(log)
    if count == len(log.segments.view):
        path = f"{log.folder}/{segment_name(log.end)}"
        await log.flush()
        await CreateFile(path)
        log.segments.append(Segment(path, log.end))
    return await log.delete_first(count)


class DeletesWhatItHasMade(LogManager):
    """If all segments expire and the last one is empty, the new segment is deleted with it."""

    delete_old_segments = staticmethod(delete_old_with_the_new)


class RecoversWhatWasClosed(LogManager):
    """Logs are recovered after a clean close, and not after a crash."""

    def _is_trusted(self, was_clean: bool) -> bool:
        return not was_clean


class ClosesWithoutFlushing(LogManager):
    """The marker is written without a flush of the logs."""

    async def close(self) -> None:
        """Write the marker."""
        await CreateFile(CLEANLY_CLOSED)


class LogMutant(NamedTuple):
    """A mutant: its name, the origin of the fault, and the invariant that it violates."""

    name: str
    origin: str
    guarantee: Invariant
    logs: type[LogManager]

    @property
    def about(self) -> str:
        """A description of the fault."""
        return (self.logs.__doc__ or "").strip()


def _with(log: type[Log]) -> type[LogManager]:
    """Return a log manager whose logs have this class."""
    return type(log.__name__, (LogManager,), {"log_class": log, "__doc__": log.__doc__})


_ROWS = (
    LogMutant(
        "short-write-again",
        "KAFKA-309, KAFKA-573: after a short write the buffer was written from its start",
        "read as appended",
        _with(WritesAgainFromTheStart),
    ),
    LogMutant(
        "end-before-write",
        "KAFKA-698: the end was advanced before the append was finished",
        "readable is there",
        _with(GrowsBeforeItWrites),
    ),
    LogMutant(
        "failed-write-ignored",
        "KAFKA-540: the broker continued after an error of the disk",
        "entries are whole",
        _with(GoesOnAfterAFailedWrite),
    ),
    LogMutant(
        "age-after-cut",
        "KAFKA-593, KAFKA-596: a truncated segment kept the time of its first append",
        "age is that of messages",
        _with(KeepsItsAge),
    ),
    LogMutant(
        "deletes-its-own",
        "KAFKA-292: cleaning up an empty last segment rolled to the same name and deleted it",
        "files stay",
        DeletesWhatItHasMade,
    ),
    LogMutant(
        "recovers-when-clean",
        "KAFKA-673: recovery ran after a clean shutdown and was skipped after a crash",
        "entries are whole",
        RecoversWhatWasClosed,
    ),
    LogMutant(
        "close-without-flush",
        "KAFKA-126, KAFKA-372: nothing was flushed at shutdown",
        "closed is kept",
        ClosesWithoutFlushing,
    ),
)
LOG_MUTANTS = {row.name: row for row in _ROWS}
