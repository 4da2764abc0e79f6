"""One direction of a connection, in which messages can be held up or delayed."""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable
from typing import Literal

Direction = Literal["to", "from"]
"""As seen from the client: to ZooKeeper, or from it."""

CountEffect = Callable[[str, int], object]
"""Counts effects of a fault: a name and a number (`FaultEffect.add`)."""


class Valve:
    """The cuts and delays of one direction between a client and a server."""

    __slots__ = ("cuts", "delays")

    def __init__(self) -> None:
        self.cuts: list[CountEffect] = []
        self.delays: list[tuple[float, CountEffect]] = []

    @property
    def is_shut(self) -> bool:
        """Whether nothing passes."""
        return bool(self.cuts)

    @property
    def is_clear(self) -> bool:
        """Whether there is neither a cut nor a delay."""
        return not self.cuts and not self.delays

    def delay_s_of(self, message: bytes) -> float:
        """Count a message for the faults that affect it; return its delay in seconds."""
        for count_effect in self.cuts:
            count_effect("messages held up", 1)
            count_effect("bytes held up", len(message))
        for _, count_effect in self.delays:
            count_effect("messages delayed", 1)
        return sum(by_s for by_s, _ in self.delays)


class Flow:
    """The messages under way in one direction; the order is kept.

    The end of the connection is queued like a message: a cut holds up a close just as it
    holds up a reply.
    """

    __slots__ = ("_deliver", "_due", "_end", "_loop", "_timer", "_valve", "is_ready")

    def __init__(
        self,
        loop: AbstractEventLoop,
        valve: Valve,
        deliver: Callable[[bytes], object],
        end: Callable[[], object],
    ) -> None:
        self._loop = loop
        self._valve = valve
        self._deliver = deliver
        self._end = end
        self._due: deque[tuple[float, bytes | None]] = deque()
        self._timer: TimerHandle | None = None
        self.is_ready = False
        """Whether the other end is connected yet."""

    def send(self, message: bytes) -> None:
        """Deliver a message now, or queue it."""
        # Without a fault nothing is queued and no timer is set: the proxy adds little latency.
        if self.is_ready and not self._due and self._valve.is_clear:
            self._deliver(message)
            return
        self._due.append((self._loop.time() + self._valve.delay_s_of(message), message))
        self.move_on()

    def finish(self) -> None:
        """Close the other end after all queued messages."""
        last = self._due[-1][0] if self._due else 0.0
        self._due.append((last, None))
        self.move_on()

    def move_on(self) -> None:
        """Deliver what is due, unless there is a cut."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._due and self.is_ready and not self._valve.is_shut:
            due, message = self._due[0]
            wait_s = due - self._loop.time()
            if wait_s > 0:
                self._timer = self._loop.call_later(wait_s, self.move_on)
                return
            self._due.popleft()
            if message is None:
                self._end()
            else:
                self._deliver(message)

    def drop(self) -> None:
        """Drop all queued messages."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
