"""What is known of messages by their producers and numbers, a range at a time."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

from model.ranges import Range, Ranges

V = TypeVar("V")


class Numbered(Generic[V]):
    """A value for each message; what is said of it first stays."""

    def __init__(self) -> None:
        self._known: dict[str, Ranges] = {}
        self._parts: dict[str, list[tuple[int, int, V]]] = {}

    def unknown(self, producer: str, first: int, end: int) -> list[Range]:
        """Of which of these messages nothing was said."""
        known = self._known.get(producer)
        return known.missing(first, end) if known is not None else [(first, end)]

    def add(self, producer: str, first: int, end: int, value: V) -> None:
        """Say something of messages."""
        known = self._known.setdefault(producer, Ranges())
        parts = self._parts.setdefault(producer, [])
        for begin, until in known.missing(first, end):
            insort(parts, (begin, until, value), key=_first)
            known.add(begin, until)

    def parts(self, producer: str, first: int, end: int) -> Iterator[tuple[int, V]]:
        """What is known of messages: of so many of them this; nothing of the others."""
        parts = self._parts.get(producer, [])
        at = max(bisect_right(parts, first, key=_first) - 1, 0)
        for begin, until, value in parts[at:]:
            if begin >= end:
                return
            if until > first:
                yield min(until, end) - max(begin, first), value


def _first(part: tuple[int, int, V]) -> int:
    return part[0]
