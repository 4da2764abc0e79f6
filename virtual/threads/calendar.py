"""Calls at moments of virtual time, in order."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush


class Timer:
    """A call at a moment, unless it is cancelled."""

    __slots__ = ("at_ns", "call")

    def __init__(self, at_ns: int, call: Callable[[], object]) -> None:
        self.at_ns = at_ns
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        """Do not make the call."""
        self.call = None


class Calendar:
    """The calls that are to be made, by moment and insertion."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, Timer]] = []
        """A heap of moment, number and call; a cancelled call stays until its moment."""
        self._added = 0

    def add(self, at_ns: int, call: Callable[[], object]) -> Timer:
        """Make a call at a moment."""
        self._added += 1
        timer = Timer(at_ns, call)
        heappush(self.entries, (at_ns, self._added, timer))
        return timer

    def make_calls(self, now_ns: int) -> None:
        """Make the calls that are due, and those that they add for this moment."""
        entries = self.entries
        while entries and entries[0][0] <= now_ns:
            timer = heappop(entries)[2]
            call = timer.call
            if call is not None:
                timer.call = None
                call()

    def is_due(self, now_ns: int) -> bool:
        """Whether a call may be due."""
        return bool(self.entries) and self.entries[0][0] <= now_ns

    def next_ns(self) -> int | None:
        """The moment of the next call; None if there is none."""
        entries = self.entries
        while entries and entries[0][2].call is None:
            heappop(entries)
        return entries[0][0] if entries else None

    def clear(self) -> None:
        """Make no call any more."""
        self.entries.clear()
