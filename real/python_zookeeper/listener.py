"""The ports and connections of an ensemble, on asyncio."""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from asyncio import AbstractEventLoop, BaseTransport
from collections.abc import Callable, Sequence
from typing import cast

from watchkeeper.model.ensemble.clock import Timer, Transport
from watchkeeper.model.ensemble.connection import Connection
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.server import Server
from watchkeeper.real.errors import EnvironmentProblem

BACKLOG = 1024
"""How many connections may wait until the server accepts them."""


class LoopClock:
    """The time of an event loop."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> float:
        """Milliseconds of the monotonic clock."""
        return time.monotonic() * 1000

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def call_later(self, delay_ms: float, call: Callable[[], object]) -> Timer:
        """Make a call in the loop once so much time has passed."""
        return self._loop.call_later(max(delay_ms, 0.0) / 1000, call)


class ClientProtocol(asyncio.Protocol):
    """One connection of a client, as asyncio sees it."""

    __slots__ = ("_connection", "_server")

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection: Connection | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        """A client has connected."""
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        self._connection = self._server.accept(
            cast(Transport, transport), str(peer[0]), port=int(peer[1])
        )

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived."""
        if self._connection is not None:
            self._connection.receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by either side."""
        if self._connection is not None:
            self._connection.closed_by_client()
            self._connection = None


class Listener:
    """The listening ports of an ensemble: one for each server."""

    def __init__(self, ensemble: Ensemble, host: str) -> None:
        self._ensemble = ensemble
        self.host = host
        self.ports: tuple[int, ...] = ()
        self._listening: list[asyncio.Server] = []

    async def start(self, ports: Sequence[int]) -> None:
        """Listen on a port for each server; 0 stands for any free one.

        Raises EnvironmentProblem for a port that is in use.
        """
        loop = asyncio.get_running_loop()
        found = []
        for server, port in zip(self._ensemble.servers, ports, strict=True):
            sock = bound_socket(self.host, port)
            found.append(int(sock.getsockname()[1]))
            self._listening.append(
                await loop.create_server(
                    lambda server=server: ClientProtocol(server),  # type: ignore[misc]
                    sock=sock,
                    backlog=BACKLOG,
                )
            )
        self.ports = tuple(found)

    def stop(self) -> None:
        """Stop listening; connections stay."""
        for listening in self._listening:
            listening.close()


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that is bound to this address; raises EnvironmentProblem if it cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        advice = "name another address or port"
        if error.errno == errno.EADDRINUSE:
            advice = "end the process that has the port, or name another one"
        raise EnvironmentProblem(
            f"ZooKeeper should listen on {host}:{port}, but {error.strerror or error}; {advice}"
        ) from error
    return sock
