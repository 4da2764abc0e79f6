"""What threads say while a world unwinds them: nothing, since the run is over.

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

from watchkeeper.virtual.threads.errors import Teardown


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
