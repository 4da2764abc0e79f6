"""The pagecache: which pages of which files are in memory, and which of them are not on disk.

Theory of operation
  A page has 4 KiB, and no page is an object here. What was used in one go is an *extent*: an
  interval of pages of one file with a stamp that says when. Pages of an extent were used one
  after the other, so its first is the one that was not used for the longest time. Using pages
  again cuts them out of their extents and puts them into a new one.

  When memory is full, the pages go that were not used for the longest time (LRU) and are
  *clean*. A *dirty* page holds what is not on the disk yet, and one that is being *written*
  is not there yet either; neither may go. Extents wait for their turn in a heap, by stamp. An
  extent that cannot go is set aside when its turn comes, and is back as soon as some of its
  pages are clean.

  With a *grain* of one page this is LRU, page by page. With a coarser one, what was used
  while so many pages were used counts as used at once, and adjacent extents of one stamp
  become one: a host that serves a thousand files for days keeps a bounded number of extents.
  Where nothing longer than a grain is used in one go, no page goes that is among the last
  (capacity - 2 grains) used.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heapify, heappop, heappush

from watchkeeper.model.delivery.interval_set import Interval, IntervalSet

PAGE_BYTES = 4096
MOST_STALE = 4
"""How many entries of the heap there may be for each extent before it is cleared up."""


def pages_of(at: int, size_bytes: int) -> Interval:
    """The pages that so many bytes touch."""
    return at // PAGE_BYTES, -(-(at + size_bytes) // PAGE_BYTES)


class Extent:
    """Pages of one file that were used in one go."""

    __slots__ = ("begin", "end", "file", "is_aside", "is_gone", "stamp")

    def __init__(self, file: CachedFile, begin: int, end: int, stamp: int) -> None:
        self.file = file
        self.begin = begin
        self.end = end
        self.stamp = stamp
        self.is_aside = False
        """Whether none of it may go, so that it waits for being written."""
        self.is_gone = False


class CachedFile:
    """What the pagecache knows of a file."""

    __slots__ = ("begins", "dirty", "extents", "number", "writing")

    def __init__(self, number: int) -> None:
        self.number = number
        self.begins: list[int] = []
        """Where the extents begin, in order."""
        self.extents: list[Extent] = []
        self.dirty = IntervalSet()
        self.writing = IntervalSet()

    def overlapping(self, begin: int, end: int) -> Interval:
        """The extents, by their places, that have pages between two."""
        first = bisect_right(self.begins, begin)
        if first and self.extents[first - 1].end > begin:
            first -= 1
        return first, bisect_left(self.begins, end, first)


class PageCache:
    """The memory of a host that is used for pages of files."""

    def __init__(self, capacity_pages: int, *, grain_pages: int = 1) -> None:
        assert 1 <= grain_pages <= capacity_pages, "a grain is a part of the memory"
        self.capacity_pages = capacity_pages
        self.grain_pages = grain_pages
        self.pages = 0
        """How many there are."""
        self.dirty_pages = 0
        self.writing_pages = 0
        self.evicted_pages = 0
        self.extents = 0
        self._files = 0
        self._used = 0
        """How many times a page was used."""
        self._newest: Extent | None = None
        self._pushed = 0
        self._oldest: list[tuple[int, int, int, int, Extent]] = []
        """Stamp, file, first page, a number that no other entry has, and the extent."""

    @property
    def unwritten_pages(self) -> int:
        """Pages that are not on the disk as they are: dirty, or being written."""
        return self.dirty_pages + self.writing_pages

    def open(self) -> CachedFile:
        """Know one file more."""
        self._files += 1
        return CachedFile(self._files)

    # --- reading -----------------------------------------------------------------------

    def missing(self, file: CachedFile, begin: int, end: int) -> list[Interval]:
        """The pages between two that are not in memory."""
        found = []
        first, last = file.overlapping(begin, end)
        for extent in file.extents[first:last]:
            if begin < extent.begin:
                found.append((begin, extent.begin))
            begin = extent.end
        if begin < end:
            found.append((begin, end))
        return found

    def use(self, file: CachedFile, begin: int, end: int) -> list[Interval]:
        """Use those pages that are in memory; which are not."""
        if self._is_newest(file, begin, end):
            return []
        missing = self.missing(file, begin, end)
        for left, right in self._here(file, begin, end) if missing else ((begin, end),):
            self._place(file, left, right)
        return missing

    def _here(self, file: CachedFile, begin: int, end: int) -> IntervalSet:
        here = IntervalSet()
        first, last = file.overlapping(begin, end)
        for extent in file.extents[first:last]:
            here.add(max(extent.begin, begin), min(extent.end, end))
        return here

    def put(self, file: CachedFile, begin: int, end: int) -> None:
        """Have pages in memory, as used just now, whether they were there or not."""
        if not self._is_newest(file, begin, end):
            self._place(file, begin, end)
            self._make_room()

    def _is_newest(self, file: CachedFile, begin: int, end: int) -> bool:
        """Whether using these pages changes nothing: they were the last ones used."""
        newest = self._newest
        if newest is None or newest.file is not file or end > newest.end:
            return False
        return begin >= newest.end - 1 or (begin >= newest.begin and self._is_current(newest))

    def _is_current(self, extent: Extent) -> bool:
        return self.grain_pages > 1 and extent.stamp == self._used // self.grain_pages

    # --- writing -----------------------------------------------------------------------

    def soil(self, file: CachedFile, begin: int, end: int) -> None:
        """Write into pages: they are in memory now, and dirty."""
        self.dirty_pages += file.dirty.add(begin, end)
        self.put(file, begin, end)

    def take_dirty(self, file: CachedFile, most_pages: int) -> list[Interval]:
        """Begin to write dirty pages, the first ones of the file; which these are."""
        taken: list[Interval] = []
        for begin, end in file.dirty:
            if most_pages <= 0:
                break
            end = min(end, begin + most_pages)
            taken.append((begin, end))
            most_pages -= end - begin
        for begin, end in taken:
            self.dirty_pages -= file.dirty.remove(begin, end)
            self.writing_pages += file.writing.add(begin, end)
        return taken

    def written(self, file: CachedFile, begin: int, end: int) -> None:
        """Pages are on the disk: they are clean, unless they were written to meanwhile."""
        self.writing_pages -= file.writing.remove(begin, end)
        first, last = file.overlapping(begin, end)
        for extent in file.extents[first:last]:
            if extent.is_aside:
                extent.is_aside = False
                self._push(extent)
        self._make_room()

    def not_written(self, file: CachedFile, begin: int, end: int) -> None:
        """Pages could not be written: they are dirty again."""
        for left, right in file.writing.within(begin, end):
            self.writing_pages -= file.writing.remove(left, right)
            self.dirty_pages += file.dirty.add(left, right)

    # --- forgetting --------------------------------------------------------------------

    def drop(self, file: CachedFile, begin: int = 0) -> None:
        """Forget the pages of a file from one on, dirty or not: they are cut off."""
        first, last = file.overlapping(begin, 1 << 62)
        if first < last:
            self._cut_out(file, begin, file.extents[last - 1].end)
        self.dirty_pages -= file.dirty.remove(begin, 1 << 62)
        self.writing_pages -= file.writing.remove(begin, 1 << 62)

    def resize(self, capacity_pages: int) -> None:
        """Have more memory for pages, or less."""
        self.capacity_pages = capacity_pages
        self._make_room()

    def _make_room(self) -> None:
        """Let pages go until there are no more than have room, or none that may go."""
        while self.pages > self.capacity_pages and self._oldest:
            _, _, begin, _, extent = self._oldest[0]
            if extent.is_gone or extent.is_aside or extent.begin != begin:
                heappop(self._oldest)
                continue
            self._let_go(extent, self.pages - self.capacity_pages)

    def _let_go(self, extent: Extent, most_pages: int) -> None:
        """Let pages of an extent go, from its first on; set aside what may not go."""
        file = extent.file
        first, end = extent.begin, extent.end
        stuck = [
            ranges.within(first, end)[0]
            for ranges in (file.dirty, file.writing)
            if ranges.within(first, end)
        ]
        begin_stuck, end_stuck = min(stuck, default=(end, end))
        if begin_stuck > first:
            until = min(begin_stuck, first + most_pages)
            self.evicted_pages += until - first
            self._cut_out(file, first, until)
        else:
            if end_stuck < end:
                self._split(extent, end_stuck)
            extent.is_aside = True

    # --- extents -----------------------------------------------------------------------

    def _place(self, file: CachedFile, begin: int, end: int) -> None:
        """Put pages into an extent that is newer than every other."""
        newest = self._newest
        stamp = self._used // self.grain_pages
        self._used += end - begin
        if newest is not None and newest.file is file and newest.end - 1 <= begin <= newest.end:
            self._cut_out(file, newest.end, end)
            self._extend(newest, end)
        else:
            self._cut_out(file, begin, end)
            self._insert(file, begin, end, stamp)

    def _extend(self, extent: Extent, end: int) -> None:
        """Let an extent end later, and be the newest."""
        self.pages += end - extent.end
        extent.end = end
        self._newest = extent
        if extent.is_aside:
            extent.is_aside = False
            self._push(extent)

    def _insert(self, file: CachedFile, begin: int, end: int, stamp: int) -> None:
        at = bisect_left(file.begins, begin)
        before = file.extents[at - 1] if at else None
        if before is not None and before.end == begin and before.stamp == stamp:
            self._extend(before, end)
            return
        self.pages += end - begin
        extent = Extent(file, begin, end, stamp)
        file.begins.insert(at, begin)
        file.extents.insert(at, extent)
        self.extents += 1
        self._newest = extent
        self._push(extent)

    def _split(self, extent: Extent, at: int) -> None:
        """Make two of an extent; the second stands in the heap."""
        file = extent.file
        second = Extent(file, at, extent.end, extent.stamp)
        extent.end = at
        place = bisect_right(file.begins, extent.begin)
        file.begins.insert(place, at)
        file.extents.insert(place, second)
        self.extents += 1
        if self._newest is extent:
            self._newest = second
        self._push(second)

    def _cut_out(self, file: CachedFile, begin: int, end: int) -> None:
        """Take pages out of whatever extents they are in."""
        first, last = file.overlapping(begin, end)
        if first == last:
            return
        if file.extents[first].begin < begin:
            if file.extents[first].end > end:
                self._split(file.extents[first], end)
            cut = file.extents[first]
            self.pages -= cut.end - begin
            cut.end = begin
            first += 1
        if first < last and file.extents[last - 1].end > end:
            last -= 1
            rest = file.extents[last]
            self.pages -= end - rest.begin
            rest.begin = file.begins[last] = end
            if not rest.is_aside:
                self._push(rest)
        for extent in file.extents[first:last]:
            self.pages -= extent.end - extent.begin
            extent.is_gone = True
            if extent is self._newest:
                self._newest = None
        self.extents -= last - first
        del file.begins[first:last]
        del file.extents[first:last]

    def _push(self, extent: Extent) -> None:
        """Let an extent wait for its turn to go."""
        self._pushed += 1
        entry = (extent.stamp, extent.file.number, extent.begin, self._pushed, extent)
        heappush(self._oldest, entry)
        if len(self._oldest) > MOST_STALE * self.extents + 64:
            self._oldest = [
                entry
                for entry in self._oldest
                if not (entry[4].is_gone or entry[4].is_aside or entry[2] != entry[4].begin)
            ]
            heapify(self._oldest)
