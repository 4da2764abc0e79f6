"""The line on a terminal that says how far something long has come."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Self

EVERY_S = 0.2
CLEARED = "\r\033[K"


class ProgressLine:
    """One line on standard error, written over and over; none where that is no terminal."""

    def __init__(self, *, after_s: float = 0.0, every_s: float = EVERY_S) -> None:
        self.is_shown = sys.stderr.isatty()
        self.every_s = every_s
        self.due_s = monotonic() + after_s
        """When something is said next."""
        self.has_said = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def is_due(self) -> bool:
        """Whether it is time to say something."""
        return self.is_shown and monotonic() >= self.due_s

    def say(self, what: str) -> None:
        """Say it, in place of what stands there."""
        if self.is_shown:
            self.due_s = monotonic() + self.every_s
            self.has_said = True
            print(f"{CLEARED}{what}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Take the line away."""
        if self.has_said:
            print(CLEARED, end="", file=sys.stderr, flush=True)
            self.has_said = False
