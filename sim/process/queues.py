"""A queue between the tasks of one process: bounded, and first come, first served."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from watchkeeper.sim.engine.kernel import Kernel

Reply = Callable[[Any], object]


class _Waiting:
    """A task that waits for room, or for an item."""

    __slots__ = ("is_over", "item", "reply", "size")

    def __init__(self, reply: Reply, item: Any = None, size: int = 0) -> None:
        self.reply = reply
        self.item = item
        self.size = size
        self.is_over = False
        """Served, or given up."""


class _Held(NamedTuple):
    item: Any
    size: int


class Queue:
    """Items of a size each, no more than a bound at once; one that is larger goes in alone."""

    __slots__ = ("_bound", "_getters", "_held", "_kernel", "_putters", "_size")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._held: deque[_Held] = deque()
        self._size = 0
        self._bound = 0
        self._putters: deque[_Waiting] = deque()
        self._getters: deque[_Waiting] = deque()

    def put(self, item: Any, size: int, bound: int, timeout_ms: int | None, reply: Reply) -> None:
        """Put an item in when there is room; answered with whether there was in time."""
        self._bound = bound
        waiting = _Waiting(reply, item, size)
        self._putters.append(waiting)
        self._let_in()
        self._give_up(waiting, timeout_ms, False)

    def take(self, timeout_ms: int | None, reply: Reply) -> None:
        """Take the oldest item when there is one; answered with None if none came in time."""
        waiting = _Waiting(reply)
        self._getters.append(waiting)
        self._hand_out()
        self._let_in()
        self._give_up(waiting, timeout_ms, None)

    def drain(self) -> tuple[Any, ...]:
        """Take all items; tasks that wait for room then get it."""
        items = tuple(held.item for held in self._held)
        self._held.clear()
        self._size = 0
        self._let_in()
        return items

    def _give_up(self, waiting: _Waiting, timeout_ms: int | None, answer: Any) -> None:
        if waiting.is_over or timeout_ms is None:
            return

        def late(_: Any) -> None:
            if not waiting.is_over:
                waiting.is_over = True
                waiting.reply(answer)
                self._let_in()

        if timeout_ms == 0:
            late(None)
        else:
            self._kernel.after(timeout_ms * 1000, late, None)

    def _let_in(self) -> None:
        """Let waiting items in, in order, as long as there is room."""
        while self._putters:
            first = self._putters[0]
            if not first.is_over:
                if self._held and self._size + first.size > self._bound:
                    return
                first.is_over = True
                self._held.append(_Held(first.item, first.size))
                self._size += first.size
                self._answer(first, True)
            self._putters.popleft()
            self._hand_out()

    def _hand_out(self) -> None:
        while self._getters and self._held:
            first = self._getters.popleft()
            if not first.is_over:
                first.is_over = True
                held = self._held.popleft()
                self._size -= held.size
                self._answer(first, held.item)

    def _answer(self, waiting: _Waiting, answer: Any) -> None:
        """Answer at this moment, but after the task that runs now."""
        self._kernel.at(self._kernel.now_us, waiting.reply, answer)
