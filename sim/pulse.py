"""A client's signs of life, and how it notices that nobody answers.

A client that has neither sent nor heard anything for half its read timeout (so a third of
the session's, less some jitter) sends a ping. If nothing at all has come back when as
much time has passed again, it drops the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.server import PING, Connection, Request

if TYPE_CHECKING:
    from sim.client import Client

MOST_JITTER_US = 400_000


class Pulse:
    """The pings of one client."""

    __slots__ = (
        "_beats",
        "_is_pinged",
        "client",
        "heard_us",
        "kernel",
        "network",
        "sent_us",
        "timeout_us",
    )

    def __init__(self, client: Client) -> None:
        self.client = client
        self.kernel = client.kernel
        self.network = client.ensemble.network
        self.timeout_us = client.timeout_us
        self.sent_us = 0
        self.heard_us = 0
        self._is_pinged = False
        """Whether a ping waits for an answer."""
        self._beats = 0
        """Tells the beat of this connection from those of earlier ones."""

    def begin(self, connection: Connection, timeout_us: int) -> None:
        """A connection has been established."""
        self.timeout_us = timeout_us
        self.sent_us = self.kernel.now_us
        self.heard()
        self._beats += 1
        self.kernel.after(self._patience_us(), self._beat, (connection, self._beats))

    def heard(self) -> None:
        """Something has come from the server."""
        self.heard_us = self.kernel.now_us
        self._is_pinged = False

    def _patience_us(self) -> int:
        half = self.timeout_us // 3
        return half - self.client.chance.below(min(MOST_JITTER_US, half // 2))

    def _beat(self, message: tuple[Connection, int]) -> None:
        connection, beat = message
        client = self.client
        if beat != self._beats or client.connection is not connection:
            return
        if client.node.is_deaf:
            client.node.when_awake(lambda: self._beat(message))
            return
        if self._is_pinged:
            client.lose("no answer")
            return
        quiet_us = self.kernel.now_us - max(self.sent_us, self.heard_us)
        if quiet_us < self.timeout_us // 6:
            self.kernel.after(self._patience_us() - quiet_us, self._beat, message)
            return
        self._ping(connection)
        self.kernel.after(self._patience_us(), self._beat, message)

    def _ping(self, connection: Connection) -> None:
        """Send a ping. Where nothing is wrong, its answer is not carried back hop by hop."""
        self._is_pinged = True
        self.sent_us = self.kernel.now_us
        if self.network.is_untroubled:
            delay_us = connection.up.arrival_us() - self.kernel.now_us
            self.kernel.after(delay_us, self._arrive, connection)
        else:
            connection.up.send(connection.server.receive, (connection, Request(PING)))

    def _arrive(self, connection: Connection) -> None:
        server = connection.server
        is_sound = (
            self.network.is_untroubled
            and connection.is_open_at_server
            and server.is_serving
            and not server.is_paused
            and self.client.connection is connection
            and not self.client.node.is_deaf
        )
        if is_sound:
            server.ensemble.sessions.touch(connection.session, server)
            self.heard()
        else:
            server.receive((connection, Request(PING)))
