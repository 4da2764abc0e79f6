"""What programs of experiments ask of their host, beside what a log asks of its storage."""

from __future__ import annotations

from collections import deque
from typing import Any

from model.log.contents import Contents
from model.log.storage import StorageAsk
from model.operations import Ask


class Overwrite(StorageAsk[None], frozen=True):
    """Write somewhere in a file; no log does that."""

    path: str
    at: int
    size_bytes: int


class Compute(Ask[None], frozen=True):
    """Keep a core busy."""

    cost_ns: int


class Idle(Ask[None], frozen=True):
    """Do nothing for a while."""

    duration_us: int


class Receive(Ask[None], frozen=True):
    """Take so many bytes from the network into the program's memory, as they arrive."""

    size_bytes: int


class Transmit(Ask[Any], frozen=True):
    """Write something from the program's own memory to a connection."""

    contents: Contents
    to: Any


class Delivered(Ask[None], frozen=True):
    """Wait until the other side of a connection has all that was sent."""

    by: Any


class Lock:
    """What only one thread can have at a time."""

    def __init__(self) -> None:
        self.is_taken = False
        self.waiting: deque[Any] = deque()


class TakeLock(Ask[None], frozen=True):
    """Have a lock, when whoever has it gives it back."""

    lock: Any


class GiveLock(Ask[None], frozen=True):
    """Give a lock back."""

    lock: Any
