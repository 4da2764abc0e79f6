"""What a long command says of itself on standard error: its progress, and what its parts took.

The progress is one line on a terminal, and a line every ten seconds elsewhere. `--quiet` turns it
off, and leaves the first line of a report; `--verbose` adds the seconds of each part.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Self

import click

EVERY_S = 0.2
SPARSE_S = 10.0
"""The time between two lines where standard error is no terminal, such as a log."""
CLEARED = "\r\033[K"
VARIABLE = "WATCHKEEPER_PROGRESS"
"""With the value 0 in the environment, no progress is printed."""
QUIET, VERBOSE = "watchkeeper.quiet", "watchkeeper.verbose"
"""The keys under which a command keeps its options `--quiet` and `--verbose`."""


def is_quiet() -> bool:
    """Return whether the command that runs has `--quiet`."""
    return _is_set(QUIET)


def _is_set(key: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(key))


@contextmanager
def timed(part: str) -> Iterator[None]:
    """With `--verbose`, say how many seconds a part of the command took."""
    began = monotonic()
    yield
    if _is_set(VERBOSE):
        print(f"{part}: {monotonic() - began:.2f} s", file=sys.stderr, flush=True)


class ProgressLine:
    """One line on standard error that is overwritten; where that is no terminal, few lines."""

    def __init__(self, *, after_s: float = 0.0, every_s: float = EVERY_S) -> None:
        self.is_silent = is_quiet() or os.environ.get(VARIABLE) == "0"
        self.is_terminal = sys.stderr.isatty()
        if not self.is_terminal:
            after_s = every_s = max(after_s, every_s, SPARSE_S)
        self.every_s = every_s
        self.due_s = monotonic() + after_s
        """When the line is written next."""
        self.is_written = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def is_due(self) -> bool:
        """Whether it is time to write the line again."""
        return not self.is_silent and monotonic() >= self.due_s

    def say(self, text: str) -> None:
        """Write the line, over the one before; where it stays, only when it is time."""
        if self.is_silent:
            return
        if self.is_terminal:
            self.is_written = True
            print(f"{CLEARED}{text}", end="", file=sys.stderr, flush=True)
        elif self.is_due:
            print(text, file=sys.stderr, flush=True)
        else:
            return
        self.due_s = monotonic() + self.every_s

    def end(self) -> None:
        """Clear the line."""
        if self.is_written:
            print(CLEARED, end="", file=sys.stderr, flush=True)
            self.is_written = False
