"""Mistakes that were made in logs like this one, each in a log that is sound but for it.

A plant is a class that does one step in its own way; the sound classes know nothing of
them. Which promise each breaks stands in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from model.log import retention
from model.log.contents import Contents, size_of
from model.log.log import Appended, Log
from model.log.logs import CLEANLY_CLOSED, Logs
from model.log.message_set import Checked
from model.log.promises import Promise
from model.log.recovery import recover
from model.log.segments import Segment, name_of
from model.log.storage import Append, CreateFile, StorageError


class WritesAgainFromTheStart(Log):
    """What was written short is written again, all of it, until enough was written."""

    async def _write(self, segment: Segment, contents: Contents) -> None:
        written = 0
        while written < size_of(contents):
            written += await Append(segment.path, contents)


class GrowsBeforeItWrites(Log):
    """The end is where it will be while the bytes before it are still being written."""

    async def _add(self, segment: Segment, contents: Contents, now: int) -> None:
        segment.grow(size_of(contents), now)
        await self._write(segment, contents)


class GoesOnAfterAFailedWrite(Log):
    """An error of the disk is taken for one of the request, and the next one is served."""

    async def append_some(self, sets: Sequence[Checked]) -> list[Appended]:
        """Append, and say nothing of it if the disk fails."""
        try:
            return await super().append_some(sets)
        except StorageError:
            self.stopped = ""
            return [Appended(self.end, 0, 0) for _ in sets]


async def recover_but_for_the_age(segment: Segment) -> int:
    """Cut what is torn; what is empty by that is still as old as what was in it."""
    began_ms = segment.first_append_ms
    cut_bytes = await recover(segment)
    segment.first_append_ms = began_ms
    return cut_bytes


class KeepsItsAge(Log):
    """A segment of which nothing is left is as old as what was in it."""

    recover = staticmethod(recover_but_for_the_age)


async def delete_old_with_the_new(log: Log) -> tuple[Segment, ...]:
    """If all are to go another segment is begun first, be it at the offset of the last or not."""
    return await log.alone(partial(_delete_all_before_the_next, log))


async def _delete_all_before_the_next(log: Log) -> tuple[Segment, ...]:
    count = await retention.count_old(log)
    if count == len(log.segments.view):
        path = f"{log.folder}/{name_of(log.end)}"
        await log.flush()
        await CreateFile(path)
        log.segments.append(Segment(path, log.end))
    return await log.delete_first(count)


class DeletesWhatItHasMade(Logs):
    """Where all of a log is to go and its last segment is empty, the new one goes with it."""

    delete_old_of = staticmethod(delete_old_with_the_new)


class RecoversWhatWasClosed(Logs):
    """Logs are recovered after they were closed, and trusted after a crash."""

    def _trusts(self, was_clean: bool) -> bool:
        return not was_clean


class ClosesWithoutFlushing(Logs):
    """The marker is written, and what was appended is left to the system."""

    async def close(self) -> None:
        """Say that all logs were closed."""
        await CreateFile(CLEANLY_CLOSED)


class Plant(NamedTuple):
    """A mistake that was planted, where somebody made it, and what it breaks."""

    name: str
    origin: str
    promise: Promise
    logs: type[Logs]

    @property
    def about(self) -> str:
        """What it does."""
        return (self.logs.__doc__ or "").strip()


def _with(log: type[Log]) -> type[Logs]:
    """The logs of a broker, each of them of this class."""
    return type(log.__name__, (Logs,), {"log": log, "__doc__": log.__doc__})


_ROWS = (
    Plant(
        "short-write-again",
        "KAFKA-309, KAFKA-573: after a short write the buffer was written from its start",
        "read as appended",
        _with(WritesAgainFromTheStart),
    ),
    Plant(
        "end-before-write",
        "KAFKA-698: the end was advanced before the append was finished",
        "readable is there",
        _with(GrowsBeforeItWrites),
    ),
    Plant(
        "failed-write-ignored",
        "KAFKA-540: the broker went on after an error of the disk",
        "entries are whole",
        _with(GoesOnAfterAFailedWrite),
    ),
    Plant(
        "age-after-cut",
        "KAFKA-593, KAFKA-596: a truncated segment kept the time of its first append",
        "age is that of messages",
        _with(KeepsItsAge),
    ),
    Plant(
        "deletes-its-own",
        "KAFKA-292: cleaning up an empty last segment rolled to the same name and deleted it",
        "files stay",
        DeletesWhatItHasMade,
    ),
    Plant(
        "recovers-when-clean",
        "KAFKA-673: recovery ran after a clean shutdown and was skipped after a crash",
        "entries are whole",
        RecoversWhatWasClosed,
    ),
    Plant(
        "close-without-flush",
        "KAFKA-126, KAFKA-372: nothing was flushed at shutdown",
        "closed is kept",
        ClosesWithoutFlushing,
    ),
)
LOG_PLANTS = {row.name: row for row in _ROWS}
