"""One connection of a broker: what comes over it is answered in order, until it ends.

Whoever reads slowly holds up nobody else, and has no more waiting for him than one response:
the next request is not answered before the last one has been. What is fetched goes from its
file to the connection without a copy, and mostly at once: then nothing is left to be done for
the task of the connection, which is not even woken. While one request waits for the disk, the
messages of the next ones are checked, as far as these have come.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from model.log.log import View
from model.log.requests import (
    FetchRequest,
    MultiFetchRequest,
    decode_request,
    encode_response,
)
from model.log.segments import Damaged
from model.serving import Reply, Serving, Work
from real.frames import Frames
from real.storage import FileStorage
from real.threads import Threads

MORE = getattr(socket, "MSG_MORE", 0)
"""Says that the rest of a packet follows at once; not every system knows it."""
AHEAD = 8
"""So many requests are looked at while the disk is waited for."""

Rest = Callable[[], Awaitable[None]]
"""What is left to be done of a request."""


class Answering:
    """The requests of one connection."""

    def __init__(
        self,
        connection: socket.socket,
        storage: FileStorage,
        serving: Serving,
        threads: Threads,
        *,
        limit_bytes: int,
    ) -> None:
        self._connection = connection
        self._storage = storage
        self._serving = serving
        self._threads = threads
        self._frames = Frames(connection, self._begin, limit_bytes=limit_bytes)
        self._is_ahead = False
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
        while (rest := await self._frames.next()) is not None and not self._is_ending:
            await rest()

    def look_ahead(self) -> None:
        """While somebody waits for the disk: do of the next requests what need not wait."""
        self._is_ahead = True
        try:
            self._frames.look_ahead(AHEAD)
        finally:
            self._is_ahead = False

    def _begin(self, frame: memoryview) -> Rest | None:
        """Do what can be done at once with a request; what is left of it."""
        request = decode_request(frame)
        can_wait = self._is_ahead or self._is_ending
        with self._threads.baton:
            if can_wait or not isinstance(request, FetchRequest | MultiFetchRequest):
                return partial(self._serve, self._serving.prepare(request))
            reply = self._serving.find(request)
        return self._send_at_once(reply)

    async def _serve(self, work: Work) -> None:
        self.is_serving = True
        try:
            served = await self._threads.run(work(), self)
        finally:
            self.is_serving = False
        if served is None or self._is_ending:
            return
        if isinstance(served, Reply):
            rest = self._send_at_once(served)
        else:
            rest = partial(self._send_all, (encode_response(served),))
        if rest is not None:
            await rest()

    # --- sending -----------------------------------------------------------------------

    def _send_at_once(self, reply: Reply) -> Rest | None:
        """Send what the connection takes now, which mostly is all; what is left of it."""
        parts = tuple(reply.wire())
        for number, part in enumerate(parts, 1):
            sent = self._send(part, MORE if number < len(parts) else 0)
            if sent < _size_of(part):
                return partial(self._send_all, parts[number - 1 :], sent)
        return None

    async def _send_all(self, parts: Sequence[bytes | View], sent: int = 0) -> None:
        """Send everything, when the connection takes it; of the first so much has been sent."""
        for number, part in enumerate(parts, 1):
            if number > 1:
                sent = self._send(part, MORE if number < len(parts) else 0)
            if sent < _size_of(part):
                await self._send_rest(part, sent)

    def _send(self, part: bytes | View, flags: int) -> int:
        """Send at once what the connection takes; how much that is."""
        try:
            if isinstance(part, bytes):
                return self._connection.send(part, flags)
            with self._storage.sending(*part) as descriptor:
                return os.sendfile(
                    self._connection.fileno(), descriptor, part.at, part.size_bytes
                )
        except BlockingIOError:
            return 0

    async def _send_rest(self, part: bytes | View, sent: int) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(part, bytes):
            await loop.sock_sendall(self._connection, part[sent:])
            return
        with (
            self._storage.lease(part.path) as descriptor,
            open(descriptor, "rb", buffering=0, closefd=False) as file,
        ):
            at, left_bytes = part.at + sent, part.size_bytes - sent
            sent += await loop.sock_sendfile(self._connection, file, at, left_bytes)
        if sent < part.size_bytes:
            raise Damaged(
                part.path,
                f"{part.size_bytes} bytes from {part.at} were flushed, {sent} are there: "
                "the file was changed from outside; start the broker again to recover it",
            )


def _size_of(part: bytes | View) -> int:
    return len(part) if isinstance(part, bytes) else part.size_bytes
