"""When sessions end: the leader's table of signs of life.

A session ends when nothing was received from its client for its timeout. The leader looks
once a tick: a sign of life at `t` moves the end to the next tick after `t + timeout`, so a
session lives for up to a tick longer than its timeout, and ends together with others. Without
a leader nothing ends, and a new leader gives every session its whole timeout again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from watchkeeper.model.ensemble.clock import Clock, Timer


class Sessions:
    """The sessions that may expire."""

    def __init__(self, clock: Clock, tick_ms: int, expire: Callable[[int], None]) -> None:
        """`expire` ends a session that is overdue."""
        self._clock = clock
        self._tick_ms = tick_ms
        self._expire = expire
        self._due: dict[int, int] = {}
        """Session -> the number of the tick at which it ends."""
        self._timeouts: dict[int, int] = {}
        self._buckets: dict[int, set[int]] = {}
        self._timer: Timer | None = None
        self.is_running = True

    def __contains__(self, session: int) -> bool:
        return session in self._due

    def __len__(self) -> int:
        return len(self._due)

    def timeout_ms(self, session: int) -> int:
        """The timeout of a session."""
        return self._timeouts[session]

    def by_tick(self) -> list[tuple[int, list[int]]]:
        """The sessions that end at each tick, as the word `dump` prints them."""
        return [
            (tick * self._tick_ms, sorted(all_)) for tick, all_ in sorted(self._buckets.items())
        ]

    def add(self, session: int, timeout_ms: int) -> None:
        """Begin to watch over a session, or give it another timeout."""
        self._timeouts[session] = timeout_ms
        self.touch(session)

    def touch(self, session: int) -> None:
        """A sign of life: the session gets its whole timeout from now."""
        timeout_ms = self._timeouts.get(session)
        if timeout_ms is None:
            return
        due = int(self._clock.now_ms() + timeout_ms) // self._tick_ms + 1
        before = self._due.get(session)
        if before == due:
            return
        if before is not None:
            self._leave_bucket(session, before)
        self._due[session] = due
        self._buckets.setdefault(due, set()).add(session)
        if self._timer is None:
            self._look_later()

    def _leave_bucket(self, session: int, tick: int) -> None:
        bucket = self._buckets[tick]
        bucket.discard(session)
        if not bucket:
            del self._buckets[tick]

    def remove(self, session: int) -> None:
        """Forget a session that has ended."""
        due = self._due.pop(session, None)
        self._timeouts.pop(session, None)
        if due is not None:
            self._leave_bucket(session, due)

    def restart(self, sessions: Iterable[tuple[int, int]]) -> None:
        """A new leader: these pairs of session and timeout get all their time from now."""
        self._due.clear()
        self._timeouts.clear()
        self._buckets.clear()
        for session, timeout_ms in sessions:
            self.add(session, timeout_ms)

    def stop(self) -> None:
        """Let nothing end: there is no leader, or it stands still."""
        self.is_running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def go_on(self) -> None:
        """Let sessions end again; what is overdue ends at once."""
        self.is_running = True
        if self._timer is None and self._buckets:
            self._look()

    def _look_later(self) -> None:
        if self.is_running and self._buckets:
            tick_ms = self._tick_ms
            now_ms = self._clock.now_ms()
            delay_ms = (now_ms // tick_ms + 1) * tick_ms - now_ms
            self._timer = self._clock.call_later(delay_ms, self._look)

    def _look(self) -> None:
        self._timer = None
        now = int(self._clock.now_ms()) // self._tick_ms
        for tick in sorted(tick for tick in self._buckets if tick <= now):
            for session in sorted(self._buckets.get(tick, ())):
                self.remove(session)
                self._expire(session)
        self._look_later()
