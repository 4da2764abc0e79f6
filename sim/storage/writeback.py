"""Write-behind: dirty pages go to the disk later, many at a time, in the order of the file.

Writing back begins when more than a part of the memory is dirty (the background ratio), when
dirty pages are old, and when a file is flushed. Dirty files take turns. Where more is
dirty than a second, larger part of the memory (the dirty ratio), writers have to wait
until some of it is on the disk: from then on memory is filled as fast as the disk takes it.

A write that the disk refuses leaves its pages dirty, to be tried again. `forget_failures`
does as Linux does: the flush that waits hears of it, the pages count as clean, and the next
flush succeeds though nothing was written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from watchkeeper.model.delivery.interval_set import Interval
from watchkeeper.sim.disk.disk import Counts, Store, Together, Undo
from watchkeeper.sim.disk.host_costs import MachineProfile
from watchkeeper.sim.disk.scheduler import Done
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.storage.files import FileNode
from watchkeeper.sim.storage.pagecache import PAGE_BYTES, PageCache

LEAST_CHUNK_PAGES = (4 << 20) // PAGE_BYTES
"""What of a file is written back at least before it is the next one's turn."""
DEPTH = 2
"""How many chunks are under way, so that the disk is never without the next."""
ALL = 1 << 62


class Writing:
    """Pages of one file on their way to the disk."""

    __slots__ = ("cuts", "file", "intervals", "size_bytes", "waiting")

    def __init__(self, file: FileNode, intervals: list[Interval]) -> None:
        self.file = file
        self.intervals = intervals
        self.cuts = file.cuts
        self.size_bytes = file.size_bytes
        """How long the file is now: of the last page no more than this is written."""
        self.waiting: list[Done] = []

    def landed(self, at: int, begin: int, end: int) -> None:
        """Of what was written at a place, this is on the disk."""
        if self.cuts == self.file.cuts:
            self.file.durable.add(at + begin, min(at + end, self.size_bytes))


