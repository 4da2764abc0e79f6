"""Which world runs in this thread of the operating system.

Each patched name reads `here.scheduler` first. It is None in every thread that runs no world, and
there the name does what it always did.
"""

from __future__ import annotations

from _thread import _local as real_local
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchkeeper.virtual.threads.scheduler import Scheduler
    from watchkeeper.virtual.threads.task import Task


class Here(real_local):
    """What one thread of the operating system runs: greenlets share what is local to theirs."""

    scheduler: Scheduler | None = None
    """The scheduler whose world runs in it, if one does."""


here = Here()
"""Locks, clocks and sockets read it at each operation: an attribute costs half of a call."""


def current_scheduler() -> Scheduler | None:
    """The scheduler whose world runs in this thread of the operating system, if one does."""
    return here.scheduler


def current_task() -> Task | None:
    """The virtual thread that runs now, if one does."""
    scheduler = here.scheduler
    return None if scheduler is None else scheduler.running


def enter(scheduler: Scheduler) -> None:
    """Let a scheduler's world run in this thread; raises RuntimeError if another one does."""
    if here.scheduler is not None:
        raise RuntimeError("a world in virtual time runs here already; worlds do not nest")
    here.scheduler = scheduler


def leave() -> None:
    """No world runs in this thread any more."""
    here.scheduler = None
