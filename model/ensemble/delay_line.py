"""One direction of a slow link: calls are made later, in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from watchkeeper.model.ensemble.clock import Clock


class DelayLine:
    """Makes each call `delay_ms` later, and none before an earlier one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_ms = 0.0
        self._calls: deque[Callable[[], object]] = deque()
        self.delay_ms = 0.0

    def send(self, call: Callable[[], object]) -> None:
        """Make a call after the delay."""
        now_ms = self._clock.now_ms()
        self._due_ms = max(now_ms + self.delay_ms, self._due_ms)
        if self._due_ms <= now_ms and not self._calls:
            call()
        else:
            # A clock need not keep the order of calls that are due at one moment: each timer
            # delivers the oldest call, whichever it was set for.
            self._calls.append(call)
            self._clock.call_later(self._due_ms - now_ms, self._deliver)

    def _deliver(self) -> None:
        self._calls.popleft()()
