"""Which world runs in this thread of the operating system.

Each patched name asks this first. The answer is None in every thread that runs no world, and
there the name does what it always did.
"""

from __future__ import annotations

from _thread import get_ident as os_thread_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchkeeper.virtual.threads.scheduler import Scheduler
    from watchkeeper.virtual.threads.task import Task

_running: dict[int, Scheduler] = {}
"""Thread of the operating system -> the scheduler whose world runs in it."""


def current_scheduler() -> Scheduler | None:
    """The scheduler whose world runs in this thread of the operating system, if one does."""
    if not _running:
        return None
    return _running.get(os_thread_ident())


def current_task() -> Task | None:
    """The virtual thread that runs now, if one does."""
    if not _running:
        return None
    scheduler = _running.get(os_thread_ident())
    return None if scheduler is None else scheduler.running


def enter(scheduler: Scheduler) -> None:
    """Let a scheduler's world run in this thread; raises RuntimeError if another one does."""
    if os_thread_ident() in _running:
        raise RuntimeError("a world in virtual time runs here already; worlds do not nest")
    _running[os_thread_ident()] = scheduler


def leave() -> None:
    """No world runs in this thread any more."""
    del _running[os_thread_ident()]
