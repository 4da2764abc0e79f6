"""What a live broker tells of its files: bytes at risk, and how often reads found their pages.

The account
  What was appended to a file and not synced is at risk. Every append, sync and cut of the
  broker's storage is taken into account when it has been answered, so the sum is exact at any
  moment. What an earlier process has left is added when a storage is opened.

  Of each read and each part of a file that is sent, the kernel is asked beforehand which pages
  are in memory (`real.pagecache`). What it does not say is not told.

Who tells
  The broker, four times a second and when it ends, where anything has changed. One that is
  killed tells nothing any more. So the numbers are on a *board*, a file that is mapped into
  memory and outlives the process: whoever has killed it reads them there. The next process
  goes on counting where this one was ended.
"""

from __future__ import annotations

import asyncio
import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock

from model.log.storage import Append, CreateFile, Delete, Flush, Read, Truncate
from real.descriptors import Lease
from real.diary import Writes
from real.hostcrash import Extent, WatchedStorage, extents
from real.pagecache import PAGE_BYTES, TO_THE_END, missed_bytes, way_to_look

EVERY_S = 0.25
BOARD = "board"
"""The name of the board, in the folder of the diary."""
UNFLUSHED, MOST_UNFLUSHED, READ, MISSED = range(4)
BOARD_BYTES = mmap.PAGESIZE


