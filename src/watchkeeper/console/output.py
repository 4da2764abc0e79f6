"""Standard output and standard error of a command.

A reader such as `head` may close its pipe early. Later output is dropped, and the command goes
on and ends as usual. Letters that the encoding of the terminal lacks are written as escapes.
"""

from __future__ import annotations

import io
import os
from typing import Any, TextIO


class OutputLost(OSError):
    """Standard output cannot be written, and not because its reader closed the pipe."""

    def __str__(self) -> str:
        return f"standard output cannot be written: {self.strerror}"


def patient(file: TextIO | None, *, reports_loss: bool) -> TextIO:
    """Return the same output, but one that survives a reader that closes its pipe.

    With `reports_loss`, any other failure raises OutputLost, once.
    """
    if file is None:  # it was closed before the command began
        return open(os.devnull, "w")
    try:
        raw = _Outlet(file.fileno(), reports_loss=reports_loss)
    except (OSError, ValueError):  # it is no file, as in a test
        return file
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffer, file.encoding, "backslashreplace", line_buffering=bool(file.line_buffering)
    )


class _Outlet(io.FileIO):
    """A file descriptor that drops its input after the first failure."""

    def __init__(self, descriptor: int, *, reports_loss: bool) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._reports_loss = reports_loss
        self._is_lost = False

    def write(self, data: Any) -> int:
        """Write the data, or drop it after a failure."""
        if self._is_lost:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._is_lost = True
            if self._reports_loss and not isinstance(error, BrokenPipeError):
                raise OutputLost(error.errno, error.strerror) from None
            return len(data)
