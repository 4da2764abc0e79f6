"""A program in a thread of this process, whose session can be left to expire."""

from __future__ import annotations

import threading
from collections.abc import Callable

from model.program import Program
from real.client import Client, Said
from real.diary import Notes
from real.living import Halt, Halted, LiveDriver

Hear = Callable[[Said], None]


class Guest:
    """A program in a thread of this process, which can fall silent without a farewell."""

    def __init__(self, program: Program, notes: Notes, connect: Callable[[Hear], Client]) -> None:
        self.driver = LiveDriver(program, notes, connect)
        self.thread = threading.Thread(target=self._run, name=notes.node, daemon=True)

    def _run(self) -> None:
        try:
            self.driver.run()
        except Halted:
            return

    def fall_silent(self) -> None:
        """Leave as a process does that is killed."""
        self.driver.client.abandon()
        self.driver.queue.put(Halt())
