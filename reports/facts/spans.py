"""Spans of time in a run, and how they are joined from their two ends."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from watchkeeper.model.trace.trace import Event

K = TypeVar("K", bound=Hashable)


class Span(NamedTuple):
    """A span of a run, from one event of its trace to another.

    `last_seq` is the event that ended it, or the last of the trace. Events of one moment are
    still ordered, so a span may have no duration.
    """

    what: str
    start_us: int
    end_us: int
    first_seq: int
    last_seq: int

    @property
    def duration_us(self) -> int:
        """How long it took."""
        return self.end_us - self.start_us

    def covers(self, other: Span) -> bool:
        """Whether the other span lies within this one."""
        return self.first_seq <= other.first_seq and other.last_seq <= self.last_seq


class SpanMaker(Generic[K]):
    """Builds spans while a trace is read; each key has at most one open span."""

    def __init__(self) -> None:
        self.done: dict[K, list[Span]] = {}
        self._open: dict[K, tuple[str, Event]] = {}

    def begin(self, key: K, what: str, event: Event) -> None:
        """Open a span, unless one of its key is open."""
        self._open.setdefault(key, (what, event))

    def end(self, key: K, event: Event) -> None:
        """Close the open span of this key, if there is one."""
        if key in self._open:
            what, began = self._open.pop(key)
            span = Span(what, began.t_us, event.t_us, began.seq, event.seq)
            self.done.setdefault(key, []).append(span)

    def change(self, key: K, what: str, event: Event) -> None:
        """Close the span of this key and open another, unless its value is unchanged."""
        if key in self._open and self._open[key][0] != what:
            self.end(key, event)
        self.begin(key, what, event)

    def end_all(self, last: Event | None) -> dict[K, list[Span]]:
        """The trace is read to its last event; every span there was, by key."""
        if last is not None:
            for key in list(self._open):
                self.end(key, last)
        return self.done

    def open_keys(self) -> list[K]:
        """The keys that have a span open."""
        return list(self._open)
