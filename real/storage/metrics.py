"""Metrics of a live broker's files: unflushed bytes, and the hit rate of reads.

What is counted
  Bytes that were appended but not synced are unflushed. Every append, sync and truncation of
  the broker's storage is counted when it is answered, so the sum is exact at any time. What an
  earlier process has left is added when a storage is opened.

  Before each read and each sent part of a file, the kernel reports which pages are in memory
  (`watchkeeper.real.storage.pagecache`). What it does not tell is not reported.

Who reports
  The broker, four times a second and at its end, if anything has changed. A killed broker
  reports nothing any more. So the numbers are on a *board*, a memory-mapped file that outlives
  the process, and the killer reads them there. The next process continues the counts.
"""

from __future__ import annotations

import asyncio
import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock

from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    Flush,
    Read,
    Rename,
    Truncate,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.storage.fd_cache import Lease
from watchkeeper.real.storage.host_crash import Extent, WatchedStorage, extents
from watchkeeper.real.storage.pagecache import PAGE_BYTES, TO_THE_END, missed_bytes, page_counter
from watchkeeper.real.trace.writer import EventSink

EVERY_S = 0.25
BOARD = "board"
"""The name of the board, in the folder of the sync log."""
UNFLUSHED, MOST_UNFLUSHED, READ, MISSED = range(4)
BOARD_BYTES = mmap.PAGESIZE


class Board:
    """Counters in a memory-mapped file, which outlive the process."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(descriptor, BOARD_BYTES)
            self.numbers = memoryview(mmap.mmap(descriptor, BOARD_BYTES)).cast("q")
            self.count_pages = page_counter(descriptor)
            """How to count cached pages; None if the kernel does not tell."""
        finally:
            os.close(descriptor)

    def seen(self, root: Path) -> dict[str, int]:
        """The current metrics: the counters, and the pages of the files in a folder."""
        numbers = self.numbers
        unflushed = numbers[UNFLUSHED]
        seen = {
            "unflushed": unflushed,
            "most_unflushed": max(numbers[MOST_UNFLUSHED], unflushed),
        }
        if self.count_pages is None:
            return {**seen, "read": numbers[READ]}
        missed = numbers[MISSED]
        return {**seen, **self._pages(root), "hit": numbers[READ] - missed, "missed": missed}

    def _pages(self, root: Path) -> dict[str, int]:
        assert self.count_pages is not None, "pages are counted only if the kernel can"
        cached = unwritten = 0
        tells_of_disk = True
        for descriptor in _opened(root):
            pages = self.count_pages(descriptor, 0, TO_THE_END)
            cached += pages.cached
            unwritten += pages.unwritten or 0
            tells_of_disk &= pages.unwritten is not None
        found = {"cached": cached * PAGE_BYTES}
        return {**found, "unwritten": unwritten * PAGE_BYTES} if tells_of_disk else found


def _opened(root: Path) -> Iterator[int]:
    """The descriptors of a folder's files, each open for a moment; skips deleted files."""
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


class UnflushedBytes:
    """The unflushed bytes of each file and their sum."""

    def __init__(self, extents: Mapping[str, Extent]) -> None:
        self._left = {
            path: extent.size_bytes - extent.synced_bytes for path, extent in extents.items()
        }
        self._sizes = {path: extent.size_bytes for path, extent in extents.items()}
        self.total_bytes = sum(self._left.values())

    def appended(self, path: str, size_bytes: int) -> None:
        """Bytes were appended to a file."""
        size = self._sizes.get(path, 0) + size_bytes
        self._stands(path, size, self._left.get(path, 0) + size_bytes)

    def synced(self, path: str, up_to: int) -> None:
        """A file is synced up to this offset."""
        size = self._sizes.get(path, 0)
        self._stands(path, size, min(size - up_to, self._left.get(path, 0)))

    def cut(self, path: str, size_bytes: int) -> None:
        """A file was truncated to this size and synced."""
        self._stands(path, size_bytes, 0)

    def gone(self, path: str) -> None:
        """A file, or a folder with its contents, was deleted."""
        for known in [
            known for known in self._sizes if known == path or known.startswith(f"{path}/")
        ]:
            self._stands(known, 0, 0)
            del self._sizes[known], self._left[known]

    def renamed(self, path: str, to: str) -> None:
        """A file has another name, and replaces what had it."""
        self._stands(to, self._sizes.get(path, 0), self._left.get(path, 0))
        self.gone(path)

    def _stands(self, path: str, size_bytes: int, left_bytes: int) -> None:
        self.total_bytes += left_bytes - self._left.get(path, 0)
        self._sizes[path], self._left[path] = size_bytes, left_bytes


