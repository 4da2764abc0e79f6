"""Where in the user's code a request, a section and an event of a world come from.

A client of kazoo queues a request in the thread that calls it, and another thread sends it later,
with a number. So the line is found when the request is queued, and is known by session and number
once it is sent. The line is the innermost one that belongs to no library: the call of
`lock.acquire()`, and not kazoo's code below it. A request of a library's own thread has none.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from functools import cache, lru_cache
from types import FrameType
from typing import Any

import watchkeeper
from watchkeeper.virtual.threads.current import here

QUEUED = "_watchkeeper_line"
"""The attribute of a result of kazoo that has the line of its request."""
LONGEST_CODE = 100


def _libraries() -> tuple[str, ...]:
    """The folders whose code is not the user's."""
    paths = sysconfig.get_paths()
    places = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    places.add(os.path.dirname(watchkeeper.__file__))
    return tuple(f"{place}{os.sep}" for place in sorted(places))


LIBRARIES = _libraries()


_of_library: dict[str, bool] = {}
"""File -> whether it is of a library; each request looks at some ten frames."""


def _is_library(file: str) -> bool:
    return file.startswith(("<", *LIBRARIES)) or f"{os.sep}site-packages{os.sep}" in file


def user_line() -> str:
    """The line of the user's code that runs, as `test_lock.py:12: lock.acquire()`; "" if none."""
    frame: FrameType | None = sys._getframe(2)  # this function's callers are of this package
    known = _of_library
    while frame is not None:
        file = frame.f_code.co_filename
        of_library = known.get(file)
        if of_library is None:
            of_library = known[file] = _is_library(file)
        if not of_library:
            return _text(file, frame.f_lineno)
        frame = frame.f_back
    return ""


@lru_cache(maxsize=4096)
def _text(file: str, number: int) -> str:
    code = linecache.getline(file, number).strip()
    shown = code if len(code) <= LONGEST_CODE else f"{code[:LONGEST_CODE]}..."
    return f"{os.path.basename(file)}:{number}: {shown}".removesuffix(": ")


@cache
def put() -> None:
    """Let kazoo's clients note the lines of their requests; a second time does nothing."""
    from kazoo.client import KazooClient
    from kazoo.protocol.connection import ConnectionHandler

    KazooClient._call = _noting(KazooClient._call)
    ConnectionHandler._submit = _sending(ConnectionHandler._submit)


def _noting(original: Any) -> Any:
    def _call(client: Any, request: Any, async_object: Any) -> Any:
        # Some requests, as the one that ends a session, have no result.
        if async_object is not None and here.scheduler is not None:
            async_object._watchkeeper_line = user_line()
        return original(client, request, async_object)

    return _call


def _sending(original: Any) -> Any:
    def _submit(connection: Any, request: Any, timeout: Any, xid: Any = None) -> Any:
        scheduler = here.scheduler
        client = connection.client
        queue = client._queue
        if scheduler is not None and xid and queue and queue[0][0] is request:
            line = getattr(queue[0][1], QUEUED, "")
            if line:
                scheduler.lines[client._session_id, xid] = line
        return original(connection, request, timeout, xid)

    return _submit
