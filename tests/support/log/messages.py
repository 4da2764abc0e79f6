"""Messages for the tests of the log, and short ways to open one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.support.log.memory_storage import MemoryStorage
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.settings import LogSettings

FOLDER = "clicks-0"


def message_set(*payloads: str | bytes) -> bytes:
    """Encode messages with these payloads."""
    return encode(
        [
            Message.of(payload.encode() if isinstance(payload, str) else payload)
            for payload in payloads
        ]
    )


TEST = message_set("test")
"""14 bytes."""
FORTY_TWO = message_set("42")
"""12 bytes."""


def storage_with(files: Iterable[tuple[str, bytes]] = ()) -> MemoryStorage:
    """Return a storage whose folder of one log holds these files, all of them flushed."""
    storage = MemoryStorage()
    storage.folders.add(FOLDER)
    for name, contents in files:
        storage.put(f"{FOLDER}/{name}", contents)
    return storage


def opened(storage: MemoryStorage, *, log: type[Log] = Log, **settings: Any) -> Log:
    """Open and recover the log of that folder."""
    found, _ = storage.run(log.open(FOLDER, LogSettings(**settings), was_clean=False))
    return found


def appended(storage: MemoryStorage, log: Log, *sets: bytes) -> None:
    """Append each of these to a log."""
    for message_set in sets:
        storage.run(log.append(message_set))


def readable(storage: MemoryStorage, log: Log) -> bytes:
    """Read the whole log, from its start to the high watermark."""
    found = b""
    while log.start + len(found) < log.high_watermark:
        part = storage.run(log.read(log.start + len(found), 10**9))
        assert isinstance(part, bytes)
        found += part
    return found
