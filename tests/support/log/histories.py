"""Histories of a log in memory, one for each mistake that is planted into logs.

A history answers which promises it has seen broken.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from model.log.log import Log, LogStopped
from model.log.logs import Logs
from model.log.promises import Promise, broken_after_crash
from model.log.segments import Damaged
from model.log.settings import log_settings
from model.log.storage import Append, DiskFull, NoSuchFile, StorageError
from tests.log_memory import MemoryStorage
from tests.log_messages import FORTY_TWO, TEST, appended, readable

Broken = tuple[Promise, ...]


def logs_of(
    kind: type[Logs], storage: MemoryStorage, flush_messages: int = 1, **given: Any
) -> tuple[Logs, Log]:
    """The logs of a broker that is started, and one of them."""
    settings = log_settings({"log.flush.interval": flush_messages, **given})
    logs = kind(settings)
    storage.run(logs.start())
    return logs, storage.run(logs.get_or_create("clicks", 0))


def broken_in(storage: MemoryStorage, log: Log, appended: bytes, flushed_end: int) -> Broken:
    """What is broken of what was promised, by all that can be read."""
    return broken_after_crash(appended, flushed_end, log.start, readable(storage, log))


# --- histories -------------------------------------------------------------------------


def a_short_write(kind: type[Logs]) -> Broken:
    """One message, of which five bytes are taken at first."""
    storage = MemoryStorage()
    _, log = logs_of(kind, storage)
    storage.shortened.append(5)
    appended(storage, log, TEST)

    return broken_in(storage, log, TEST, 14)


def a_flush_in_the_middle(kind: type[Logs]) -> Broken:
    """An append is under way; the log is flushed, and read to its end."""
    storage = MemoryStorage()
    _, log = logs_of(kind, storage, flush_messages=9)
    appending = log.append(TEST)
    storage.until(appending, Append)
    storage.run(log.flush())
    try:
        readable(storage, log)
    except Damaged:
        return ("readable is there",)
    finally:
        appending.close()
    return ()


def a_failed_write(kind: type[Logs]) -> Broken:
    """The disk is full in the middle of a message, and another one is sent."""
    storage = MemoryStorage()
    _, log = logs_of(kind, storage)
    storage.shortened.extend([5, DiskFull])
    for contents in (FORTY_TWO, TEST):
        with suppress(StorageError, LogStopped):
            appended(storage, log, contents)
    return broken_in(storage, log, TEST, 0)


def an_empty_segment_grows_old(kind: type[Logs]) -> Broken:
    """All that was in the file is torn, and an hour later a first message comes."""
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


def a_cleanup_of_nothing(kind: type[Logs]) -> Broken:
    """A log that is empty is cleaned up, and appended to."""
    storage = MemoryStorage()
    logs, log = logs_of(kind, storage, **{"log.retention.hours": 1})
    storage.now_ms += 3_600_001
    storage.run(logs.delete_old())
    try:
        appended(storage, log, TEST)
    except NoSuchFile:
        return ("files stay",)
    return ()


def a_torn_tail(kind: type[Logs]) -> Broken:
    """The host ends, and of the only message all but one byte is left."""
    storage = MemoryStorage()
    _, log = logs_of(kind, storage, flush_messages=9)
    appended(storage, log, TEST)
    storage.end_host(lambda path, rest, at: rest[:-1])
    _, log = logs_of(kind, storage)

    return broken_in(storage, log, TEST, 0)


def an_end_in_peace(kind: type[Logs]) -> Broken:
    """One message, the logs are closed, and the host is switched off."""
    storage = MemoryStorage()
    logs, log = logs_of(kind, storage, flush_messages=9)
    appended(storage, log, TEST)
    storage.run(logs.close())
    storage.end_host(lambda path, rest, at: b"")
    _, log = logs_of(kind, storage)

    return ("closed is kept",) if readable(storage, log) != TEST else ()


HISTORIES: dict[str, Callable[[type[Logs]], Broken]] = {
    "short-write-again": a_short_write,
    "end-before-write": a_flush_in_the_middle,
    "failed-write-ignored": a_failed_write,
    "age-after-cut": an_empty_segment_grows_old,
    "deletes-its-own": a_cleanup_of_nothing,
    "recovers-when-clean": a_torn_tail,
    "close-without-flush": an_end_in_peace,
}
