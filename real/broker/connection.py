"""One connection of a broker: its requests are answered in order.

A slow reader blocks only its own connection, which buffers at most one response: the next
request is answered after the response has been sent. Fetched messages go from the file to the
socket without a copy, and usually at once; then the task of the connection is not even woken.
While one request waits for the disk, the messages of the following ones are already validated.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import chain

from watchkeeper.model.broker.request_handler import Reply, Served, Serving, Work
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.requests import (
    FetchRequest,
    MultiFetchRequest,
    Request,
    decode_request,
    encode_response,
)
from watchkeeper.real.broker.framed_connection import FramedConnection
from watchkeeper.real.broker.sender import Rest
from watchkeeper.real.process.tasks import Done, Paused, Tasks
from watchkeeper.real.storage.file_storage import FileStorage


class BrokerConnection(FramedConnection):
    """The requests of one connection."""

    def __init__(
        self,
        connection: socket.socket,
        storage: FileStorage,
        serving: Serving,
        tasks: Tasks,
        *,
        limit_bytes: int,
    ) -> None:
        super().__init__(connection, storage, tasks, limit_bytes=limit_bytes)
        self._serving = serving
        self._seen: Request | None = None
        """The next request, if it was decoded to see whether the previous ones can include it."""
        self._is_ahead = False

    def _begin(self, frames: Iterator[memoryview]) -> tuple[int, Rest | None]:
        """Begin requests as far as possible; return their number and the remaining work."""
        frame = next(frames)
        first = self._seen or decode_request(frame)
        self._seen = None
        has_to_wait = self._is_ahead or self._is_ending
        if isinstance(first, FetchRequest | MultiFetchRequest) and not has_to_wait:
            with self._tasks.baton:
                reply = self._serving.find(first)
            return 1, self._sender.send_at_once(tuple(reply.wire()))
        with self._tasks.baton:
            # Consecutive produce requests are prepared together: one checksum pass and one append
            # for all of them cost less than one for each.
            requests = [first]
            others = _decodable(frames, requests)
            count, work = self._serving.prepare_next(chain((first,), others))
        if count < len(requests):
            self._seen = requests[count]
        return count, partial(self._serve, work) if has_to_wait else self._serve_at_once(work)

    def _serve_at_once(self, work: Work) -> Rest | None:
        """Perform the work of a request as far as it need not wait."""
        step = self._tasks.go_on(work(), self)
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
        """Wait for the disk, and look ahead at the next requests meanwhile."""
        try:
            self._is_ahead = True
            with self._frames.looking_ahead():
                served = await self._tasks.run(paused.body, self, paused.answered)
        finally:
            self._is_ahead = self.is_serving = False
        rest = self._answer(served)
        if rest is not None:
            await rest()

    # --- sending -----------------------------------------------------------------------

    def _answer(self, served: Served) -> Rest | None:
        """Send an answer, if there is one; return the remaining work."""
        if served is None or self._is_ending:
            return None
        if isinstance(served, Reply):
            return self._sender.send_at_once(tuple(served.wire()))
        return partial(self._sender.send_all, (encode_response(served),))


def _decodable(frames: Iterator[memoryview], seen: list[Request]) -> Iterator[Request]:
    """The requests up to one that cannot be decoded; its error is raised when its turn comes."""
    with suppress(LogError):
        for frame in frames:
            seen.append(decode_request(frame))
            yield seen[-1]
