"""A ZooKeeper client that holds back events and broken connections until their replay step."""

from __future__ import annotations

from typing import Any

from watchkeeper.model.actor.events import Fired
from watchkeeper.sim.zookeeper.client import Client
from watchkeeper.sim.zookeeper.connection import Connection

NEVER_US = 1 << 60


class SteppedClient(Client):
    """A client that withholds events, and the end of its connection, until a step comes."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.is_free = False
        """Whether it was released and behaves as any other client."""
        self.withheld: list[tuple[Connection, Fired, int]] = []
        """The events that arrived and that no step has delivered yet, oldest first."""
        self.closed: Connection | None = None
        """The connection that the server has closed and that no step has reported yet."""
        self.ignores_events = False
        """Whether its session is dead, so that events still sent to it are lost."""

    def hear(self, message: tuple[Connection, Fired, int]) -> None:
        """Withhold the event of a watch that fired."""
        if self.is_free:
            super().hear(message)
        elif message[0] is self.connection and not self.ignores_events:
            self.withheld.append(message)

    def deliver_first(self) -> Fired | None:
        """Deliver and return the oldest withheld event; None if there is none."""
        if not self.withheld:
            return None
        message = self.withheld.pop(0)
        super().hear(message)
        return message[1]

    def deliver_all(self) -> None:
        """Deliver every withheld event."""
        while self.deliver_first() is not None:
            pass

    def closed_by_server(self, connection: Connection) -> None:
        """Withhold that the server closed the connection."""
        if self.state != "connected" or self.is_free:
            super().closed_by_server(connection)
        elif connection is self.connection:
            self.closed = connection

    def established(self, message: tuple[Connection, int, int]) -> None:
        """A server has opened the session, or accepted it again."""
        self.ignores_events = False
        super().established(message)

    def lose(self, why: str) -> None:
        """Lose the connection with all withheld events; a later step reconnects."""
        if self.state == "connected" and not self.is_free:
            self.withheld.clear()
            self.closed = None
            self.blocked_until_us = NEVER_US
        super().lose(why)

    def break_off(self) -> None:
        """Break the connection at both ends."""
        if self.connection is not None:
            self.connection.server.disconnect(self.connection)
            self.lose("disconnected")

    def reconnect(self) -> None:
        """Connect again, or learn that the session is dead."""
        self.blocked_until_us = 0
        if self.state == "connecting":
            self._connect_soon(0)

    def expire(self) -> None:
        """Receive the notice, on the open connection, that the session is dead."""
        self.deliver_all()
        connection, self.closed = self.connection, None
        if connection is not None:
            self.told_expired(connection)

    def release(self) -> None:
        """Deliver everything withheld, and from now on each event as it arrives."""
        self.is_free = True
        self.deliver_all()
        if self.closed is not None:
            super().closed_by_server(self.closed)
        self.reconnect()
