"""The end of the process of a command.

Python frees every object, one by one, before a process ends. After a command that is a fifth of
the whole time of a short run, and the system frees the memory anyway. So the process ends as
one that `multiprocessing` has forked does: functions that were registered for the end run, and
what was printed is written.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading


def end_process(code: int) -> None:
    """End the process, if nothing is left that only Python's own end would do; else return."""
    if _is_watched() or threading.active_count() > 1 or sys.flags.interactive:
        return
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return  # Python's own end says so
    os._exit(code)


def _is_watched() -> bool:
    """Whether a profiler or a debugger wants to see the end, to write what it has found."""
    if sys.getprofile() is not None or sys.gettrace() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)  # since Python 3.12
    return monitoring is not None and any(map(monitoring.get_tool, range(6)))
