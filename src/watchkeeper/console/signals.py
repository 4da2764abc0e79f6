"""What Ctrl-C and SIGTERM do to a command.

While modules are imported there is nothing to keep, and libraries turn an exception in the
middle of their import into all kinds of errors: the command ends at once. Later, Ctrl-C is a
KeyboardInterrupt; `came` is true even where a library has turned it into another error. Work
that looks at `came` by itself ends in order at the first Ctrl-C, and at once at the second.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = "interrupted"
CODE = 2


class Interrupts:
    """Whether an interrupt has come, and what the next one does."""

    def __init__(self) -> None:
        self.came = False
        self.ends_at_once = False
        self.is_over = False
        self._is_noted = False

    def listen(self) -> None:
        """Let Ctrl-C end the command at once, unless the process ignores it."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._pressed)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._pressed)
        self.ends_at_once = True

    def raise_from_now_on(self) -> None:
        """Let Ctrl-C raise KeyboardInterrupt: there is something to keep now."""
        self.ends_at_once = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Let the first Ctrl-C set `came` and nothing else; the second one raises."""
        self._is_noted = True
        try:
            yield
        finally:
            self._is_noted = False

    def ignore_from_now_on(self) -> None:
        """Ignore Ctrl-C: the command has ended, and only the process is left."""
        self.is_over = True

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        if self.is_over:
            return
        is_first, self.came = not self.came, True
        if self._is_noted and is_first:
            return
        if self.ends_at_once:
            _leave()
        raise KeyboardInterrupt


def _leave() -> None:
    """End the process at once; nothing is under way."""
    error = f'{{"error": {{"code": {CODE}, "message": "{INTERRUPTED}", "problems": []}}}}\n'
    try:
        os.write(2, f"{INTERRUPTED}\n".encode())
        if "--json" in sys.argv:
            os.write(1, error.encode())
    except OSError:
        pass  # both outputs are closed
    os._exit(CODE)


INTERRUPTS = Interrupts()
"""The signal handlers of this process."""
