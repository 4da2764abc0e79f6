"""A ZooKeeper client that is held back: it hears, and finds out, when it is told to."""

from __future__ import annotations

from typing import Any

from model.answers import Fired
from sim.client import Client
from sim.connection import Connection

NEVER_US = 1 << 60


class HeldClient(Client):
    """A client whose events, and whose connection's end, wait until they are asked for."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.is_free = False
        self.withheld: list[tuple[Connection, Fired, int]] = []
        self.hung_up: Connection | None = None
        """The connection that the server has closed, which is not known yet."""
        self.is_deaf = False
        """Whether its session is dead, so that what is still sent to it is lost."""

    def hear(self, message: tuple[Connection, Fired, int]) -> None:
        """A watch has fired: keep it back."""
        if self.is_free:
            super().hear(message)
        elif message[0] is self.connection and not self.is_deaf:
            self.withheld.append(message)

    def hear_first(self) -> Fired | None:
        """Let the oldest event that was kept back be heard."""
        if not self.withheld:
            return None
        message = self.withheld.pop(0)
        super().hear(message)
        return message[1]

    def hear_all(self) -> None:
        """Let everything be heard."""
        while self.hear_first() is not None:
            pass

    def closed_by_server(self, connection: Connection) -> None:
        """The server has hung up: keep that back."""
        if self.state != "connected" or self.is_free:
            super().closed_by_server(connection)
        elif connection is self.connection:
            self.hung_up = connection

    def established(self, message: tuple[Connection, int, int]) -> None:
        """A server has given us a session, or our session back."""
        self.is_deaf = False
        super().established(message)

    def lose(self, why: str) -> None:
        """The connection is gone, with whatever was kept back; no other is made for now."""
        if self.state == "connected" and not self.is_free:
            self.withheld.clear()
            self.hung_up = None
            self.blocked_until_us = NEVER_US
        super().lose(why)

    def break_off(self) -> None:
        """The connection breaks."""
        if self.connection is not None:
            self.connection.server.disconnect(self.connection)
            self.lose("disconnected")

    def come_back(self) -> None:
        """Connect again, or find out that there is nothing to come back to."""
        self.blocked_until_us = 0
        if self.state == "connecting":
            self._connect_soon(0)

    def be_told_expired(self) -> None:
        """A server says on the open connection that the session is dead."""
        self.hear_all()
        connection, self.hung_up = self.connection, None
        if connection is not None:
            self.told_expired(connection)

    def let_go(self) -> None:
        """From now on, hear everything when it comes."""
        self.is_free = True
        self.hear_all()
        if self.hung_up is not None:
            super().closed_by_server(self.hung_up)
        self.come_back()
