"""What the proxy knows of one client: its route to each server, and the faults aimed at it."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Server
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ssl import SSLContext
from typing import TYPE_CHECKING, Literal

from watchkeeper.model.wire.connect import SessionKey
from watchkeeper.real.proxy.tap import Tap
from watchkeeper.real.proxy.valve import CountEffect, Direction, Valve

if TYPE_CHECKING:
    from watchkeeper.real.proxy.connection import ProxiedConnection


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """A fault aimed at the next request: the request is lost, or only its reply."""

    what: Literal["request", "reply"]
    count_effect: CountEffect
    lands_after_s: float | None = None
    """When a lost request reaches the server after all; None for never."""


class ServerRoute:
    """A client's route to one server: the listening port, and what holds messages up."""

    def __init__(self, client_route: ClientRoute, server: str, port: int) -> None:
        self.client_route = client_route
        self.server = server
        """The address of the server."""
        self.port = port
        self.listener: Server | None = None
        self.valves: dict[Direction, Valve] = {"to": Valve(), "from": Valve()}
        self.connections: list[ProxiedConnection] = []

    @property
    def is_cut(self) -> bool:
        """Whether no connection can be made; a connection needs both directions."""
        return any(valve.is_shut for valve in self.valves.values())

    def move_on(self) -> None:
        """Deliver the messages that are no longer held up."""
        for connection in list(self.connections):
            connection.move_on()


class ClientRoute:
    """One client of the proxy, with a listening port for each server."""

    def __init__(
        self,
        name: str,
        loop: AbstractEventLoop,
        *,
        tls: SSLContext | None = None,
        tap: Tap | None = None,
    ) -> None:
        self.name = name
        self.loop = loop
        self.tls = tls
        """The TLS settings of connections to servers; None for plain TCP."""
        self.tap = tap
        self.routes: list[ServerRoute] = []
        self.losses: list[Loss] = []
        """The faults of the next requests, one each."""
        self.refusals: list[tuple[float, CountEffect]] = []
        """Until when connections are refused, and the counter of the refusals."""

    @property
    def connections(self) -> Iterator[ProxiedConnection]:
        """The connections of this client, per route the oldest first."""
        return (connection for route in self.routes for connection in route.connections)

    def routes_to(self, servers: Iterable[str] | None) -> list[ServerRoute]:
        """The routes to these servers, or to all."""
        addresses = None if servers is None else set(servers)
        return [route for route in self.routes if addresses is None or route.server in addresses]

    def refuses(self) -> bool:
        """Whether a new connection is refused now; counts the refusal."""
        now = self.loop.time()
        self.refusals = [refusal for refusal in self.refusals if refusal[0] > now]
        for _, count_effect in self.refusals:
            count_effect("connections refused", 1)
        return bool(self.refusals)

    def connection_of(self, session: SessionKey | None) -> ProxiedConnection | None:
        """The newest open connection of this session, or of any session if None."""
        alive = [
            connection
            for connection in self.connections
            if connection.is_open and connection.session is not None
        ]
        same = [
            connection
            for connection in alive
            if session is None
            or (connection.session and connection.session.number == session.number)
        ]
        return max(same, key=lambda connection: connection.number, default=None)
