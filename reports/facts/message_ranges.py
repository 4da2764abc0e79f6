"""What is known of messages by their producers and numbers, a range at a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

from model.ranges import Range, Ranges

V = TypeVar("V")


class Numbered(Generic[V]):
    """A value for each message; what is said of it first stays."""

    def __init__(self) -> None:
        self._known: dict[str, Ranges] = {}
        self._starts: dict[str, list[int]] = {}
        """Where the parts of a producer begin, in order; beside it, where they end, and what."""
        self._parts: dict[str, list[tuple[int, V]]] = {}

    def unknown(self, producer: str, first: int, end: int) -> list[Range]:
        """Of which of these messages nothing was said."""
        known = self._known.get(producer)
        return known.missing(first, end) if known is not None else [(first, end)]

    def add(self, producer: str, first: int, end: int, value: V) -> None:
        """Say something of messages."""
        known = self._known.setdefault(producer, Ranges())
        starts = self._starts.setdefault(producer, [])
        parts = self._parts.setdefault(producer, [])
        for begin, until in known.missing(first, end):
            at = bisect_right(starts, begin)
            starts.insert(at, begin)
            parts.insert(at, (until, value))
            known.add(begin, until)

    def parts(self, producer: str, first: int, end: int) -> Iterator[tuple[int, V]]:
        """What is known of messages: of so many of them this; nothing of the others."""
        starts = self._starts.get(producer, [])
        for at in range(max(bisect_right(starts, first) - 1, 0), bisect_left(starts, end)):
            until, value = self._parts[producer][at]
            if until > first:
                yield min(until, end) - max(starts[at], first), value
