"""One direction of a connection, in which messages can be held up or delayed."""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable
from typing import Literal

Direction = Literal["to", "from"]
"""Seen from the client: to ZooKeeper, or from it."""

Tell = Callable[[str, int], object]
"""Counts what a fault did, as `model.faults.Effect.add` does."""


class Valve:
    """What stands in the way of all messages between a client and a server, one way."""

    __slots__ = ("cuts", "delays")

    def __init__(self) -> None:
        self.cuts: list[Tell] = []
        self.delays: list[tuple[float, Tell]] = []

    @property
    def is_shut(self) -> bool:
        """Whether nothing passes."""
        return bool(self.cuts)

    @property
    def is_clear(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.cuts and not self.delays

    def meet(self, message: bytes) -> float:
        """Count a message with whatever stops or slows it; by how many seconds it is late."""
        for tell in self.cuts:
            tell("messages held up", 1)
            tell("bytes held up", len(message))
        for _, tell in self.delays:
            tell("messages delayed", 1)
        return sum(by_s for by_s, _ in self.delays)


class Flow:
    """The messages under way in one direction; what is sent first arrives first.

    Its end is under way like a message: a cut holds up the news that a connection was
    closed just as it holds up a reply.
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
        """Whether there is somebody at the other end yet."""

    def send(self, message: bytes) -> None:
        """Let a message go its way."""
        if self.is_ready and not self._due and self._valve.is_clear:
            self._deliver(message)
            return
        self._due.append((self._loop.time() + self._valve.meet(message), message))
        self.move_on()

    def finish(self) -> None:
        """Let the end follow what has been sent."""
        last = self._due[-1][0] if self._due else 0.0
        self._due.append((last, None))
        self.move_on()

    def move_on(self) -> None:
        """Deliver what is due, unless nothing passes."""
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
        """Forget what is under way."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
