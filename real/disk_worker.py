"""Does for an event loop what waits for the disk: in threads, or on the spot if that is quicker.

To hand a flush to a thread and to hear from it again costs two ways from one core to another
and a wait for the interpreter, a few hundred microseconds in all. A flush of a fast disk takes
no longer than that. So whatever may be done on the spot is done there as long as the last ones
of its kind were quick on the average, and for so long in one turn of the loop; it then stands
still for no longer than some large message sets cost it. One that was slow sends those after it
to the threads, until enough of them were quick again. At the beginning a disk is taken for a slow
one.

asyncio's own executor is not used: it has a future with a lock for each piece of work and
another one for the loop, which costs as much again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any

MOST = 8
"""So many threads may wait for the disk at once; whoever comes then waits for one of them."""
QUICK_S = 0.001
"""What takes no longer is quick."""
SLOW_S = 0.01
"""For how slow a disk is taken of which nothing is known."""
LONGEST_S = 0.005
"""Once so much time of one turn of the loop was spent on the spot, the rest goes to threads."""
WEIGHT = 1 / 8
"""Of what was measured last, in the average."""

_Asked = tuple[Any, asyncio.Future[Any]]


class DiskWorker:
    """What waits for the disk, done for the event loop in which this is made."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        """`work` answers whatever is asked, in any thread."""
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._threads = 0
        self._under_way = 0
        self._average_s: dict[type[Any], float] = {}
        self._spent_s = 0.0
        """On the spot, in this turn of the loop."""

    def is_quick(self, kind: type[Any]) -> bool:
        """Whether asks of a kind are better done on the spot just now."""
        return self._spent_s < LONGEST_S and self._average_s.get(kind, SLOW_S) <= QUICK_S

    def do(self, ask: Any) -> Any:
        """Do it on the spot; the loop stands still until it is done."""
        began_s = perf_counter()
        answer = self._work(ask)
        took_s = perf_counter() - began_s
        if not self._spent_s:
            self._loop.call_soon(self._turn)
        self._spent_s += took_s
        self._learn(ask, took_s)
        return answer

    def _turn(self) -> None:
        self._spent_s = 0.0

    def ask(self, ask: Any) -> asyncio.Future[Any]:
        """Have it done in a thread, beginning now; the future has what comes of it."""
        if self._threads < min(self._under_way + 1, MOST):
            Thread(target=self._live, name=f"disk {self._threads + 1}", daemon=True).start()
            self._threads += 1
        answered: asyncio.Future[Any] = self._loop.create_future()
        self._asked.put((ask, answered))
        self._under_way += 1
        return answered

    def close(self) -> None:
        """Let the threads end when they have done what they were asked for."""
        for _ in range(self._threads):
            self._asked.put(None)
        self._threads = 0

    # --- in a thread -------------------------------------------------------------------

    def _live(self) -> None:
        with suppress(RuntimeError):  # the loop was closed, so nobody waits any more
            while (asked := self._asked.get()) is not None:
                ask, answered = asked
                began_s = perf_counter()
                try:
                    settle, outcome = answered.set_result, self._work(ask)
                except Exception as error:
                    settle, outcome = answered.set_exception, error
                took_s = perf_counter() - began_s
                self._loop.call_soon_threadsafe(self._done, asked, took_s, settle, outcome)

    # --- in the loop -------------------------------------------------------------------

    def _done(
        self, asked: _Asked, took_s: float, settle: Callable[[Any], None], outcome: Any
    ) -> None:
        ask, answered = asked
        self._under_way -= 1
        self._learn(ask, took_s)
        if not answered.done():  # whoever has asked may have been ended
            settle(outcome)

    def _learn(self, ask: Any, took_s: float) -> None:
        average_s = self._average_s.get(type(ask), SLOW_S)
        self._average_s[type(ask)] = average_s + WEIGHT * (took_s - average_s)
