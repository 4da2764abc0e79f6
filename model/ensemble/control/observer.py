"""Follows what an ensemble reports while faults last that have an effect on it.

A delay also holds for connections that begin later, and its effect is counted where a request
arrives; a lag is counted where an entry is committed. So the observer stands between the
ensemble and its recorder, as long as there is such a fault and no longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from watchkeeper.model.wire.requests import Ping, Request

if TYPE_CHECKING:
    from watchkeeper.model.actor.events import Fired
    from watchkeeper.model.ensemble.connection import Connection
    from watchkeeper.model.ensemble.ensemble import Ensemble
    from watchkeeper.model.ensemble.entry import Entry
    from watchkeeper.model.ensemble.faults import CountEffect
    from watchkeeper.model.ensemble.recorder import Recorder
    from watchkeeper.model.ensemble.server import Server


class Delay:
    """A slow link between the servers and the clients that it fits."""

    def __init__(self, by_ms: float, session: int | None, count_effect: CountEffect) -> None:
        self.by_ms = by_ms
        self.count_effect = count_effect
        self._session = session

    def fits(self, connection: Connection) -> bool:
        """Whether it delays what passes over this connection."""
        return self._session is None or connection.session == self._session


class Lag:
    """A server that applies later what is committed."""

    def __init__(self, server: Server, count_effect: CountEffect) -> None:
        self.server = server
        self.count_effect = count_effect


class Observer:
    """A recorder that has its part in the faults, and reports everything to the next one."""

    def __init__(self, ensemble: Ensemble, recorder: Recorder) -> None:
        self.delays: list[Delay] = []
        self.lags: list[Lag] = []
        self._ensemble = ensemble
        self._recorder = recorder

    def settle(self) -> None:
        """Stand between the ensemble and its recorder while there is such a fault."""
        self._ensemble.recorder = self if self.delays or self.lags else self._recorder

    def begin(self, delay: Delay) -> None:
        """Delay every connection that fits, and those to come."""
        self.delays.append(delay)
        self.settle()
        self._set(self._fitting(delay))

    def end(self, delay: Delay) -> None:
        """End a delay; what it still holds back is delivered, and counted, at once."""
        fitting = self._fitting(delay)
        for connection in fitting:
            connection.delay(0.0)
        self.delays.remove(delay)
        self._set(fitting)
        self.settle()

    def _fitting(self, delay: Delay) -> list[Connection]:
        servers = self._ensemble.servers
        return [
            each for server in servers for each in server.connections.values() if delay.fits(each)
        ]

    def _set(self, connections: list[Connection]) -> None:
        for connection in connections:
            by_ms = self._delay_ms(connection)
            if by_ms:
                connection.delay(by_ms)

    def _delay_ms(self, connection: Connection) -> float:
        return max((delay.by_ms for delay in self.delays if delay.fits(connection)), default=0.0)

    def _count(self, connection: Connection) -> None:
        for delay in self.delays:
            if delay.fits(connection):
                delay.count_effect("messages delayed", 1)

    # --- what the ensemble reports -----------------------------------------------------

    def requested(self, connection: Connection, request: Request) -> None:
        """A request has arrived, late; a ping is no effect that a test could see."""
        if type(request.body) is not Ping:
            self._count(connection)
        self._recorder.requested(connection, request)

    def answered(self, connection: Connection, request: Request, error: int, zxid: int) -> None:
        """A request is answered."""
        self._recorder.answered(connection, request, error, zxid)

    def fired(self, connection: Connection, event: Fired, zxid: int) -> None:
        """An event leaves, late."""
        self._count(connection)
        self._recorder.fired(connection, event, zxid)

    def committed(self, entry: Entry) -> None:
        """An entry takes effect, and later on a server that lags."""
        for lag in self.lags:
            if lag.server.is_connected:
                lag.count_effect("commits delayed", 1)
        self._recorder.committed(entry)

    def connected(self, connection: Connection, *, is_new: bool) -> None:
        """A connection has a session, and is slow from now on if a delay fits it."""
        by_ms = self._delay_ms(connection)
        if by_ms:
            connection.delay(by_ms)
        self._recorder.connected(connection, is_new=is_new)

    def closed(self, connection: Connection, reason: str) -> None:
        """A connection has ended."""
        self._recorder.closed(connection, reason)

    def expired(self, connection: Connection, session: int) -> None:
        """A client has learned that its session has ended."""
        self._recorder.expired(connection, session)

    def changed(self, server: Server, state: str) -> None:
        """A server has another state."""
        self._recorder.changed(server, state)

    def fault(self, name: str, detail: Mapping[str, Any]) -> None:
        """A fault is reported."""
        self._recorder.fault(name, detail)
