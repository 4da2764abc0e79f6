"""Samples of a broker's host for the trace.

Every message changes the pagecache and the disk; an event for each change would cost more
than the message. So the host counts, and a sample is written four times a second, and when
the process of the broker ends; none if nothing has changed.
"""

from __future__ import annotations

from watchkeeper.model.actor.effects import sleep
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.storage.filesystem import FileSystem
from watchkeeper.sim.storage.pagecache import PAGE_BYTES

EVERY_MS = 250


class HostMetrics:
    """The metrics of one host while a broker runs there."""

    def __init__(self, kernel: Kernel, node: str, files: FileSystem) -> None:
        self.kernel = kernel
        self.node = node
        self.files = files
        self._last: dict[str, int] = {}

    async def sample_regularly(self) -> None:
        """Take a sample at regular intervals."""
        while True:
            self.sample()
            await sleep(EVERY_MS)

    def sample(self) -> None:
        """Write a sample into the trace, unless it equals the last one."""
        files = self.files
        seen = {
            "unflushed": files.unflushed_bytes,
            "most_unflushed": files.most_unflushed_bytes,
            "unwritten": files.cache.unwritten_pages * PAGE_BYTES,
            "cached": files.cache.pages * PAGE_BYTES,
            "hit": files.reader.hit_bytes,
            "missed": files.reader.miss_bytes,
        }
        files.most_unflushed_bytes = files.unflushed_bytes
        if seen != self._last:
            self._last = seen
            self.kernel.write(self.node, EventKind.HOST_METRICS, seen)
