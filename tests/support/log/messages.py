"""Messages for the tests of the log, and short ways to open one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from model.log.log import Log
from model.log.message import Message
from model.log.message_set import encode
from model.log.settings import LogSettings
from tests.log_memory import MemoryStorage

FOLDER = "clicks-0"


def message_set(*payloads: str | bytes) -> bytes:
    """The messages with these payloads, one after the other."""
    return encode([Message.of(one.encode() if isinstance(one, str) else one) for one in payloads])


TEST = message_set("test")
"""14 bytes."""
FORTY_TWO = message_set("42")
"""12 bytes."""


def storage_with(files: Iterable[tuple[str, bytes]] = ()) -> MemoryStorage:
    """A storage in which the folder of one log holds these files, all of them flushed."""
    storage = MemoryStorage()
    storage.folders.add(FOLDER)
    for name, contents in files:
        storage.put(f"{FOLDER}/{name}", contents)
    return storage


def opened(storage: MemoryStorage, *, log: type[Log] = Log, **settings: Any) -> Log:
    """The log of that folder, recovered."""
    found, _ = storage.run(log.open(FOLDER, LogSettings(**settings), was_clean=False))
    return found


def appended(storage: MemoryStorage, log: Log, *sets: bytes) -> None:
    """Append each of these to a log."""
    for one in sets:
        storage.run(log.append(one))


def readable(storage: MemoryStorage, log: Log) -> bytes:
    """All of a log that can be read, from its start."""
    found = b""
    while log.start + len(found) < log.readable_end:
        part = storage.run(log.read(log.start + len(found), 10**9))
        assert isinstance(part, bytes)
        found += part
    return found
