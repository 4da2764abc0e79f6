"""What brokers and fetchers of a live run know of the messages: a small file all of them read.

In this slice a log is a rate, as in the simulation: its end follows from the time. Whoever
runs the world writes the file anew whenever a broker comes or goes, a topic changes or
messages begin to flow; brokers serve from it, and fetchers find leaders in it as they
would ask any broker for them.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct


class LogState(Struct, frozen=True):
    """One partition: its end at a moment, and how fast it has moved since."""

    base: int = 0
    since_us: int = 0
    rate_per_1000_s: int = 0
    size_bytes: int = 0

    def end(self, now_us: int) -> int:
        """The offset of the next message to be written."""
        return self.base + self.rate_per_1000_s * max(now_us - self.since_us, 0) // 1_000_000_000

    def at_rate(self, rate_per_1000_s: int, size_bytes: int, now_us: int) -> LogState:
        """This log, from now on at another rate."""
        return LogState(self.end(now_us), now_us, rate_per_1000_s, size_bytes)


class ClusterState(Struct, frozen=True):
    """The data plane of a cluster; partitions are written `topic/partition`."""

    logs: dict[str, LogState] = {}
    hosts: dict[str, list[str]] = {}
    """Broker's node -> the partitions that it serves."""
    leaders: dict[str, int] = {}
    """0.8: partition -> the broker that leads it."""
    addresses: dict[int, str] = {}
    """Broker's id -> the address that it announces."""
    listening: dict[str, str] = {}
    """Address -> where that is on this machine; nobody listens there once a broker is gone."""


DECODER = msgspec.json.Decoder(ClusterState)
"""Made here, in one thread: two threads that decode a type for the first time at the same moment
bring the process down."""


class ClusterFile:
    """The file, written by one process and read by many."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = (0, 0)
        self._state = ClusterState()

    def write(self, state: ClusterState) -> None:
        """Replace what is there, so that no reader sees half of it."""
        fresh = self.path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(state))
        os.replace(fresh, self.path)

    def read(self) -> ClusterState:
        """What is there now."""
        status = self.path.stat()
        seen = (status.st_mtime_ns, status.st_ino)
        if seen != self._seen:
            self._state = DECODER.decode(self.path.read_bytes())
            self._seen = seen
        return self._state
