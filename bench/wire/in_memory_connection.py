"""A connection to this project's ZooKeeper that needs no socket, for the cost of a request."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.wire import jute

from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.settings import EnsembleSettings


class _Timer:
    """A call that is never made."""

    def cancel(self) -> None:
        """It is not made anyway."""


class _Clock:
    """The time of this process; nothing is due while requests are measured."""

    def now_ms(self) -> float:
        """Milliseconds of the monotonic clock."""
        return time.monotonic() * 1_000

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def call_later(self, delay_ms: float, call: Callable[[], object]) -> _Timer:
        """Drop the call."""
        return _Timer()


class InMemoryConnection:
    """One client of one server, as bytes in and bytes out."""

    def __init__(self) -> None:
        ensemble = Ensemble(_Clock(), settings=EnsembleSettings())
        self._sent: list[bytes] = []
        connection = ensemble.servers[0].accept(self, "127.0.0.1")
        assert connection is not None, "the server takes its first connection"
        self.receive = connection.receive
        self.receive(jute.connect_request(0, bytes(16), 30_000, read_only=False))
        assert self._sent, "a session is granted at once"
        self._sent.clear()

    def check_answers(self, requests: int) -> None:
        """Check that so many requests were answered without an error, and forget them."""
        data, self._sent = b"".join(self._sent), []
        at = answers = 0
        while at < len(data):
            length = int(jute.INT.unpack_from(data, at)[0])
            error = jute.REPLY_HEAD.unpack_from(data, at + 4)[2]
            if error:
                raise ValueError(f"answer {answers} has the error {error}")
            answers += 1
            at += 4 + length
        if answers != requests:
            raise ValueError(f"{requests} requests have {answers} answers")

    # --- the transport -----------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Keep what the server sends."""
        self._sent.append(data)

    def close(self) -> None:
        """The server closes the connection, which no request here is a reason for."""
        raise ValueError("the server has closed the connection")

    abort = close

    def pause_reading(self) -> None:
        """Every request is answered at once, so there is nothing to wait for."""

    resume_reading = pause_reading

    def get_write_buffer_size(self) -> int:
        """The client has read everything."""
        return 0
