"""Calls the callbacks of an application, one at a time and in order, in a thread of its own.

If the application runs in an event loop, the callbacks run in that loop, and the thread waits
for them. A callback that raises counts as one that has returned: its exception is logged and
counted. There is no limit to the time of a callback; a slow one is logged while it still runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from inspect import isawaitable
from queue import SimpleQueue
from threading import Thread, Timer, get_ident
from time import monotonic
from typing import Any

Job = Callable[[], None]


class Callbacks:
    """The thread of the callbacks, and counts of errors and slow calls."""

    def __init__(self, name: str, logger: logging.Logger, slow_after_s: float) -> None:
        self.name = name
        self.logger = logger
        self.slow_after_s = slow_after_s
        self.loop: asyncio.AbstractEventLoop | None = None
        """Where the callbacks run; None for the thread itself."""
        self.failed: Job = lambda: None
        """Called after a callback has raised."""
        self.errors = 0
        self.slow = 0
        self.longest_s = 0.0
        self._task: asyncio.Task[Any] | None = None
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=f"{name} callbacks", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, patience_s: float) -> bool:
        """Run the jobs that are queued, then end; return whether the thread ended in time."""
        self._jobs.put(None)
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    def put(self, job: Job) -> None:
        """Queue a job for the thread."""
        self._jobs.put(job)

    @property
    def is_inside(self) -> bool:
        """Whether the calling thread runs a callback."""
        if self.loop is None:
            return get_ident() == self._thread.ident
        try:
            return self._task is not None and asyncio.current_task() is self._task
        except RuntimeError:  # no loop runs in this thread
            return False

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    # --- in the thread ------------------------------------------------------------------

    def call(self, what: str, callback: Callable[[Any], Any], argument: Any) -> None:
        """Call a callback, and return when it has returned or raised."""
        began = monotonic()
        watch = Timer(self.slow_after_s, self._is_slow, (what,))
        watch.daemon = True
        watch.start()
        try:
            self._call(callback, argument)
        except BaseException:
            self.errors += 1
            self.logger.exception(
                "%s: %s raised; it counts as returned, and the member goes on", self.name, what
            )
            self.failed()
        finally:
            watch.cancel()
            watch.join()
        took_s = monotonic() - began
        self.longest_s = max(self.longest_s, took_s)
        if took_s > self.slow_after_s:
            self.logger.warning("%s: %s has returned after %.3f s", self.name, what, took_s)

    def _is_slow(self, what: str) -> None:
        self.slow += 1
        self.logger.warning(
            "%s: %s has not returned for %.3f s; nothing is released before it has, and a "
            "session that ends meanwhile takes the claims along",
            self.name,
            what,
            self.slow_after_s,
        )

    def _call(self, callback: Callable[[Any], Any], argument: Any) -> None:
        if self.loop is None:
            callback(argument)
            return
        asyncio.run_coroutine_threadsafe(self._in_loop(callback, argument), self.loop).result()

    async def _in_loop(self, callback: Callable[[Any], Any], argument: Any) -> None:
        self._task = asyncio.current_task()
        try:
            result = callback(argument)
            if isawaitable(result):
                await result
        finally:
            self._task = None
