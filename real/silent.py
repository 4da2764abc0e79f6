"""A program in a thread of this process, whose session can be left to expire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from model.program import Program
from model.trace import NOTHING, Row
from real.client import Client, Said
from real.living import Halt, Halted, LiveDriver

Hear = Callable[[Said], None]


class Notebook:
    """Takes down what happens to a program of this process, as a diary does."""

    def __init__(self, node: str, begin_ns: int, rows: list[Row]) -> None:
        self.node = node
        self.begin_ns = begin_ns
        self.rows = rows

    def write(
        self,
        kind: str,
        detail: Mapping[str, Any] = NOTHING,
        *,
        session: int = 0,
        topic: str = "",
        partition: str = "",
        zxid: int = 0,
        at_ns: int | None = None,
    ) -> None:
        """Take down an event."""
        t_us = ((time.monotonic_ns() if at_ns is None else at_ns) - self.begin_ns) // 1000
        self.rows.append((t_us, self.node, kind, session, "", topic, partition, zxid, detail))


class Guest:
    """A program in a thread of this process, which can fall silent without a farewell."""

    def __init__(
        self, program: Program, notebook: Notebook, connect: Callable[[Hear], Client]
    ) -> None:
        self.driver = LiveDriver(program, notebook, connect)
        self.thread = threading.Thread(target=self._run, name=notebook.node, daemon=True)

    def _run(self) -> None:
        try:
            self.driver.run()
        except Halted:
            return

    def fall_silent(self) -> None:
        """Leave as a process does that is killed."""
        self.driver.client.abandon()
        self.driver.queue.put(Halt())
