"""Performs blocking disk operations for an event loop: in threads, or inline if that is faster.

Passing a flush to a thread and getting its answer costs two switches between cores and a wait
for the interpreter lock, some hundred microseconds in all. A flush of a fast disk takes no
longer. So an operation may run inline as long as the recent ones of its kind were quick on
average, up to a time limit for each turn of the loop; the loop then blocks no longer than it
does for some large message sets. A slow operation sends the following ones to the threads until
enough of them were quick again. An unknown disk counts as slow.

asyncio's executor is not used: its two futures and a lock for each operation cost as much again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any

from watchkeeper.model.log import storage as effects
from watchkeeper.real.process.tasks import NOT_YET, Tasks

QUICK = (effects.Append, effects.Read, effects.ListFolder, effects.Touch)
"""They use the pagecache; passing them to a thread costs more than they do."""
SLOW = (
    effects.Flush,
    effects.Truncate,
    effects.CreateFile,
    effects.MakeFolder,
    effects.Delete,
    effects.Rename,
)
"""They wait for the disk."""
SMALL_BYTES = 2 * 1024 * 1024
"""A larger flush is not quick, however quick others were."""

MOST = 8
"""The most threads that wait for the disk; further operations are queued."""
QUICK_S = 0.001
"""Operations up to this duration are quick."""
SLOW_S = 0.01
"""The assumed duration before the first measurement."""
LONGEST_S = 0.005
"""The limit of inline time in one turn of the loop; the rest goes to threads."""
WEIGHT = 1 / 8
"""The weight of the last measurement in the moving average."""

_Operation = tuple[Any, asyncio.Future[Any]]


class DiskWorker:
    """Performs blocking operations for the event loop in which it is created."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        """`work` performs an operation, in any thread."""
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._operations: SimpleQueue[_Operation | None] = SimpleQueue()
        self._threads = 0
        self._under_way = 0
        self._average_s: dict[type[Any], float] = {}
        self._spent_s = 0.0
        """The inline time in this turn of the loop."""

    def serve(self, tasks: Tasks) -> None:
        """Answer the effects on storage of these tasks."""
        for quick in QUICK:
            tasks.answer_immediately(quick, self._work)
        for slow in SLOW:
            tasks.answer_later(slow, lambda effect, caller: self.submit(effect))
        tasks.answer_immediately(effects.Flush, self._flush_if_quick)

    def _flush_if_quick(self, effect: effects.Flush) -> Any:
        is_small = 0 <= effect.size_bytes <= SMALL_BYTES
        return self.do(effect) if is_small and self.is_quick(effects.Flush) else NOT_YET

    def is_quick(self, kind: type[Any]) -> bool:
        """Whether an operation of this kind should run inline now."""
        return self._spent_s < LONGEST_S and self._average_s.get(kind, SLOW_S) <= QUICK_S

    def do(self, effect: Any) -> Any:
        """Perform an operation inline; the loop blocks meanwhile."""
        began_s = perf_counter()
        answer = self._work(effect)
        took_s = perf_counter() - began_s
        if not self._spent_s:
            self._loop.call_soon(self._reset_spent)
        self._spent_s += took_s
        self._learn(effect, took_s)
        return answer

    def _reset_spent(self) -> None:
        self._spent_s = 0.0

    def submit(self, effect: Any) -> asyncio.Future[Any]:
        """Perform an operation in a thread; the future gets its answer."""
        if self._threads < min(self._under_way + 1, MOST):
            Thread(target=self._run, name=f"disk {self._threads + 1}", daemon=True).start()
            self._threads += 1
        answered: asyncio.Future[Any] = self._loop.create_future()
        self._operations.put((effect, answered))
        self._under_way += 1
        return answered

    def close(self) -> None:
        """End the threads when they have finished their operations."""
        for _ in range(self._threads):
            self._operations.put(None)
        self._threads = 0

    # --- in a thread -------------------------------------------------------------------

    def _run(self) -> None:
        with suppress(RuntimeError):  # the loop was closed, so no task waits any more
            while (operation := self._operations.get()) is not None:
                effect, answered = operation
                began_s = perf_counter()
                try:
                    settle, outcome = answered.set_result, self._work(effect)
                except Exception as error:
                    settle, outcome = answered.set_exception, error
                took_s = perf_counter() - began_s
                self._loop.call_soon_threadsafe(self._done, operation, took_s, settle, outcome)

    # --- in the loop -------------------------------------------------------------------

    def _done(
        self, operation: _Operation, took_s: float, settle: Callable[[Any], None], outcome: Any
    ) -> None:
        effect, answered = operation
        self._under_way -= 1
        self._learn(effect, took_s)
        if not answered.done():  # the waiting task may have been cancelled
            settle(outcome)

    def _learn(self, effect: Any, took_s: float) -> None:
        average_s = self._average_s.get(type(effect), SLOW_S)
        self._average_s[type(effect)] = average_s + WEIGHT * (took_s - average_s)
