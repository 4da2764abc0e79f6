"""What one process of a live run writes down: rows of the trace, as they happen.

Every process writes a file of its own, a line at a time, so that a process that is killed
leaves what it had written. Moments are microseconds of the machine's monotonic clock
since the run began; that clock is the same for every process of the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from model.trace import ENCODER, NOTHING, Row


class Writes(Protocol):
    """Whoever takes down what happens to a member."""

    @property
    def node(self) -> str:
        """The member."""

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


class Notes:
    """Makes rows of what happens to one process, and keeps them somewhere."""

    def __init__(
        self, node: str, group: str, begin_ns: int, keep: Callable[[Row], object]
    ) -> None:
        self.node = node
        self.group = group
        self.begin_ns = begin_ns
        self.keep = keep

    def t_us(self, at_ns: int | None = None) -> int:
        """A moment of the machine's clock, or now, as a moment of the run."""
        return ((time.monotonic_ns() if at_ns is None else at_ns) - self.begin_ns) // 1000

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
        t_us = self.t_us(at_ns)
        self.keep((t_us, self.node, kind, session, self.group, topic, partition, zxid, detail))


class Diary(Notes):
    """One process's part of the trace, in a file."""

    def __init__(self, path: Path, node: str, group: str, begin_ns: int) -> None:
        super().__init__(node, group, begin_ns, self._append)
        self._file = path.open("ab", buffering=0)
        self._lock = Lock()

    def _append(self, row: Row) -> None:
        with self._lock:
            self._file.write(ENCODER.encode(row) + b"\n")

    def close(self) -> None:
        """Write no more."""
        self._file.close()
