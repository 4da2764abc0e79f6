"""A set of whole numbers that holds millions of them as a few ranges.

Messages are numbered in the order they were sent and mostly arrive in it, so what has been
seen of a producer is one range, or a handful. Adding the next numbers lengthens the last
range; nothing is ever kept for a single number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Range = tuple[int, int]
"""From a number to one past the last."""


class Ranges:
    """Whole numbers, as ranges that neither overlap nor touch, in order."""

    __slots__ = ("_ends", "_starts", "size")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.size = 0
        """How many numbers there are."""
        for first, end in ranges:
            self.add(first, end)

    def __iter__(self) -> Iterator[Range]:
        return zip(self._starts, self._ends, strict=True)

    def add(self, first: int, end: int) -> int:
        """Add the numbers from `first` to `end`, not included; how many of them are new."""
        if end <= first:
            return 0
        starts, ends = self._starts, self._ends
        if ends and first == ends[-1]:
            ends[-1] = end
            self.size += end - first
            return end - first
        low, high = bisect_left(ends, first), bisect_right(starts, end)
        new = end - first
        if low < high:
            new -= self._known(low, high, first, end)
            first, end = min(first, starts[low]), max(end, ends[high - 1])
        starts[low:high], ends[low:high] = [first], [end]
        self.size += new
        return new

    def _known(self, low: int, high: int, first: int, end: int) -> int:
        """How many of these numbers the ranges from `low` to `high` hold."""
        return sum(
            max(0, min(self._ends[at], end) - max(self._starts[at], first))
            for at in range(low, high)
        )

    def missing(self, first: int, end: int) -> list[Range]:
        """Which of these numbers are not here."""
        gaps: list[Range] = []
        at = first
        for index in range(bisect_right(self._ends, first), bisect_left(self._starts, end)):
            if self._starts[index] > at:
                gaps.append((at, self._starts[index]))
            at = self._ends[index]
        if at < end:
            gaps.append((at, end))
        return gaps

    def without(self, others: Ranges) -> Ranges:
        """The numbers that are here and not there."""
        return Ranges(gap for first, end in self for gap in others.missing(first, end))
