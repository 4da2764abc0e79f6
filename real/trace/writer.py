"""The part of the trace that one process of a live run writes.

Every process writes a file of its own, one line for each event, so a killed process leaves what
it had written. Times are microseconds of the machine's monotonic clock since the begin of the
run; all processes of a machine share that clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from watchkeeper.model.trace.trace import ENCODER, NOTHING, Row


class EventSink(Protocol):
    """Receives the events of a member."""

    @property
    def node(self) -> str:
        """The name of the member."""

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
        """Write an event; `at_ns` is a time of the monotonic clock, now if None."""


class RowWriter:
    """Makes rows of one process's events and passes them to `keep`."""

    def __init__(
        self, node: str, group: str, begin_ns: int, keep: Callable[[Row], object]
    ) -> None:
        self.node = node
        self.group = group
        self.begin_ns = begin_ns
        self.keep = keep

    def t_us(self, at_ns: int | None = None) -> int:
        """A time of the monotonic clock, or now, as a time of the run in µs."""
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
        """Write an event; `at_ns` is a time of the monotonic clock, now if None."""
        t_us = self.t_us(at_ns)
        self.keep((t_us, self.node, kind, session, self.group, topic, partition, zxid, detail))


class TraceWriter(RowWriter):
    """One process's part of the trace, in a file."""

    def __init__(self, path: Path, node: str, group: str, begin_ns: int) -> None:
        super().__init__(node, group, begin_ns, self._append)
        self._file = path.open("ab", buffering=0)
        self._lock = Lock()

    def _append(self, row: Row) -> None:
        with self._lock:
            self._file.write(ENCODER.encode(row) + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
