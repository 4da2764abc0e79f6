"""The pagecache, kept as extents, holds what a cache of single pages would hold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.model.delivery.interval_set import IntervalSet
from watchkeeper.sim.storage.pagecache import PAGE_BYTES, CachedFile, PageCache, pages_of

FILES = 3
PAGES = 24
"""How long a file is here."""


# --- ranges ----------------------------------------------------------------------------


@st.composite
def intervals(draw: Callable[[Any], Any]) -> tuple[int, int]:
    """Some pages of a file, in a row."""
    begin = draw(st.integers(0, PAGES - 1))
    return begin, draw(st.integers(begin + 1, PAGES))


@given(st.lists(st.tuples(st.sampled_from(["add", "remove"]), intervals())), intervals())
def test_ranges_are_a_set(
    changes: list[tuple[str, tuple[int, int]]], seen: tuple[int, int]
) -> None:
    """Intervals say what a set of single numbers says."""
    ranges, plain = IntervalSet(), set[int]()
    for does, (begin, end) in changes:
        numbers = set(range(begin, end))
        if does == "add":
            assert ranges.add(begin, end) == len(numbers - plain)
            plain |= numbers
        else:
            assert ranges.remove(begin, end) == len(numbers & plain)
            plain -= numbers

    kept = list(ranges)
    begin, end = seen
    inside = {
        number for left, right in ranges.within(begin, end) for number in range(left, right)
    }
    outside = {
        number for left, right in ranges.missing(begin, end) for number in range(left, right)
    }
    assert {number for left, right in kept for number in range(left, right)} == plain
    assert all(left[1] < right[0] for left, right in pairwise(kept))
    assert ranges.size == len(plain)
    assert ranges.end == max(plain, default=-1) + 1
    assert inside == plain & set(range(begin, end))
    assert outside == set(range(begin, end)) - plain


# --- against single pages --------------------------------------------------------------


class Page(NamedTuple):
    """A page, as the naive cache has it."""

    file: int
    number: int


class NaiveCache:
    """A cache that holds page by page, the one used last at the end."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.held: dict[Page, None] = {}
        self.dirty: set[Page] = set()
        self.writing: set[Page] = set()

    def use(self, file: int, begin: int, end: int) -> list[int]:
        """Read pages; which of them were not there."""
        pages = [Page(file, number) for number in range(begin, end)]
        missing = [page.number for page in pages if page not in self.held]
        for page in pages:
            if page in self.held:
                self.held[page] = self.held.pop(page)
        return missing

    def put(self, file: int, begin: int, end: int) -> None:
        """Have pages in memory."""
        for number in range(begin, end):
            self.held.pop(Page(file, number), None)
            self.held[Page(file, number)] = None
        self.make_room()

    def soil(self, file: int, begin: int, end: int) -> None:
        """Write into pages."""
        self.dirty |= {Page(file, number) for number in range(begin, end)}
        self.put(file, begin, end)

    def take_dirty(self, file: int, most: int) -> list[int]:
        """Begin to write the first dirty pages of a file."""
        taken = sorted(page for page in self.dirty if page.file == file)[:most]
        self.dirty -= set(taken)
        self.writing |= set(taken)
        return [page.number for page in taken]

    def written(self, file: int, pages: list[int]) -> None:
        """These are on the disk."""
        self.writing -= {Page(file, number) for number in pages}
        self.make_room()

    def not_written(self, file: int, pages: list[int]) -> None:
        """These are not."""
        failed = {Page(file, number) for number in pages} & self.writing
        self.writing -= failed
        self.dirty |= failed

    def drop(self, file: int, begin: int) -> None:
        """Forget the end of a file."""
        gone = {Page(file, number) for number in range(begin, PAGES)}
        self.held = {page: None for page in self.held if page not in gone}
        self.dirty -= gone
        self.writing -= gone

    def make_room(self) -> None:
        """Let the clean pages go that were not used for the longest time."""
        for page in list(self.held):
            if len(self.held) <= self.capacity:
                return
            if page not in self.dirty and page not in self.writing:
                del self.held[page]


def pages_in(file: CachedFile) -> list[int]:
    """The pages of a file that are in memory."""
    return [page for extent in file.extents for page in range(extent.begin, extent.end)]


def numbers(ranges: IntervalSet) -> set[int]:
    """Every number of a set of intervals."""
    return {number for begin, end in ranges for number in range(begin, end)}


