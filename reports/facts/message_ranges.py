"""Values of messages by producer and number, stored by ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

from watchkeeper.model.delivery.interval_set import Interval, IntervalSet

V = TypeVar("V")


class Numbered(Generic[V]):
    """A value for each message; the first value of a message stays."""

    def __init__(self) -> None:
        self._known: dict[str, IntervalSet] = {}
        self._starts: dict[str, list[int]] = {}
        """Starts of a producer's ranges, in order; the other lists hold ends and values."""
        self._parts: dict[str, list[tuple[int, V]]] = {}

    def unknown(self, producer: str, first: int, end: int) -> list[Interval]:
        """The ranges of these messages that have no value."""
        known = self._known.get(producer)
        return known.missing(first, end) if known is not None else [(first, end)]

    def add(self, producer: str, first: int, end: int, value: V) -> None:
        """Set the value of messages that have none."""
        known = self._known.setdefault(producer, IntervalSet())
        starts = self._starts.setdefault(producer, [])
        parts = self._parts.setdefault(producer, [])
        for begin, until in known.missing(first, end):
            at = bisect_right(starts, begin)
            starts.insert(at, begin)
            parts.insert(at, (until, value))
            known.add(begin, until)

    def parts(self, producer: str, first: int, end: int) -> Iterator[tuple[int, V]]:
        """The ranges of these messages that have a value, with it."""
        starts = self._starts.get(producer, [])
        for at in range(max(bisect_right(starts, first) - 1, 0), bisect_left(starts, end)):
            until, value = self._parts[producer][at]
            if until > first:
                yield min(until, end) - max(starts[at], first), value
