"""A client's pings, and how it notices that its server no longer answers.

A client that has sent nothing for half its read timeout (so a third of the session's, less
some jitter), whatever it may have heard, sends a ping. If nothing at all has come back when
as much time has passed again, it drops the connection.

While nothing is wrong anywhere, every ping is answered, and nothing follows from it but
that the session goes on. So a pulse *rests* then: its pings are not simulated, only
counted when the leader asks for the last sign of life. As soon as a link is cut or slow,
a server or the process itself stands still, it wakes, and pings one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchkeeper.sim.zookeeper.connection import PING, Connection, Request

if TYPE_CHECKING:
    from watchkeeper.sim.zookeeper.client import Client

MOST_JITTER_US = 400_000


class Pulse:
    """The pings of one client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.kernel = client.kernel
        self.network = client.ensemble.network
        self.sent_us = 0
        self.is_resting = False
        self._period_us = 0
        self.is_pinged = False
        """Whether a ping waits for an answer: for anything that comes from the server."""
        self._beats = 0
        """Distinguishes the beats since the last awakening from those before."""

    def begin(self, connection: Connection, timeout_us: int) -> None:
        """A connection has been established."""
        half = timeout_us // 3
        self._period_us = half - self.client.chance.below(min(MOST_JITTER_US, half // 2))
        self.sent_us = self.kernel.now_us
        self.is_pinged = False
        self.network.pulses[self] = None
        self.is_resting = True
        if not self.network.is_calm:
            self.wake()

    def end(self) -> None:
        """The connection is gone; what was pinged until now has counted."""
        if self.is_resting:
            self._rest_until_now()
            self.is_resting = False
        self._beats += 1
        self.network.pulses.pop(self, None)

    # --- resting -----------------------------------------------------------------------

    def last_sign_us(self) -> int:
        """When a resting pulse gave its last sign of life."""
        silent_us = self.kernel.now_us - self.sent_us
        return self.sent_us + silent_us // self._period_us * self._period_us

    def _rest_until_now(self) -> None:
        """Let the leader know of the last sign of life."""
        client, connection = self.client, self.client.connection
        assert connection is not None, "a pulse rests only while there is a connection"
        self.sent_us = self.last_sign_us()
        client.ensemble.sessions.count_sign(client.session, connection.server, self.sent_us)

    def wake(self) -> None:
        """Something may be wrong: ping one by one from now on."""
        connection = self.client.connection
        if not self.is_resting or connection is None:
            return
        self._rest_until_now()
        self.is_resting = False
        self._beats += 1
        delay_us = self.sent_us + self._period_us - self.kernel.now_us
        self.kernel.after(max(delay_us, 0), self._beat, (connection, self._beats))

    # --- awake -------------------------------------------------------------------------

    def _beat(self, message: tuple[Connection, int]) -> None:
        connection, beat = message
        client = self.client
        if beat != self._beats or client.connection is not connection:
            return
        if client.node.is_deaf:
            client.node.when_awake(lambda: self._beat(message))
            return
        if self.is_pinged:
            client.lose("no answer")
            return
        if self.network.is_calm:
            self.is_resting = True
            return
        quiet_us = self.kernel.now_us - self.sent_us
        if quiet_us < self._period_us:
            self.kernel.after(self._period_us - quiet_us, self._beat, message)
            return
        self.is_pinged = True
        self.sent_us = self.kernel.now_us
        connection.up.send(connection.server.receive, (connection, Request(PING)))
        self.kernel.after(self._period_us, self._beat, message)
