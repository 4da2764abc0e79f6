"""One connection of a broker: what comes over it is answered in order, until it ends.

Whoever reads slowly holds up nobody else, and has no more waiting for him than one response:
the next request is not read before the last one has been answered. What is fetched goes from
its file to the connection without a copy.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from itertools import count

from model.log.log import View
from model.log.requests import Request, decode_request, encode_response
from model.log.segments import Damaged
from model.serving import Reply, Served
from real.frames import Frames
from real.storage import FileStorage

MORE = getattr(socket, "MSG_MORE", 0)
"""Says that the rest of a packet follows at once; not every system knows it."""
AT_A_TIME = 16
"""After so many requests that came together it is somebody else's turn."""

Answer = Callable[[Request], Awaitable[Served]]


class Answering:
    """The requests of one connection."""

    def __init__(
        self, connection: socket.socket, storage: FileStorage, answer: Answer, limit_bytes: int
    ) -> None:
        self._connection = connection
        self._storage = storage
        self._answer = answer
        self._limit_bytes = limit_bytes
        self._frames = Frames(connection)
        self._is_ending = False
        self.is_serving = False
        """Whether a request is being served, which must not be cut short."""

    def end(self) -> None:
        """Take no further request."""
        self._is_ending = True

    def close(self) -> None:
        """Close the connection, whatever was going on."""
        self._frames.close()
        self._connection.close()

    async def run(self) -> None:
        """Answer one request after the other until the other side ends the connection.

        A `LogError` says why it is to be closed, an OSError what has become of it.
        """
        for number in count(1):
            if self._is_ending:
                return
            frame = await self._frames.next(self._limit_bytes)
            if frame is None:
                return
            request = decode_request(frame)
            del frame
            await self._respond(await self._serve(request))
            if number % AT_A_TIME == 0:
                await asyncio.sleep(0)  # what comes without a pause leaves none to others

    async def _serve(self, request: Request) -> Served:
        self.is_serving = True
        try:
            return await self._answer(request)
        finally:
            self.is_serving = False

    async def _respond(self, served: Served) -> None:
        if served is None or self._is_ending:
            return
        if not isinstance(served, Reply):
            await self._send(encode_response(served))
            return
        parts = tuple(served.wire())
        for number, part in enumerate(parts, 1):
            if isinstance(part, bytes):
                await self._send(part, MORE if number < len(parts) else 0)
            else:
                await self._send_file(part)

    async def _send(self, data: bytes, flags: int = 0) -> None:
        """Send at once what the connection takes, and the rest when it takes that."""
        try:
            sent = self._connection.send(data, flags)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            await asyncio.get_running_loop().sock_sendall(self._connection, data[sent:])

    async def _send_file(self, view: View) -> None:
        """Mostly the connection takes all of it at once, and the loop has nothing to do."""
        with self._storage.sending(*view) as descriptor:
            try:
                sent = os.sendfile(
                    self._connection.fileno(), descriptor, view.at, view.size_bytes
                )
            except BlockingIOError:
                sent = 0
            if sent < view.size_bytes:
                sent += await self._send_rest(descriptor, view.at + sent, view.size_bytes - sent)
        if sent < view.size_bytes:
            raise Damaged(
                view.path,
                f"{view.size_bytes} bytes from {view.at} were flushed, {sent} are there: "
                "the file was changed from outside; start the broker again to recover it",
            )

    async def _send_rest(self, descriptor: int, at: int, size_bytes: int) -> int:
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            return await asyncio.get_running_loop().sock_sendfile(
                self._connection, file, at, size_bytes
            )
