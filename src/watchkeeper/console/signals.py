"""Ctrl-C, as the command hears it; a request to end (SIGTERM) is heard like it.

While modules are loaded nothing has begun that could be spoilt, and libraries make all
kinds of errors of an exception in the middle of their import: the command ends at once.
Later, Ctrl-C is a KeyboardInterrupt; `came` says so even where somebody made another
error of it.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = "interrupted"
CODE = 2


class Interrupts:
    """Whether Ctrl-C was pressed, and what it does."""

    def __init__(self) -> None:
        self.came = False
        self.ends_at_once = False
        self.is_over = False

    def listen(self) -> None:
        """From now on Ctrl-C ends the command at once, unless the process ignores it."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._pressed)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._pressed)
        self.ends_at_once = True

    def raise_from_now_on(self) -> None:
        """From now on there is something to be kept: Ctrl-C raises KeyboardInterrupt."""
        self.ends_at_once = False

    def ignore_from_now_on(self) -> None:
        """The command has ended, and only the process is left."""
        self.is_over = True

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        if self.is_over:
            return
        self.came = True
        if self.ends_at_once:
            _leave()
        raise KeyboardInterrupt


def _leave() -> None:
    """End the process without a further word; nothing is under way."""
    said = f'{{"error": {{"code": {CODE}, "said": "{INTERRUPTED}", "problems": []}}}}\n'
    try:
        os.write(2, f"{INTERRUPTED}\n".encode())
        if "--json" in sys.argv:
            os.write(1, said.encode())
    except OSError:
        pass  # nobody listens
    os._exit(CODE)


INTERRUPTS = Interrupts()
"""There is one keyboard."""
