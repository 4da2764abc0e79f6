"""Calls at moments of virtual time, in order."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush


class Timer:
    """A call at a moment, unless it is cancelled."""

    __slots__ = ("_call", "at_ns")

    def __init__(self, at_ns: int, call: Callable[[], object]) -> None:
        self.at_ns = at_ns
        self._call: Callable[[], object] | None = call

    def __call__(self) -> None:
        """Make the call, at its moment."""
        call, self._call = self._call, None
        if call is not None:
            call()

    @property
    def is_over(self) -> bool:
        """Whether the call was made or is cancelled."""
        return self._call is None

    def cancel(self) -> None:
        """Do not make the call."""
        self._call = None


Entry = tuple[int, int, Callable[[], object]]
"""Moment, number and call."""


class Calendar:
    """The calls that are to be made, by moment and insertion."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        """A heap; a cancelled timer stays until its moment."""
        self.added = 0
        """How many were added; each has the number of its addition."""

    def add(self, at_ns: int, call: Callable[[], object]) -> None:
        """Make a call at a moment."""
        self.added += 1
        heappush(self.entries, (at_ns, self.added, call))

    def is_due(self, now_ns: int) -> bool:
        """Whether a call may be due."""
        return bool(self.entries) and self.entries[0][0] <= now_ns

    def next_ns(self) -> int | None:
        """The moment of the next call; None if there is none."""
        entries = self.entries
        while entries:
            at_ns, _, call = entries[0]
            if type(call) is not Timer or call._call is not None:
                return at_ns
            heappop(entries)
        return None

    def clear(self) -> None:
        """Make no call any more."""
        self.entries.clear()