class WriteBack:
    """What brings dirty pages of one host to its disk."""

    def __init__(
        self, kernel: Kernel, profile: MachineProfile, cache: PageCache, store: Store
    ) -> None:
        self.kernel = kernel
        self.profile = profile
        self.cache = cache
        self.store = store
        self.throttled_us = 0
        """How long writers had to wait, all together."""
        self._background_pages = cache.capacity_pages * profile.background_percent // 100
        self._most_pages = max(cache.capacity_pages * profile.dirty_percent // 100, 1)
        half_a_second = profile.device.write_bytes_per_s * max(profile.device.members - 1, 1) // 2
        self._chunk_pages = max(
            min(half_a_second // PAGE_BYTES, self._most_pages // 8), LEAST_CHUNK_PAGES
        )
        """What of a file is written back at most: what the disk does in half a second."""
        self._since: dict[FileNode, int] = {}
        """Dirty file -> since when it is dirty; who has been dirty longest is first."""
        self._old: dict[FileNode, None] = {}
        """Files whose dirty pages are old: they are written whatever the ratios say."""
        self._turn: dict[FileNode, None] = {}
        self._under_way = 0
        self._throttled: deque[tuple[int, Callable[[], None]]] = deque()
        self._is_watching = False
        self._lives = 0
        self._forgetting: list[Counts] = []

    # --- writers -----------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether a write into memory may proceed now."""
        return not self._throttled and self.cache.unwritten_pages < self._most_pages

    def admit(self, write: Callable[[], None]) -> None:
        """Let a write proceed, now or when fewer pages are dirty."""
        if self.is_open:
            write()
        else:
            self._throttled.append((self.kernel.now_us, write))

    def soiled(self, file: FileNode) -> None:
        """Pages of a file have become dirty."""
        if file not in self._since:
            self._since[file] = self.kernel.now_us
            self._watch()
        if self.cache.dirty_pages > self._background_pages:
            self._work()

    def forget(self, file: FileNode) -> None:
        """A file is gone, or has no dirty pages any more."""
        for files in (self._since, self._old, self._turn):
            files.pop(file, None)

    def flush(self, file: FileNode, done: Done) -> None:
        """Write all that is dirty of a file; `done` hears when that is on the disk."""
        self._write(file, ALL)
        if not file.writings:
            done(True)
            return
        together = Together(len(file.writings), done)
        for writing in file.writings:
            writing.waiting.append(together)

    # --- choosing ----------------------------------------------------------------------

    def _watch(self) -> None:
        """Look again and again whether dirty pages are old, as long as there are any."""
        if not self._is_watching:
            self._is_watching = True
            rest = self.profile.wake_us - self.kernel.now_us % self.profile.wake_us
            self.kernel.after(rest, self._look, self._lives)

    def _look(self, lives: int) -> None:
        if lives != self._lives:
            return
        self._is_watching = False
        old_us = self.kernel.now_us - self.profile.expire_us
        self._old.update((file, None) for file, since in self._since.items() if since <= old_us)
        if self._since:
            self._watch()
        self._work()

    def _work(self) -> None:
        while self._under_way < DEPTH:
            file = self._next()
            if file is None:
                return
            writing = self._write(file, self._chunk_pages)
            assert writing is not None, "a file with a turn has dirty pages"
            self._under_way += 1
            writing.waiting.append(self._chunk_done)

    def _chunk_done(self, _: bool) -> None:
        self._under_way -= 1
        self._work()

    def _next(self) -> FileNode | None:
        """Whose turn it is, if anything is to be written at all."""
        turns = self._old
        if not turns:
            if self.cache.dirty_pages <= self._background_pages:
                self._turn.clear()
                return None
            self._turn = self._turn or dict.fromkeys(self._since)
            turns = self._turn
        file = next(iter(turns))
        del turns[file]
        if file.cached.dirty.size > self._chunk_pages:
            turns[file] = None
        return file

    # --- writing -----------------------------------------------------------------------

    def _write(self, file: FileNode, most_pages: int) -> Writing | None:
        """Write the first dirty pages of a file, if it has any."""
        taken = self.cache.take_dirty(file.cached, most_pages)
        if not file.cached.dirty:
            self.forget(file)
        if not taken:
            return None
        writing = Writing(file, taken)
        file.writings.append(writing)
        asked = [
            (address, until - address, at)
            for begin, end in taken
            for address, until, at in _places(file, begin * PAGE_BYTES, end * PAGE_BYTES)
        ]
        together = Together(len(asked), partial(self._written, writing))
        for address, size_bytes, at in asked:
            landed = partial(writing.landed, at)
            self.store.submit(address, size_bytes, together, is_write=True, landed=landed)
        return writing

    def _written(self, writing: Writing, is_good: bool) -> None:
        """A write is over."""
        file, cache = writing.file, self.cache
        file.writings.remove(writing)
        if writing.cuts == file.cuts:
            for begin, end in writing.intervals:
                self._settle(writing, begin, end, is_good)
        if file.cached.dirty and file not in self._since:
            self._since[file] = self.kernel.now_us
            self._watch()
        for done in writing.waiting:
            done(is_good)
        while self._throttled and cache.unwritten_pages < self._most_pages:
            since_us, write = self._throttled.popleft()
            self.throttled_us += self.kernel.now_us - since_us
            write()

    def _settle(self, writing: Writing, begin: int, end: int, is_good: bool) -> None:
        """Pages are on the disk, or not."""
        file = writing.file
        if is_good:
            self.cache.written(file.cached, begin, end)
        elif self._forgetting:
            for effect in self._forgetting:
                effect.add("pages forgotten", end - begin)
            self.cache.written(file.cached, begin, end)
        else:
            self.cache.not_written(file.cached, begin, end)

    # --- faults ------------------------------------------------------------------------

    def forget_failures(self, effect: Counts) -> Undo:
        """Take pages for clean that the disk has refused, from now on."""
        self._forgetting.append(effect)
        return lambda: self._forgetting.remove(effect)

    def lose_power(self, cache: PageCache) -> None:
        """Forget everything: the host is gone, and comes back with an empty memory."""
        self.cache = cache
        self._lives += 1
        self._is_watching = False
        self._under_way = 0
        for files in (self._since, self._old, self._turn):
            files.clear()
        self._throttled.clear()


def _places(file: FileNode, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """From address to address, and where in the file that is."""
    for address, until in file.room.spans(begin, end):
        yield address, until, begin
        begin += until - address