class Twins:
    """Both caches, with the same input."""

    def __init__(self, capacity: int) -> None:
        self.real = PageCache(capacity)
        self.naive = NaiveCache(capacity)
        self.files = [self.real.open() for _ in range(FILES)]
        self.under_way: list[tuple[int, list[tuple[int, int]]]] = []

    def tell(self, does: str, file: int, begin: int, end: int) -> None:
        """Do one thing in both."""
        real, naive, mine = self.real, self.naive, self.files[file]
        if does == "read":
            missing = real.use(mine, begin, end)
            assert flat(missing) == naive.use(file, begin, end)
            for left, right in missing:
                real.put(mine, left, right)
                naive.put(file, left, right)
        elif does == "write":
            real.soil(mine, begin, end)
            naive.soil(file, begin, end)
        elif does == "begin to write back":
            taken = real.take_dirty(mine, end - begin)
            assert flat(taken) == naive.take_dirty(file, end - begin)
            self.under_way.append((file, taken))
        elif does in ("write back", "fail to write back") and self.under_way:
            self.end_writing(does == "write back")
        elif does == "cut":
            real.drop(mine, begin)
            naive.drop(file, begin)
            self.under_way = [pair for pair in self.under_way if pair[0] != file]

    def end_writing(self, is_good: bool) -> None:
        """What was begun first is on the disk now, or is not."""
        file, taken = self.under_way.pop(0)
        for begin, end in taken:
            (self.real.written if is_good else self.real.not_written)(
                self.files[file], begin, end
            )
        (self.naive.written if is_good else self.naive.not_written)(file, flat(taken))

    def check(self) -> None:
        """They hold the same pages, and the same of them are dirty and being written."""
        real, naive = self.real, self.naive
        for number, file in enumerate(self.files):
            assert pages_in(file) == sorted(p.number for p in naive.held if p.file == number)
            assert numbers(file.dirty) == {p.number for p in naive.dirty if p.file == number}
            assert numbers(file.writing) == {p.number for p in naive.writing if p.file == number}
            assert file.begins == [extent.begin for extent in file.extents]
        assert real.pages == len(naive.held)
        assert real.dirty_pages == len(naive.dirty)
        assert real.writing_pages == len(naive.writing)
        assert real.extents == sum(len(file.extents) for file in self.files)


def flat(intervals: list[tuple[int, int]]) -> list[int]:
    """Intervals, number by number."""
    return [number for begin, end in intervals for number in range(begin, end)]


ACTIONS = ("read", "write", "begin to write back", "write back", "fail to write back", "cut")
HISTORIES = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, FILES - 1), intervals()), max_size=60
)


@settings(max_examples=400, deadline=None)
@given(st.integers(1, 40), HISTORIES)
def test_extents_hold_what_single_pages_would(
    capacity: int, history: list[tuple[str, int, tuple[int, int]]]
) -> None:
    """Hits, misses, what goes first, what is dirty: the same after every step."""
    twins = Twins(capacity)
    for does, file, (begin, end) in history:
        twins.tell(does, file, begin, end)
        twins.check()


@settings(max_examples=200, deadline=None)
@given(
    st.integers(2, 40),
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, FILES - 1), intervals()), max_size=60),
)
def test_a_coarse_grain_forgets_nothing_that_was_used_lately(
    capacity: int, grain: int, reads: list[tuple[int, tuple[int, int]]]
) -> None:
    """A cache with a grain hits whenever an exact one does that is smaller by two grains."""
    capacity += 2 * grain
    coarse = PageCache(capacity, grain_pages=grain)
    files = [coarse.open() for _ in range(FILES)]
    exact = NaiveCache(capacity - 2 * grain)
    for file, (begin, end) in reads:
        end = min(end, begin + grain)
        missing = coarse.use(files[file], begin, end)
        for left, right in missing:
            coarse.put(files[file], left, right)
        missed = set(exact.use(file, begin, end))
        exact.put(file, begin, end)
        assert set(flat(missing)) <= missed
        assert coarse.pages <= capacity


# --- what it costs ---------------------------------------------------------------------


def test_a_long_file_is_one_extent() -> None:
    """A million pages that are appended in order are no million objects."""
    cache = PageCache(1_000_000)
    file = cache.open()
    for begin in range(0, 2_000_000, 20_000):
        cache.soil(file, begin, begin + 20_000)
        for left, right in cache.take_dirty(file, 20_000):
            cache.written(file, left, right)

    assert cache.pages == 1_000_000
    assert cache.evicted_pages == 1_000_000
    assert len(file.extents) == 1


@pytest.mark.parametrize(("grain", "most"), [(1, 10_000), (1_000, 120)])
def test_a_grain_bounds_the_number_of_extents(grain: int, most: int) -> None:
    """Ten logs that are appended to in turn, a page at a time."""
    cache = PageCache(10_000, grain_pages=grain)
    files = [cache.open() for _ in range(10)]
    for page in range(5_000):
        for file in files:
            cache.soil(file, page, page + 1)
        for file in files:
            for left, right in cache.take_dirty(file, 1):
                cache.written(file, left, right)

    assert cache.pages == 10_000
    assert cache.extents <= most
    assert all(pages_in(file) == list(range(4_000, 5_000)) for file in files)


def test_stale_entries_are_cleared_up() -> None:
    """Pages that are used over and over do not make the heap grow."""
    cache = PageCache(100)
    file = cache.open()
    cache.put(file, 0, 100)
    for turn in range(10_000):
        cache.use(file, turn * 7 % 100, turn * 7 % 100 + 1)

    assert len(cache._oldest) < 1_000


def test_pages_of_bytes() -> None:
    """Whatever touches a page needs all of it."""
    assert pages_of(0, 1) == (0, 1)
    assert pages_of(PAGE_BYTES - 1, 2) == (0, 2)
    assert pages_of(PAGE_BYTES, PAGE_BYTES) == (1, 2)
    assert pages_of(5, 0) == (0, 1)
