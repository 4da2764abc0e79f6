"""A virtual process: threads that start, stand still and die together."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from random import Random
from typing import Any
from weakref import WeakSet

from watchkeeper.virtual.threads.task import Task


def identity_of(descriptor: int) -> tuple[int, int]:
    """Which file of the operating system a descriptor is of."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


class Process:
    """A process of a world, with what an operating system keeps for one."""

    def __init__(self, name: str, pid: int, address: str, random: Random) -> None:
        self.name = name
        self.pid = pid
        self.address = address
        self.host_name = name.replace("/", "-").replace("#", "-")
        self.random = random
        """The chance that its code draws from, by `random`, `secrets`, `uuid` or `os.urandom`."""
        self.tasks: list[Task] = []
        """Its threads that have not ended, the oldest first."""
        self.held: list[Task] = []
        """Threads that would run if the process did not stand still."""
        self.named_threads = 0
        """How many threads have a name by their number."""
        self.is_alive = True
        self.is_paused = False
        self.ending = ""
        """How it has ended: returned, crashed, or with which error."""
        self.wall_offset_ns = 0
        """How far its wall clock is ahead of the world's."""
        self.at_end: list[Callable[[], object]] = []
        """What the operating system does when the process ends for any reason."""
        self.at_exit: list[Callable[[], object]] = []
        """What the program has registered by `atexit`; a crash does not call it."""
        self.files: dict[int, tuple[int, int]] = {}
        """Descriptor of a real file that it has opened -> which file that is."""
        self.raw_files: WeakSet[FileIO] = WeakSet()
        self.descriptors: dict[int, Any] = {}
        """File descriptor -> virtual socket."""
        self.signal_handlers: dict[int, Any] = {}
        self.alarm: Any = None
        """The timer of `signal.alarm`."""

    def __repr__(self) -> str:
        return f"<process {self.name}>"

    def close_files(self) -> None:
        """Close the files that it has open, as an operating system does; locks end with them."""
        for descriptor, identity in self.files.items():
            # The program may have closed it: then its number may be another file's.
            with suppress(OSError):
                if identity_of(descriptor) == identity:
                    os.close(descriptor)
        for file in self.raw_files:
            file.close()
        self.files.clear()
        self.raw_files.clear()

    @property
    def main_task(self) -> Task | None:
        """Its first thread, while that has not ended."""
        return self.tasks[0] if self.tasks else None
