"""What a server counts about itself, for the four-letter words."""

from __future__ import annotations

from watchkeeper.model.ensemble.clock import Clock


class Statistics:
    """Counters of one server since its start or the last reset."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.started_ms = clock.now_ms()
        self.received = 0
        self.sent = 0
        self.rejected = 0
        self.min_latency_ms = 0.0
        self.max_latency_ms = 0.0
        self.total_latency_ms = 0.0
        self.measured = 0

    @property
    def uptime_ms(self) -> int:
        """How long the server has been running."""
        return int(self._clock.now_ms() - self.started_ms)

    @property
    def mean_latency_ms(self) -> float:
        """The mean time from a request to its answer."""
        return self.total_latency_ms / self.measured if self.measured else 0.0

    def answered(self, received_ms: float) -> None:
        """Count the answer to a request that was received then."""
        latency_ms = self._clock.now_ms() - received_ms
        self.sent += 1
        self.total_latency_ms += latency_ms
        self.min_latency_ms = (
            min(self.min_latency_ms, latency_ms) if self.measured else latency_ms
        )
        self.max_latency_ms = max(self.max_latency_ms, latency_ms)
        self.measured += 1
