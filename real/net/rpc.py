"""Requests to brokers over TCP: connections that are made, kept and given up.

A connection belongs to the thread that calls. Nobody reads from it but who waits for a
response. So what 0.7 does is what happens here: a produce request has no response, and the
first one that goes into a connection whose other end has died is lost without a word. The
kernel hears of it then, and the next one finds the connection broken.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator

from model.calls import Call, CallError, CallFailure, Disconnected, TimedOut, Unreachable
from model.log.errors import LogError
from model.log.requests import (
    RESPONSES,
    FetchRequest,
    MultiFetchRequest,
    OffsetsRequest,
    Request,
    Response,
    decode_response,
    encode_request,
)
from real.frames import Frames

CONNECT_WITHIN_MS = 5_000
"""`connect.timeout.ms` as it is shipped."""
SIZE_BYTES, CODE_BYTES, COUNT_BYTES, OFFSET_BYTES = 4, 2, 4, 8


class _Link:
    """A connection to a broker."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.frames = Frames(connection, _next, limit_bytes=0)

    async def exchange(self, request: Request) -> Response | None:
        """Send a request, and wait for its response if it has one."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.connection, encode_request(request))
        if type(request) not in RESPONSES:
            return None
        self.frames.limit_bytes = largest_response(request)
        frame = await self.frames.next()
        if frame is None:
            raise ConnectionResetError
        return decode_response(request, frame)

    def close(self) -> None:
        """Hang up."""
        self.frames.close()
        self.connection.close()


def _next(frames: Iterator[memoryview]) -> tuple[int, bytes]:
    return 1, bytes(next(frames))


class Calls:
    """The connections of one process."""

    def __init__(self, where: Callable[[str], str] = str) -> None:
        """`where` says where an address is on this machine; empty if it is nowhere."""
        self._where = where
        self._links: dict[tuple[object, str], _Link] = {}

    async def call(self, caller: object, ask: Call) -> Response | CallFailure | None:
        """Send a request, over the connection there is or over a new one.

        Raises the `LogError` that says what is wrong with a response that cannot be read.
        """
        key = (caller, ask.address)
        link = self._links.get(key)
        if link is None:
            connected = await self._connect(ask)
            if isinstance(connected, CallFailure):
                return connected
            link = self._links[key] = connected
        kind: type[CallError]
        try:
            async with asyncio.timeout(ask.timeout_ms / 1000):
                return await link.exchange(ask.request)
        except TimeoutError:
            kind = TimedOut
        except OSError:
            kind = Disconnected
        except (LogError, asyncio.CancelledError):
            self.hang_up(caller, ask.address)
            raise
        self.hang_up(caller, ask.address)
        return CallFailure(kind, ask.address)

    async def _connect(self, ask: Call) -> _Link | CallFailure:
        host, _, port = self._where(ask.address).rpartition(":")
        if not port:
            return CallFailure(Unreachable, ask.address)
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(min(ask.timeout_ms, CONNECT_WITHIN_MS) / 1000):
                await asyncio.get_running_loop().sock_connect(connection, (host, int(port)))
        except OSError:
            connection.close()
            return CallFailure(Unreachable, ask.address)
        except BaseException:
            connection.close()
            raise
        return _Link(connection)

    def hang_up(self, caller: object, address: str) -> None:
        """Close the connection to an address, if there is one."""
        link = self._links.pop((caller, address), None)
        if link is not None:
            link.close()

    def hang_up_all(self, caller: object) -> None:
        """Close every connection of a thread that is over."""
        for one, address in list(self._links):
            if one is caller:
                self.hang_up(one, address)


def largest_response(request: Request) -> int:
    """How large the frame of a response can be; what is larger is not the response to this."""
    return _largest_part(request) - SIZE_BYTES


def _largest_part(request: Request) -> int:
    """With the size before it."""
    head_bytes = SIZE_BYTES + CODE_BYTES
    if isinstance(request, FetchRequest):
        return head_bytes + max(request.max_bytes, 0)
    if isinstance(request, MultiFetchRequest):
        return head_bytes + sum(map(_largest_part, request.fetches))
    assert isinstance(request, OffsetsRequest), "other requests have no response"
    return head_bytes + COUNT_BYTES + OFFSET_BYTES * max(request.max_offsets, 0)
