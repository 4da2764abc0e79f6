"""Standard output and standard error as a command needs them.

A reader that has seen enough closes its pipe. What is written after that is dropped, and
the command goes on and ends as if somebody had read it. Letters that the encoding of the
terminal lacks are written as escapes.
"""

from __future__ import annotations

import io
import os
from typing import Any, TextIO


class OutputLost(OSError):
    """Standard output cannot be written, and not because its reader has gone."""

    def __str__(self) -> str:
        return f"standard output cannot be written: {self.strerror}"


def patient(file: TextIO | None, *, tells: bool) -> TextIO:
    """The same output, but one that bears a reader who goes.

    Where it `tells`, it raises OutputLost, once, for any other failure.
    """
    if file is None:  # it was closed before the command began
        return open(os.devnull, "w")
    try:
        raw = _Outlet(file.fileno(), tells=tells)
    except (OSError, ValueError):  # it is no file, as in a test
        return file
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffer, file.encoding, "backslashreplace", line_buffering=bool(file.line_buffering)
    )


class _Outlet(io.FileIO):
    """A file descriptor. After the first failure, what is written to it is dropped."""

    def __init__(self, descriptor: int, *, tells: bool) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._tells = tells
        self._is_lost = False

    def write(self, data: Any) -> int:
        """Write, or drop it."""
        if self._is_lost:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._is_lost = True
            if self._tells and not isinstance(error, BrokenPipeError):
                raise OutputLost(error.errno, error.strerror) from None
            return len(data)
