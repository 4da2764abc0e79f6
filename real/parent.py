"""A process that ends with whoever started it."""

from __future__ import annotations

import ctypes
import signal
import sys

SET_PARENT_DEATH_SIGNAL = 1


def end_with_parent() -> None:
    """Ask the kernel to kill this process with its parent, even while it stands still.

    A stopped process cannot see that its standard input is closed. Elsewhere than on Linux
    that has to wait until somebody lets it go on.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
