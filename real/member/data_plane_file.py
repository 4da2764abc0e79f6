"""The data plane as the members of a live run read it: a small file with one writer.

This file serves runs in which a log is a rate, as in the simulation: its end follows from the
time. `watchkeeper.real.world.data_plane` decides what it contains; that module runs in the
world's process and rewrites the file whenever a broker starts or ends, a topic changes or the
rate of messages changes. Brokers serve from the file (`rate_server`), and fetchers find the
leaders in it (`rate_fetcher`).
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct


class LogState(Struct, frozen=True):
    """The log of one partition: its end at a time, and its rate since then."""

    base: int = 0
    since_us: int = 0
    rate_per_1000_s: int = 0
    size_bytes: int = 0

    def end(self, now_us: int) -> int:
        """The offset of the next message."""
        return self.base + self.rate_per_1000_s * max(now_us - self.since_us, 0) // 1_000_000_000

    def at_rate(self, rate_per_1000_s: int, size_bytes: int, now_us: int) -> LogState:
        """The same log with another rate from now on."""
        return LogState(self.end(now_us), now_us, rate_per_1000_s, size_bytes)


class DataPlaneState(Struct, frozen=True):
    """The data plane of a cluster; partitions are written `topic/partition`."""

    logs: dict[str, LogState] = {}
    hosts: dict[str, list[str]] = {}
    """Broker's node -> the partitions that it serves."""
    leaders: dict[str, int] = {}
    """0.8: partition -> the broker that leads it."""
    addresses: dict[int, str] = {}
    """Broker id -> the address that it announces."""
    listening: dict[str, str] = {}
    """Announced address -> address on this machine; unused once the broker has ended."""
    links: dict[str, dict[str, str]] = {}
    """Broker's node -> address on this machine -> where it connects to instead."""


DECODER = msgspec.json.Decoder(DataPlaneState)
"""Created at import, in one thread: two threads that decode a type for the first time at the
same moment crash the process.
"""


class DataPlaneFile:
    """The file, with one writing process and many readers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = (0, 0)
        self._state = DataPlaneState()

    def write(self, state: DataPlaneState) -> None:
        """Replace the file atomically, so that no reader sees half of it."""
        fresh = self.path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(state))
        os.replace(fresh, self.path)

    def read(self) -> DataPlaneState:
        """The current contents; decoded only when the file has changed."""
        status = self.path.stat()
        seen = (status.st_mtime_ns, status.st_ino)
        if seen != self._seen:
            self._state = DECODER.decode(self.path.read_bytes())
            self._seen = seen
        return self._state
