"""A set of whole numbers kept as intervals: pages of a file, or bytes of it.

A log is written and read in long runs, so a file of a hundred thousand pages is one
interval and not a hundred thousand members of a set.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

Interval = tuple[int, int]
"""From the first number to the one behind the last."""


class Ranges:
    """A set of whole numbers, as intervals that neither overlap nor touch."""

    __slots__ = ("_begins", "_ends", "size")

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        self.size = 0
        """How many numbers there are."""

    def __bool__(self) -> bool:
        return bool(self._begins)

    def __iter__(self) -> Iterator[Interval]:
        return zip(list(self._begins), list(self._ends), strict=True)

    @property
    def end(self) -> int:
        """What is behind the last number; 0 if there is none."""
        return self._ends[-1] if self._ends else 0

    def add(self, begin: int, end: int) -> int:
        """Add an interval; how many numbers were not there before."""
        if begin >= end:
            return 0
        begins, ends = self._begins, self._ends
        before = self.size
        if not ends or begin > ends[-1]:
            begins.append(begin)
            ends.append(end)
            self.size += end - begin
            return end - begin
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
        """Remove an interval; how many numbers were there."""
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
        """The intervals that lie between two numbers, cut to them."""
        if begin >= end:
            return []
        first = bisect_right(self._ends, begin)
        last = bisect_left(self._begins, end)
        return [
            (max(self._begins[at], begin), min(self._ends[at], end)) for at in range(first, last)
        ]

    def gaps(self, begin: int, end: int) -> list[Interval]:
        """The intervals between two numbers that are not in the set."""
        found = []
        for left, right in self.within(begin, end):
            if begin < left:
                found.append((begin, left))
            begin = right
        if begin < end:
            found.append((begin, end))
        return found

    def clear(self) -> None:
        """Remove everything."""
        self._begins.clear()
        self._ends.clear()
        self.size = 0
