"""Each planted mistake breaks the promise that is stated, in a history of a few steps.

The same history with the sound classes breaks none. A history answers which promises it
has seen broken.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest

from model.log.flaws import LOG_PLANTS, Plant
from model.log.log import Log, LogStopped
from model.log.logs import Logs
from model.log.promises import PROMISES, Promise, broken_after_crash
from model.log.segments import Damaged
from model.log.settings import log_settings
from model.log.storage import Append, DiskFull, NoSuchFile, StorageError
from tests.log_memory import MemoryStorage
from tests.log_messages import FORTY_TWO, TEST, appended, readable

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "the-log.md"

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


# --- what is caught --------------------------------------------------------------------


@pytest.mark.parametrize("plant", LOG_PLANTS.values(), ids=lambda plant: plant.name)
def test_a_planted_mistake_breaks_its_promise(plant: Plant) -> None:
    """That promise, and whatever else comes of it."""
    assert plant.promise in HISTORIES[plant.name](plant.logs)


@pytest.mark.parametrize("name", HISTORIES)
def test_a_sound_log_breaks_none(name: str) -> None:
    """In the same history."""
    assert HISTORIES[name](Logs) == ()


def test_every_plant_and_every_promise_is_told_of() -> None:
    """A sentence for each, on the page about the log, too; a history for each plant."""
    page = PAGE.read_text()
    for name, meaning in PROMISES.items():
        assert f"| {name} | {meaning} |" in page
    for plant in LOG_PLANTS.values():
        assert f"| `{plant.name}` | {plant.origin} | {plant.promise} |" in page
    assert list(LOG_PLANTS) == list(HISTORIES)
    assert set(PROMISES) == set(get_args(Promise))
    for plant in LOG_PLANTS.values():
        assert plant.about.endswith(".")
        assert "KAFKA-" in plant.origin


# --- the judge -------------------------------------------------------------------------

ALL = TEST + FORTY_TWO + TEST


@pytest.mark.parametrize(
    ("flushed_end", "start", "found", "broken"),
    [
        (26, 0, ALL, ()),
        (26, 0, ALL[:26], ()),
        (26, 14, FORTY_TWO, ()),
        (0, 0, b"", ()),
        (26, 0, TEST, ("flushed is kept",)),
        (26, 14, b"", ("flushed is kept",)),
        (14, 0, TEST + FORTY_TWO[:-1], ("entries are whole",)),
        (14, 0, TEST * 2, ("read as appended",)),
        (14, 0, TEST + bytes(5), ("read as appended", "entries are whole")),
        (26, 0, bytes(26), ("flushed is kept", "read as appended", "entries are whole")),
        (40, 40, TEST, ("read as appended",)),
    ],
)
def test_what_was_found_after_a_crash_is_judged(
    flushed_end: int, start: int, found: bytes, broken: Broken
) -> None:
    """Three messages were appended, of 14, 12 and 14 bytes."""
    assert broken_after_crash(ALL, flushed_end, start, found) == broken
