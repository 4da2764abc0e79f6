"""What threads say while a world unwinds them: nothing, since the run is over.

A pool logs the exception that ends its workers, and a weak reference's callback that is unwound
is reported by the interpreter: hundreds of lines that no thread of the run has written.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
