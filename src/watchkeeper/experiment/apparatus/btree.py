"""Which pages a B-tree touches, over the same storage as a log.

Not a B-tree with its keys: of the keys it is known how many there are, and that a page is
filled as insertions in random order fill it (by 69 %). From that follows how many pages each
level has, which of them a search goes through, and how often a page is split. The pages are
those of a file: they are read through the pagecache, dirtied, and written back.
"""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.log.storage import Append, Read
from watchkeeper.sim.engine.random_streams import Stream
from watchkeeper.sim.storage.file_contents import zeros
from watchkeeper.sim.storage.filesystem import FileSystem
from watchkeeper.sim.storage.host_effects import Overwrite
from watchkeeper.sim.storage.pagecache import PAGE_BYTES

FILLED_PERCENT = 69
"""ln 2: how full the pages of a B-tree are after insertions in random order."""


class BTree:
    """A B-tree in a file."""

    def __init__(self, path: str, entries: int, *, entry_bytes: int, key_bytes: int) -> None:
        self.path = path
        self.entries = entries
        self.leaf_entries = max(PAGE_BYTES // entry_bytes * FILLED_PERCENT // 100, 2)
        self.fanout = max(PAGE_BYTES // key_bytes * FILLED_PERCENT // 100, 2)
        self.levels = list(self._sizes())
        """How many pages each level has, the root first."""
        self.read_pages = 0
        self.written_pages = 0
        self._owed = 0
        """How many entries were inserted since a leaf was split."""

    def _sizes(self) -> Iterator[int]:
        sizes = [max(-(-self.entries // self.leaf_entries), 1)]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // self.fanout))
        return reversed(sizes)

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return sum(self.levels)

    def settle(self, files: FileSystem) -> None:
        """Be on the disk, with as much in memory as has room: the upper levels before leaves."""
        file = files.preload(self.path, zeros(self.pages * PAGE_BYTES))
        files.cache.put(file.cached, 0, min(self.pages, files.cache.capacity_pages))

    def path_to(self, place: int) -> list[int]:
        """The pages from the root to the leaf that holds the entry of this place."""
        number = place // self.leaf_entries
        base, found = self.pages, []
        for size in reversed(self.levels):
            base -= size
            found.append(base + min(number, size - 1))
            number //= self.fanout
        return found[::-1]

    async def insert(self, place: int) -> None:
        """Insert an entry at a place: search for its leaf, change it, and split what is full."""
        path = self.path_to(place)
        for page in path:
            await Read(self.path, page * PAGE_BYTES, PAGE_BYTES)
        self.read_pages += len(path)
        await self._write(path[-1])
        self._owed += 1
        every, number = self.leaf_entries, self._owed
        for parent in path[-2::-1]:
            if number % every:
                return
            await Append(self.path, zeros(PAGE_BYTES))
            self.written_pages += 1
            await self._write(parent)
            every *= self.fanout

    async def _write(self, page: int) -> None:
        await Overwrite(self.path, page * PAGE_BYTES, PAGE_BYTES)
        self.written_pages += 1

    def somewhere(self, chance: Stream) -> int:
        """A place of chance."""
        return chance.below(self.entries)
