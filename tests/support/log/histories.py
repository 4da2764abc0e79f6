"""Histories of a log in memory, one for each mutant of logs.

A history returns the invariants that were violated in it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.mutants.invariants import Invariant, broken_after_crash
from tests.support.log.memory_storage import MemoryStorage
from tests.support.log.messages import FORTY_TWO, TEST, appended, readable
from watchkeeper.model.log.log import Log, LogStopped
from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.log.segments import DamagedLog
from watchkeeper.model.log.settings import log_settings
from watchkeeper.model.log.storage import Append, DiskFull, NoSuchFile, StorageError

Broken = tuple[Invariant, ...]


def logs_of(
    kind: type[LogManager], storage: MemoryStorage, flush_messages: int = 1, **given: Any
) -> tuple[LogManager, Log]:
    """Return the started logs of a broker, and one of them."""
    settings = log_settings({"log.flush.interval": flush_messages, **given})
    logs = kind(settings)
    storage.run(logs.start())
    return logs, storage.run(logs.get_or_create("clicks", 0))


def broken_in(storage: MemoryStorage, log: Log, appended: bytes, flushed_end: int) -> Broken:
    """Return the invariants that the readable contents of a log violate."""
    return broken_after_crash(appended, flushed_end, log.start, readable(storage, log))


# --- histories -------------------------------------------------------------------------


def a_short_write(kind: type[LogManager]) -> Broken:
    """One message, of which the first write accepts five bytes."""
    storage = MemoryStorage()
    _, log = logs_of(kind, storage)
    storage.shortened.append(5)
    appended(storage, log, TEST)

    return broken_in(storage, log, TEST, 14)


def a_flush_in_the_middle(kind: type[LogManager]) -> Broken:
    """The log is flushed and read to its end while an append is under way."""
    storage = MemoryStorage()
    _, log = logs_of(kind, storage, flush_messages=9)
    appending = log.append(TEST)
    storage.until(appending, Append)
    storage.run(log.flush())
    try:
        readable(storage, log)
    except DamagedLog:
        return ("readable is there",)
    finally:
        appending.close()
    return ()


def a_failed_write(kind: type[LogManager]) -> Broken:
    """The disk fills up in the middle of a message, and another message follows."""
    storage = MemoryStorage()
    _, log = logs_of(kind, storage)
    storage.shortened.extend([5, DiskFull])
    for contents in (FORTY_TWO, TEST):
        with suppress(StorageError, LogStopped):
            appended(storage, log, contents)
    return broken_in(storage, log, TEST, 0)


def an_empty_segment_grows_old(kind: type[LogManager]) -> Broken:
    """All bytes of the file are torn, and an hour later a first message arrives."""
    storage = MemoryStorage()
    _, log = logs_of(kind, storage, flush_messages=9)
    appended(storage, log, TEST)
    storage.end_host(lambda path, rest, at: rest[:-1])
    _, log = logs_of(kind, storage, **{"log.roll.hours": 1})
    storage.now_ms += 3_600_001
    try:
        appended(storage, log, TEST)
    except AssertionError:
        return ("age is that of messages",)  # an empty segment was to be rolled
    return ()


def a_cleanup_of_nothing(kind: type[LogManager]) -> Broken:
    """Retention runs on an empty log, and then a message is appended."""
    storage = MemoryStorage()
    logs, log = logs_of(kind, storage, **{"log.retention.hours": 1})
    storage.now_ms += 3_600_001
    storage.run(logs.delete_old())
    try:
        appended(storage, log, TEST)
    except NoSuchFile:
        return ("files stay",)
    return ()


def a_torn_tail(kind: type[LogManager]) -> Broken:
    """The host crashes, and all but the last byte of the only message survives."""
    storage = MemoryStorage()
    _, log = logs_of(kind, storage, flush_messages=9)
    appended(storage, log, TEST)
    storage.end_host(lambda path, rest, at: rest[:-1])
    _, log = logs_of(kind, storage)

    return broken_in(storage, log, TEST, 0)


def an_end_in_peace(kind: type[LogManager]) -> Broken:
    """One message, the logs are closed, and the host loses power."""
    storage = MemoryStorage()
    logs, log = logs_of(kind, storage, flush_messages=9)
    appended(storage, log, TEST)
    storage.run(logs.close())
    storage.end_host(lambda path, rest, at: b"")
    _, log = logs_of(kind, storage)

    return ("closed is kept",) if readable(storage, log) != TEST else ()


HISTORIES: dict[str, Callable[[type[LogManager]], Broken]] = {
    "short-write-again": a_short_write,
    "end-before-write": a_flush_in_the_middle,
    "failed-write-ignored": a_failed_write,
    "age-after-cut": an_empty_segment_grows_old,
    "deletes-its-own": a_cleanup_of_nothing,
    "recovers-when-clean": a_torn_tail,
    "close-without-flush": an_end_in_peace,
}
