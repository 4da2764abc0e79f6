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
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain

from model.log.errors import LogError
from model.log.log import View
from model.log.requests import (
    FetchRequest,
    MultiFetchRequest,
    Request,
    decode_request,
    encode_response,
)
from model.log.segments import Damaged
from model.serving import Reply, Served, Serving, Work
from real.frames import Frames
from real.storage import FileStorage
from real.threads import Done, Paused, Threads

MORE = getattr(socket, "MSG_MORE", 0)
"""Says that the rest of a packet follows at once; not every system knows it."""

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
        self._seen: Request | None = None
        """The next request, if it was read already to see whether it goes with those before."""
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
        while (rest := await self._frames.next()) is not None:
            await rest()
            if self._is_ending:
                return

    def _begin(self, frames: Iterator[memoryview]) -> tuple[int, Rest | None]:
        """Do what can be done at once with some requests; how many, and what is left of them."""
        frame = next(frames)
        first = self._seen or decode_request(frame)
        self._seen = None
        has_to_wait = self._is_ahead or self._is_ending
        if isinstance(first, FetchRequest | MultiFetchRequest) and not has_to_wait:
            with self._threads.baton:
                reply = self._serving.find(first)
            return 1, self._send_at_once(reply)
        with self._threads.baton:
            several = [first]
            others = _readable(frames, several)
            count, work = self._serving.prepare_next(chain((first,), others))
        if count < len(several):
            self._seen = several[count]
        return count, partial(self._serve, work) if has_to_wait else self._serve_at_once(work)

    def _serve_at_once(self, work: Work) -> Rest | None:
        """Do what is left of a request, as far as it need not wait."""
        step = self._threads.go_on(work(), self)
        if isinstance(step, Done):
            return self._answer(step.value)
        self.is_serving = True
        return partial(self._finish, step)

    async def _serve(self, work: Work) -> None:
        if self._is_ending:
            return
        rest = self._serve_at_once(work)
        if rest is not None:
            await rest()

    async def _finish(self, paused: Paused[Served]) -> None:
        """Wait for what has to be waited for, and look at the next requests meanwhile."""
        try:
            self._is_ahead = True
            with self._frames.looking_ahead():
                served = await self._threads.run(paused.body, self, paused.answered)
        finally:
            self._is_ahead = self.is_serving = False
        rest = self._answer(served)
        if rest is not None:
            await rest()

    # --- sending -----------------------------------------------------------------------

    def _answer(self, served: Served) -> Rest | None:
        """Send an answer, if there is one and somebody to take it; what is left of that."""
        if served is None or self._is_ending:
            return None
        if isinstance(served, Reply):
            return self._send_at_once(served)
        return partial(self._send_all, (encode_response(served),))

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


def _readable(frames: Iterator[memoryview], seen: list[Request]) -> Iterator[Request]:
    """The requests up to one that cannot be read; what is wrong is said when it is its turn."""
    with suppress(LogError):
        for frame in frames:
            seen.append(decode_request(frame))
            yield seen[-1]


def _size_of(part: bytes | View) -> int:
    return len(part) if isinstance(part, bytes) else part.size_bytes