class Board:
    """Numbers in a file, which outlive the process that counts."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(descriptor, BOARD_BYTES)
            self.numbers = memoryview(mmap.mmap(descriptor, BOARD_BYTES)).cast("q")
            self.look = way_to_look(descriptor)
            """How to ask the kernel for pages; None where it does not say."""
        finally:
            os.close(descriptor)

    def seen(self, root: Path) -> dict[str, int]:
        """How everything stands: the numbers, and the pages of the files in a folder."""
        numbers = self.numbers
        unflushed = numbers[UNFLUSHED]
        seen = {
            "unflushed": unflushed,
            "most_unflushed": max(numbers[MOST_UNFLUSHED], unflushed),
        }
        if self.look is None:
            return {**seen, "read": numbers[READ]}
        missed = numbers[MISSED]
        return {**seen, **self._pages(root), "hit": numbers[READ] - missed, "missed": missed}

    def _pages(self, root: Path) -> dict[str, int]:
        assert self.look is not None, "pages are asked for where the kernel says"
        cached = unwritten = 0
        tells_of_disk = True
        for descriptor in _opened(root):
            pages = self.look(descriptor, 0, TO_THE_END)
            cached += pages.cached
            unwritten += pages.unwritten or 0
            tells_of_disk &= pages.unwritten is not None
        found = {"cached": cached * PAGE_BYTES}
        return {**found, "unwritten": unwritten * PAGE_BYTES} if tells_of_disk else found


def _opened(root: Path) -> Iterator[int]:
    """The files of a folder, each open for a moment; one may go meanwhile."""
    for path in (
        os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names
    ):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            yield descriptor
        finally:
            os.close(descriptor)


class AtRisk:
    """How much of each file the disk does not have, and how much that is together."""

    def __init__(self, extents: Mapping[str, Extent]) -> None:
        self._left = {path: one.size_bytes - one.synced_bytes for path, one in extents.items()}
        self._sizes = {path: one.size_bytes for path, one in extents.items()}
        self.total_bytes = sum(self._left.values())

    def appended(self, path: str, size_bytes: int) -> None:
        """So much was written at the end of a file."""
        size = self._sizes.get(path, 0) + size_bytes
        self._stands(path, size, self._left.get(path, 0) + size_bytes)

    def synced(self, path: str, up_to: int) -> None:
        """The disk has a file up to there."""
        size = self._sizes.get(path, 0)
        self._stands(path, size, min(size - up_to, self._left.get(path, 0)))

    def cut(self, path: str, size_bytes: int) -> None:
        """A file has so much, and the disk has all of it."""
        self._stands(path, size_bytes, 0)

    def gone(self, path: str) -> None:
        """A file, or a folder with all that is in it, is there no longer."""
        for one in [one for one in self._sizes if one == path or one.startswith(f"{path}/")]:
            self._stands(one, 0, 0)
            del self._sizes[one], self._left[one]

    def _stands(self, path: str, size_bytes: int, left_bytes: int) -> None:
        self.total_bytes += left_bytes - self._left.get(path, 0)
        self._sizes[path], self._left[path] = size_bytes, left_bytes


class GaugedStorage(WatchedStorage):
    """Watched files that count what is at risk, and what was read from where."""

    def __init__(self, root: Path, diary: Path) -> None:
        super().__init__(root, diary)
        self._risk = AtRisk(extents(root, diary))
        self._counting = Lock()
        self._board = Board(diary / BOARD)
        self._show()
        self.was_told()  # by whoever has seen the end of the process before

    def seen(self) -> dict[str, int]:
        """How everything stands."""
        return self._board.seen(Path(self.root))

    def was_told(self) -> None:
        """Begin anew with what was at risk at most."""
        with self._counting:
            self._board.numbers[MOST_UNFLUSHED] = self._risk.total_bytes

    # --- at risk -----------------------------------------------------------------------

    def _append(self, ask: Append) -> int:
        written = super()._append(ask)
        with self._counting:
            self._risk.appended(ask.path, written)
            self._show()
        return written

    def _took_down(self, ask: Flush | Truncate | CreateFile | Delete, synced_bytes: int) -> None:
        super()._took_down(ask, synced_bytes)
        with self._counting:
            if isinstance(ask, Flush):
                self._risk.synced(ask.path, synced_bytes)
            elif isinstance(ask, Delete):
                self._risk.gone(ask.path)
            else:
                self._risk.cut(ask.path, synced_bytes)
            self._show()

    def _show(self) -> None:
        numbers, total_bytes = self._board.numbers, self._risk.total_bytes
        numbers[UNFLUSHED] = total_bytes
        numbers[MOST_UNFLUSHED] = max(numbers[MOST_UNFLUSHED], total_bytes)

    # --- read --------------------------------------------------------------------------

    def sending(self, path: str, at: int, size_bytes: int) -> Lease:
        """Have a file open to send a part of it, which is counted as read."""
        lease = super().sending(path, at, size_bytes)
        self._count(at, size_bytes, self._cached(lease.descriptor, at, size_bytes))
        return lease

    def _read(self, ask: Read) -> bytes:
        with self._files.lease(ask.path) as descriptor:
            cached = self._cached(descriptor, ask.at, ask.size_bytes)
        found = super()._read(ask)
        self._count(ask.at, len(found), cached)
        return found

    def _cached(self, descriptor: int, at: int, size_bytes: int) -> int:
        """How many pages are in memory, as long as nothing has been read yet."""
        look = self._board.look
        return look(descriptor, at, size_bytes).cached if look is not None and size_bytes else 0

    def _count(self, at: int, size_bytes: int, cached: int) -> None:
        if size_bytes:
            with self._counting:
                self._board.numbers[READ] += size_bytes
                self._board.numbers[MISSED] += missed_bytes(at, size_bytes, cached)


class Gauges:
    """Tells of the files of a broker while it runs."""

    def __init__(self, storage: GaugedStorage, notes: Writes) -> None:
        self._storage = storage
        self._notes = notes
        self._told: dict[str, int] = {}

    async def tell_from_time_to_time(self) -> None:
        """Look again and again."""
        while True:
            self.tell()
            await asyncio.sleep(EVERY_S)

    def tell(self) -> None:
        """Tell how all stands, unless it stands as it did."""
        seen = self._storage.seen()
        if seen != self._told:
            self._told = seen
            self._notes.write("gauges", seen)
            self._storage.was_told()


def last_seen(root: Path, diary: Path) -> dict[str, int] | None:
    """How the files of a process stand that was killed; None if it had not begun to count."""
    path = diary / BOARD
    return Board(path).seen(root) if path.exists() else None
