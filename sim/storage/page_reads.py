"""Reading pages from the disk: what is missing, what comes with it, and who waits for what.

A page that is on its way is not requested again: a second reader waits for the same request.
"""

from __future__ import annotations

from watchkeeper.model.delivery.interval_set import Interval, IntervalSet
from watchkeeper.sim.disk.disk import Store, Together
from watchkeeper.sim.disk.scheduler import Done
from watchkeeper.sim.storage.files import FileNode
from watchkeeper.sim.storage.pagecache import PAGE_BYTES, PageCache, pages_of


class Reading:
    """Pages of one file on their way from the disk."""

    __slots__ = ("begin", "cuts", "end", "waiting")

    def __init__(self, file: FileNode, begin: int, end: int) -> None:
        self.begin = begin
        self.end = end
        self.cuts = file.cuts
        self.waiting: list[Done] = []


class Reader:
    """What brings pages of one host from its disk."""

    def __init__(self, cache: PageCache, store: Store) -> None:
        self.cache = cache
        self.store = store
        self.hit_bytes = 0
        """What was wanted and was in memory."""
        self.miss_bytes = 0
        """What was wanted and was not."""
        self.shared_bytes = 0
        """What of that was on its way already, for another reader or ahead."""
        self.device_bytes = 0
        """The pages requested of the disk, also ahead of time."""

    def want(
        self, file: FileNode, at: int, size_bytes: int, done: Done, *, is_for_write: bool = False
    ) -> None:
        """Have bytes of a file in memory; `done` hears whether they are there.

        Who wants to write into a page needs that page and no other.
        """
        begin, end = pages_of(at, size_bytes)
        missing = self.cache.use(file.cached, begin, end)
        if not missing:
            self.hit_bytes += size_bytes
            if file.readahead.has_streams:
                self._read_ahead(file, begin, end, is_miss=False)
            done(True)
            return
        self._count(file, at, at + size_bytes, missing)
        for left, right in missing:
            self._fetch(file, left, right)
        if not is_for_write:
            self._read_ahead(file, begin, end, is_miss=True)
        awaited = [
            reading
            for reading in file.readings
            if any(left < reading.end and reading.begin < right for left, right in missing)
        ]
        together = Together(len(awaited), done)
        for reading in awaited:
            reading.waiting.append(together)

    def _count(self, file: FileNode, begin: int, end: int, missing: list[Interval]) -> None:
        missed = shared = 0
        for left, right in missing:
            missed += _overlap(left, right, begin, end)
            for reading in file.readings:
                inner = max(left, reading.begin), min(right, reading.end)
                shared += _overlap(*inner, begin, end)
        self.hit_bytes += end - begin - missed
        self.miss_bytes += missed
        self.shared_bytes += shared

    def _read_ahead(self, file: FileNode, begin: int, end: int, *, is_miss: bool) -> None:
        last = -(-file.size_bytes // PAGE_BYTES)
        ahead, until = file.readahead.plan(begin, end, last, is_miss=is_miss)
        if ahead < until:
            for left, right in self.cache.missing(file.cached, ahead, min(until, last)):
                self._fetch(file, left, right)

    def _fetch(self, file: FileNode, begin: int, end: int) -> None:
        """Ask the disk for pages that are not requested yet."""
        asked = IntervalSet()
        for reading in file.readings:
            asked.add(reading.begin, reading.end)
        for left, right in asked.missing(begin, end):
            reading = Reading(file, left, right)
            file.readings.append(reading)
            spans = file.room.spans(left * PAGE_BYTES, right * PAGE_BYTES)
            self.device_bytes += (right - left) * PAGE_BYTES
            together = Together(len(spans), self._arrival(file, reading))
            for address, until in spans:
                self.store.submit(address, until - address, together, is_write=False, landed=None)

    def _arrival(self, file: FileNode, reading: Reading) -> Done:
        def arrive(is_good: bool) -> None:
            file.readings.remove(reading)
            if is_good and reading.cuts == file.cuts:
                self.cache.put(file.cached, reading.begin, reading.end)
            for done in reading.waiting:
                done(is_good)

        return arrive

    def lose_power(self, cache: PageCache) -> None:
        """Begin anew with an empty memory."""
        self.cache = cache


def _overlap(left_page: int, right_page: int, begin: int, end: int) -> int:
    """How many bytes of those pages lie between two places."""
    return max(min(right_page * PAGE_BYTES, end) - max(left_page * PAGE_BYTES, begin), 0)
