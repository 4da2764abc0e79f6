"""What is looked at from time to time on a broker's host, for the trace.

How the pagecache and the disk stand is a matter of every message; to tell of each would cost
more than to handle it. So the host counts, and the trace is told four times a second, and when
the broker's process ends; nothing where nothing has changed.
"""

from __future__ import annotations

from model.asks import sleep
from sim.filesystem import FileSystem
from sim.kernel import Kernel
from sim.pagecache import PAGE_BYTES

EVERY_MS = 250


class Gauges:
    """Tells of the files of one host while a broker runs there."""

    def __init__(self, kernel: Kernel, node: str, files: FileSystem) -> None:
        self.kernel = kernel
        self.node = node
        self.files = files
        self._told: dict[str, int] = {}

    async def tell_from_time_to_time(self) -> None:
        """Look again and again."""
        while True:
            self.tell()
            await sleep(EVERY_MS)

    def tell(self) -> None:
        """Tell how all stands, unless it stands as it did."""
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
        if seen != self._told:
            self._told = seen
            self.kernel.write(self.node, "gauges", seen)
