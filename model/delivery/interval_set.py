"""A set of integers that holds millions of them as a few intervals.

Messages are numbered in the order they were sent and mostly arrive in it; pages of a log are
written and read in long runs. So a set is one interval, or a handful. Adding the next
numbers lengthens the last interval; nothing is ever stored for a single number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Interval = tuple[int, int]
"""From the first number to one past the last."""


class IntervalSet:
    """A set of integers, as intervals in order that neither overlap nor touch."""

    __slots__ = ("_begins", "_ends", "size")

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        self.size = 0
        """How many numbers it holds."""
        for begin, end in intervals:
            self.add(begin, end)

    def __bool__(self) -> bool:
        return bool(self._begins)

    def __iter__(self) -> Iterator[Interval]:
        # Over copies: callers change the set while they go through it.
        return zip(list(self._begins), list(self._ends), strict=True)

    @property
    def end(self) -> int:
        """One past the last number; 0 for an empty set."""
        return self._ends[-1] if self._ends else 0

    def add(self, begin: int, end: int) -> int:
        """Add the numbers from `begin` to `end` (exclusive); return how many are new."""
        if begin >= end:
            return 0
        begins, ends = self._begins, self._ends
        before = self.size
        # The two usual cases need no search: what comes next, and what comes later.
        if ends and begin == ends[-1]:
            ends[-1] = end
            self.size += end - begin
            return end - begin
        if not ends or begin > ends[-1]:
            begins.append(begin)
            ends.append(end)
            self.size += end - begin
            return end - begin
        # Intervals that overlap the new one, or touch it, become one with it.
        first = bisect_left(ends, begin)
        last = bisect_right(begins, end)
        for at in range(first, last):
            self.size -= ends[at] - begins[at]
        if first < last:
            begin, end = min(begin, begins[first]), max(end, ends[last - 1])
        begins[first:last] = [begin]
        ends[first:last] = [end]
        self.size += end - begin
        return self.size - before

    def remove(self, begin: int, end: int) -> int:
        """Remove the numbers from `begin` to `end` (exclusive); return how many there were."""
        begins, ends = self._begins, self._ends
        first = bisect_right(ends, begin)
        last = bisect_left(begins, end)
        if begin >= end or first >= last:
            return 0
        removed = sum(min(ends[at], end) - max(begins[at], begin) for at in range(first, last))
        kept = [(begins[first], begin), (end, ends[last - 1])]
        kept = [(left, right) for left, right in kept if left < right]
        begins[first:last] = [left for left, _ in kept]
        ends[first:last] = [right for _, right in kept]
        self.size -= removed
        return removed

    def within(self, begin: int, end: int) -> list[Interval]:
        """Return the intervals between two numbers, cut to them."""
        if begin >= end:
            return []
        first = bisect_right(self._ends, begin)
        last = bisect_left(self._begins, end)
        return [
            (max(self._begins[at], begin), min(self._ends[at], end)) for at in range(first, last)
        ]

    def missing(self, begin: int, end: int) -> list[Interval]:
        """Return the intervals between two numbers that are not in the set."""
        gaps = []
        for left, right in self.within(begin, end):
            if begin < left:
                gaps.append((begin, left))
            begin = right
        if begin < end:
            gaps.append((begin, end))
        return gaps

    def without(self, others: IntervalSet) -> IntervalSet:
        """Return the numbers of this set that are not in the other."""
        return IntervalSet(gap for begin, end in self for gap in others.missing(begin, end))

    def clear(self) -> None:
        """Remove everything."""
        self._begins.clear()
        self._ends.clear()
        self.size = 0
