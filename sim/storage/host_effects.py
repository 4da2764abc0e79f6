"""The effects of experiments on their host, beside those of a log on its storage."""

from __future__ import annotations

from collections import deque
from typing import Any

from watchkeeper.model.actor.operations import Effect
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.storage import StorageEffect


class Overwrite(StorageEffect[None], frozen=True):
    """Write somewhere in a file; no log does that."""

    path: str
    at: int
    size_bytes: int


class Compute(Effect[None], frozen=True):
    """Keep a core busy."""

    cost_ns: int


class Idle(Effect[None], frozen=True):
    """Do nothing for a while."""

    duration_us: int


class Receive(Effect[None], frozen=True):
    """Take so many bytes from the network into the program's memory, as they arrive."""

    size_bytes: int


class Transmit(Effect[Any], frozen=True):
    """Write something from the program's own memory to a connection."""

    contents: Contents
    to: Any


class Delivered(Effect[None], frozen=True):
    """Wait until the other side of a connection has all that was sent."""

    by: Any


class Lock:
    """What only one thread can have at a time."""

    def __init__(self) -> None:
        self.is_taken = False
        self.waiting: deque[Any] = deque()


class TakeLock(Effect[None], frozen=True):
    """Have a lock, when its holder gives it back."""

    lock: Any


class GiveLock(Effect[None], frozen=True):
    """Give a lock back."""

    lock: Any
