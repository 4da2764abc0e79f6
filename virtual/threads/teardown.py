"""The end of a world: its threads unwind, and say nothing, since the run is over.

A pool logs the exception that ends its workers, and a weak reference's callback that is unwound
is reported by the interpreter: hundreds of lines that no thread of the run has written. So do
the coroutines of an event loop that does not go on, when they are collected.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from watchkeeper.virtual.threads.errors import Teardown
from watchkeeper.virtual.threads.task import OVER, Task

if TYPE_CHECKING:
    from watchkeeper.virtual.threads.scheduler import Scheduler

MOST_THROWS = 1_000
"""How often a thread is made to unwind before it is given up."""
_given_up_on: list[Task] = []
"""Threads that did not unwind."""


def unwind_all(scheduler: Scheduler) -> None:
    """Unwind every thread that has not ended, and close what its process has open."""
    with silence():
        for process in scheduler.processes:
            for task in list(process.tasks):
                scheduler.running = task
                _unwind(task)
                scheduler.running = None
                close_coroutines(task.loop)
            process.close_files()


def _unwind(task: Task) -> None:
    task.is_doomed = True
    thread = task.greenlet
    for _ in range(MOST_THROWS):
        if thread is None or thread.dead:
            break
        thread.throw(Teardown)
    else:
        # It swallows what ends it: collected, it would be thrown into again.
        _given_up_on.append(task)
    task.state = OVER


@contextmanager
def silence() -> Iterator[None]:
    """Log nothing, and do not report that a callback was unwound."""
    level, hook = logging.root.manager.disable, sys.unraisablehook

    def report(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, Teardown):
            hook(unraisable)

    logging.disable(logging.CRITICAL)
    sys.unraisablehook = report
    try:
        yield
    finally:
        logging.disable(level)
        sys.unraisablehook = hook


def close_coroutines(loop: asyncio.AbstractEventLoop | None) -> None:
    """Close what a loop would have gone on with; what that raises has no reader."""
    for pending in () if loop is None else asyncio.all_tasks(loop):
        pending._log_destroy_pending = False  # type: ignore[attr-defined]
        coroutine = pending.get_coro()
        with suppress(BaseException):
            coroutine.close()
