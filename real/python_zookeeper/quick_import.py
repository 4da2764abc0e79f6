"""Imports that a server waits for before it can serve, at half of their cost.

Most of the time until a new process serves is the import of its modules. Meanwhile there is no
garbage, so the collector only looks at what stays. And asyncio imports `ssl`, which it does
without if there is none; the server speaks no TLS.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def quick_import() -> Iterator[None]:
    """Import what the block imports quickly; later imports find everything as usual."""
    modules: dict[str, Any] = sys.modules
    skips_tls = modules.keys().isdisjoint(("ssl", "asyncio"))
    if skips_tls:
        modules["ssl"] = None  # an import of it fails, as where Python has none
    gc.disable()
    try:
        yield
    finally:
        if skips_tls:
            del modules["ssl"]
        gc.freeze()  # what was imported stays: no later collection looks at it
        gc.enable()