class MeteredStorage(WatchedStorage):
    """Watched files that count unflushed bytes, and reads by their source."""

    def __init__(self, root: Path, sync_log: Path) -> None:
        super().__init__(root, sync_log)
        self._risk = UnflushedBytes(extents(root, sync_log))
        self._counting = Lock()
        self._board = Board(sync_log / BOARD)
        self._show()
        self.mark_reported()  # the killer of the previous process has reported its maximum

    def seen(self) -> dict[str, int]:
        """The current metrics."""
        return self._board.seen(Path(self.root))

    def mark_reported(self) -> None:
        """Start a new maximum of unflushed bytes."""
        with self._counting:
            self._board.numbers[MOST_UNFLUSHED] = self._risk.total_bytes

    # --- unflushed -------------------------------------------------------------------------

    def _append(self, effect: Append) -> int:
        written = super()._append(effect)
        with self._counting:
            self._risk.appended(effect.path, written)
            self._show()
        return written

    def _record(self, effect: Flush | Truncate, synced_bytes: int) -> None:
        super()._record(effect, synced_bytes)
        with self._counting:
            if isinstance(effect, Flush):
                self._risk.synced(effect.path, synced_bytes)
            else:
                self._risk.cut(effect.path, synced_bytes)
            self._show()

    def _record_name(self, effect: CreateFile | Delete | Rename) -> None:
        super()._record_name(effect)
        with self._counting:
            if isinstance(effect, CreateFile):
                self._risk.cut(effect.path, 0)
            elif isinstance(effect, Delete):
                self._risk.gone(effect.path)
            else:
                self._risk.renamed(effect.path, effect.to)
            self._show()

    def _show(self) -> None:
        numbers, total_bytes = self._board.numbers, self._risk.total_bytes
        numbers[UNFLUSHED] = total_bytes
        numbers[MOST_UNFLUSHED] = max(numbers[MOST_UNFLUSHED], total_bytes)

    # --- reads -----------------------------------------------------------------------------

    def sending(self, path: str, at: int, size_bytes: int) -> Lease:
        """Keep a file open to send a part of it, which counts as a read."""
        lease = super().sending(path, at, size_bytes)
        self._count(at, size_bytes, self._cached(lease.descriptor, at, size_bytes))
        return lease

    def _read(self, effect: Read) -> bytes:
        with self._files.lease(effect.path) as descriptor:
            cached = self._cached(descriptor, effect.at, effect.size_bytes)
        found = super()._read(effect)
        self._count(effect.at, len(found), cached)
        return found

    def _cached(self, descriptor: int, at: int, size_bytes: int) -> int:
        """The number of cached pages, to be called before the read."""
        count_pages = self._board.count_pages
        return (
            count_pages(descriptor, at, size_bytes).cached
            if count_pages is not None and size_bytes
            else 0
        )

    def _count(self, at: int, size_bytes: int, cached: int) -> None:
        if size_bytes:
            with self._counting:
                self._board.numbers[READ] += size_bytes
                self._board.numbers[MISSED] += missed_bytes(at, size_bytes, cached)


class HostMetrics:
    """Reports the metrics of a broker while it runs."""

    def __init__(self, storage: MeteredStorage, sink: EventSink) -> None:
        self._storage = storage
        self._sink = sink
        self._reported: dict[str, int] = {}

    async def report_periodically(self) -> None:
        """Report in intervals until cancelled."""
        while True:
            self.report()
            await asyncio.sleep(EVERY_S)

    def report(self) -> None:
        """Report the metrics if they have changed."""
        seen = self._storage.seen()
        if seen != self._reported:
            self._reported = seen
            self._sink.write(EventKind.HOST_METRICS, seen)
            self._storage.mark_reported()


def last_metrics(root: Path, sync_log: Path) -> dict[str, int] | None:
    """The metrics of a killed process; None if it had not started to count."""
    path = sync_log / BOARD
    return Board(path).seen(root) if path.exists() else None
