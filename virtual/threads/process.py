"""A virtual process: threads that start, stand still and die together."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from watchkeeper.virtual.threads.task import Task


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
        self.descriptors: dict[int, Any] = {}
        """File descriptor -> virtual socket."""
        self.signal_handlers: dict[int, Any] = {}
        self.alarm: Any = None
        """The timer of `signal.alarm`."""

    def __repr__(self) -> str:
        return f"<process {self.name}>"

    @property
    def main_task(self) -> Task | None:
        """Its first thread, while that has not ended."""
        return self.tasks[0] if self.tasks else None
