"""A bounded first-in, first-out queue between the tasks of one process.

All methods run in one event loop, so no other task runs between two awaits. Waiting tasks
are served strictly in order: a small item never overtakes a large one that waits for room.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import Any, NamedTuple


class _Waiting(NamedTuple):
    """A waiting task; its future is done when the task is served, timed out or cancelled."""

    answered: asyncio.Future[Any]
    item: Any = None
    size: int = 0
    bound: int = 0


class Queue:
    """Items with sizes, limited by their total size; a larger item enters an empty queue."""

    __slots__ = ("_getters", "_held", "_putters", "_size")

    def __init__(self) -> None:
        self._held: deque[tuple[Any, int]] = deque()
        self._size = 0
        self._putters: deque[_Waiting] = deque()
        self._getters: deque[_Waiting] = deque()

    def put_at_once(self, item: Any, size: int, bound: int) -> bool:
        """Put an item if there is room and no task waits for room; return whether it was put."""
        if self._putters or not self._has_room(size, bound):
            return False
        self._hold(item, size)
        return True

    def take_at_once(self) -> Any:
        """Take the oldest item; None if the queue is empty."""
        return self._take() if self._held else None

    def put(self, item: Any, size: int, bound: int, timeout_ms: int | None) -> Awaitable[bool]:
        """Put an item once there is room; the result is whether that was so in time.

        The caller is queued when this method is called, not when the result is awaited.
        """
        if self.put_at_once(item, size, bound):
            return _known(True)
        if timeout_ms == 0:
            return _known(False)
        waiting = _Waiting(asyncio.get_running_loop().create_future(), item, size, bound)
        self._putters.append(waiting)
        return self._answer(waiting, timeout_ms, False)

    def take(self, timeout_ms: int | None) -> Awaitable[Any]:
        """Take the oldest item once there is one; the result is None after the timeout."""
        item = self.take_at_once()
        if item is not None or timeout_ms == 0:
            return _known(item)
        waiting = _Waiting(asyncio.get_running_loop().create_future())
        self._getters.append(waiting)
        return self._answer(waiting, timeout_ms, None)

    def drain(self) -> tuple[Any, ...]:
        """Take all items; waiting tasks then get the room."""
        items = tuple(item for item, _ in self._held)
        self._held.clear()
        self._size = 0
        self._let_in()
        return items

    async def _answer(self, waiting: _Waiting, timeout_ms: int | None, late: Any) -> Any:
        """Wait in line; a task that gives up lets those behind it proceed."""
        answered = waiting.answered
        timer = None
        if timeout_ms is not None:
            timer = answered.get_loop().call_later(
                timeout_ms / 1000, self._give_up, answered, late
            )
        try:
            return await answered
        finally:
            if timer is not None:
                timer.cancel()
            if answered.cancelled():
                self._let_in()

    def _give_up(self, answered: asyncio.Future[Any], late: Any) -> None:
        if not answered.done():
            answered.set_result(late)
            self._let_in()

    def _has_room(self, size: int, bound: int) -> bool:
        return not self._held or self._size + size <= bound

    def _let_in(self) -> None:
        """Admit waiting items in order as long as there is room."""
        while self._putters:
            first = self._putters[0]
            if not first.answered.done():
                if not self._has_room(first.size, first.bound):
                    return
                first.answered.set_result(True)
                self._hold(first.item, first.size)
            self._putters.popleft()

    def _hold(self, item: Any, size: int) -> None:
        """Store an item, or pass it to the task that has waited longest for one."""
        while self._getters:
            first = self._getters.popleft()
            if not first.answered.done():
                first.answered.set_result(item)
                return
        self._held.append((item, size))
        self._size += size

    def _take(self) -> Any:
        item, size = self._held.popleft()
        self._size -= size
        self._let_in()
        return item


def _known(answer: Any) -> asyncio.Future[Any]:
    answered = asyncio.get_running_loop().create_future()
    answered.set_result(answer)
    return answered
