"""Requests to brokers over TCP, with one connection for each task and broker.

Requests of 0.7, those between brokers of 0.8, and those of its clients differ in encoding.

A connection belongs to the calling task and is read only while that task waits for a
response. This reproduces what 0.7 does: a produce request has no response, so the first
request on a connection whose peer has died is lost silently. The kernel notices it then, and
the next request finds the connection broken.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

from watchkeeper.model.actor.rpc import (
    Call,
    CallError,
    CallFailure,
    Disconnected,
    TimedOut,
    Unreachable,
)
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES
from watchkeeper.model.log.format.requests import (
    RESPONSES,
    FetchRequest,
    MultiFetchRequest,
    OffsetsRequest,
    Request,
    Response,
    decode_response,
    encode_request,
)
from watchkeeper.model.replication import wire
from watchkeeper.model.replication.requests import BrokerRequest
from watchkeeper.model.wire_08 import table
from watchkeeper.model.wire_08.client_request import ClientRequest
from watchkeeper.real.net.frames import Frames

CONNECT_WITHIN_MS = 5_000
"""The default of `connect.timeout.ms`."""
SIZE_BYTES, CODE_BYTES, COUNT_BYTES, OFFSET_BYTES = 4, 2, 4, 8


class _Connection:
    """A connection to a broker."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.frames = Frames(connection, _next, limit_bytes=0)
        self._sent = 0

    async def exchange(self, request: Any) -> Any:
        """Send a request, and wait for its response if its kind has one."""
        if isinstance(request, BrokerRequest):
            return await self._exchange_08(request)
        if isinstance(request, ClientRequest):
            return await self._exchange_of_client(request)
        if table.knows(request):
            return await self._exchange_of_client(ClientRequest(request, wire.CLIENT))
        return await self._exchange_07(request)

    async def _exchange_08(self, request: BrokerRequest) -> Any:
        self._sent += 1
        await self._send(wire.encode_request(request, self._sent))
        frame = await self._frame(LARGEST_FRAME_BYTES)
        return wire.decode_response(request, frame, self._sent)

    async def _exchange_of_client(self, request: ClientRequest) -> Response | None:
        self._sent += 1
        await self._send(table.encode_request(request.request, self._sent, request.client_id))
        if not request.has_response:
            return None
        frame = await self._frame(LARGEST_FRAME_BYTES)
        return table.decode_response(request.request, frame, self._sent)

    async def _exchange_07(self, request: Request) -> Response | None:
        await self._send(encode_request(request))
        if type(request) not in RESPONSES:
            return None
        return decode_response(request, await self._frame(largest_response(request)))

    async def _send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.connection, data)

    async def _frame(self, limit_bytes: int) -> bytes:
        self.frames.limit_bytes = limit_bytes
        frame = await self.frames.next()
        if frame is None:
            raise ConnectionResetError
        return frame

    def close(self) -> None:
        """Close the connection."""
        self.frames.close()
        self.connection.close()


def _next(frames: Iterator[memoryview]) -> tuple[int, bytes]:
    return 1, bytes(next(frames))


class Calls:
    """The connections of one process."""

    def __init__(self, where: Callable[[str], str] = str) -> None:
        """`where` maps an address to the address on this machine, or to "" if there is none."""
        self._where = where
        self._connections: dict[tuple[object, str], _Connection] = {}

    async def call(self, caller: object, effect: Call) -> Any:
        """Send a request over the existing connection or a new one; return the response.

        Returns a CallFailure if the broker cannot be reached, disconnects or times out; raises
        a LogError if the response cannot be decoded.
        """
        key = (caller, effect.address)
        open_connection = self._connections.get(key)
        if open_connection is None:
            connected = await self._connect(effect)
            if isinstance(connected, CallFailure):
                return connected
            open_connection = self._connections[key] = connected
        kind: type[CallError]
        try:
            async with asyncio.timeout(effect.timeout_ms / 1000):
                return await open_connection.exchange(effect.request)
        except TimeoutError:
            kind = TimedOut
        except OSError:
            kind = Disconnected
        except (LogError, asyncio.CancelledError):
            self.hang_up(caller, effect.address)
            raise
        self.hang_up(caller, effect.address)
        return CallFailure(kind, effect.address)

    async def _connect(self, effect: Call) -> _Connection | CallFailure:
        host, _, port = self._where(effect.address).rpartition(":")
        if not port:
            return CallFailure(Unreachable, effect.address)
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if effect.send_buffer_bytes is not None:
                size_bytes = effect.send_buffer_bytes
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size_bytes)
            async with asyncio.timeout(min(effect.timeout_ms, CONNECT_WITHIN_MS) / 1000):
                await asyncio.get_running_loop().sock_connect(connection, (host, int(port)))
        except OSError:
            connection.close()
            return CallFailure(Unreachable, effect.address)
        except BaseException:
            connection.close()
            raise
        return _Connection(connection)

    def hang_up(self, caller: object, address: str) -> None:
        """Close the connection to an address, if there is one."""
        open_connection = self._connections.pop((caller, address), None)
        if open_connection is not None:
            open_connection.close()

    def hang_up_all(self, caller: object) -> None:
        """Close every connection of a task that has ended."""
        for peer, address in list(self._connections):
            if peer is caller:
                self.hang_up(peer, address)


def largest_response(request: Request) -> int:
    """The size of the largest valid response to a request."""
    return _largest_part(request) - SIZE_BYTES


def _largest_part(request: Request) -> int:
    """That size with the size field."""
    head_bytes = SIZE_BYTES + CODE_BYTES
    if isinstance(request, FetchRequest):
        return head_bytes + max(request.max_bytes, 0)
    if isinstance(request, MultiFetchRequest):
        return head_bytes + sum(map(_largest_part, request.fetches))
    assert isinstance(request, OffsetsRequest), "other requests have no response"
    return head_bytes + COUNT_BYTES + OFFSET_BYTES * max(request.max_offsets, 0)
