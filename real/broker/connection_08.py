"""One connection of a broker of 0.8: its requests are answered in order.

A fetch that has its messages is answered at once, in the callback of the event loop. What has to
wait, for the disk, for ZooKeeper or for messages, waits in the task of the connection, and the
next request of the connection with it, as in Kafka.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any

from watchkeeper.model.broker_08.request_handler import Answer, Found, Late, Serving08
from watchkeeper.model.log.format.frames import WireStruct
from watchkeeper.model.log.format.requests import encode_response
from watchkeeper.model.wire_08.fetch import FetchRequest
from watchkeeper.model.wire_08.table import decode_request
from watchkeeper.real.broker.framed_connection import FramedConnection
from watchkeeper.real.broker.sender import Rest
from watchkeeper.real.process.tasks import Done, Paused, Tasks
from watchkeeper.real.storage.file_storage import FileStorage


class BrokerConnection08(FramedConnection):
    """The requests of one connection."""

    def __init__(
        self,
        connection: socket.socket,
        storage: FileStorage,
        serving: Serving08,
        tasks: Tasks,
        *,
        limit_bytes: int,
    ) -> None:
        super().__init__(connection, storage, tasks, limit_bytes=limit_bytes)
        self._serving = serving

    def _begin(self, frames: Iterator[memoryview]) -> tuple[int, Rest | None]:
        """Begin a request as far as it need not wait; return the remaining work."""
        header, request = decode_request(next(frames))
        if self._is_ending:
            return 1, _nothing
        return 1, self._begin_work(request, self._serving.answer(header, request))

    def _begin_work(self, request: WireStruct, body: Coroutine[Any, Any, Answer]) -> Rest | None:
        step = self._tasks.go_on(body, self)
        if isinstance(step, Done):
            return self._answer(step.value)
        if isinstance(request, FetchRequest):
            return partial(self._unless_left, self._finish(step))
        self.is_serving = True
        return partial(self._finish, step)

    async def _unless_left(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Wait for something, unless the client closes the connection: it may say for weeks."""
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        with self._frames.noticing_end(task.cancel):
            await waiting

    async def _finish(self, paused: Paused[Answer]) -> None:
        try:
            answer = await self._tasks.run(paused.body, self, paused.answered)
        finally:
            self.is_serving = False
        rest = self._answer(answer)
        if rest is not None:
            await rest()

    def _answer(self, answer: Answer) -> Rest | None:
        """Send an answer, if there is one; return the remaining work."""
        if answer is None:
            return None
        if isinstance(answer, Found):
            return self._sender.send_at_once(tuple(answer.wire()))
        if isinstance(answer, Late):
            return partial(self._unless_left, self._send_late(answer))
        return self._sender.send_at_once((encode_response(answer),))

    async def _send_late(self, late: Late) -> None:
        await asyncio.sleep(late.delay_ms / 1000)
        await self._sender.send_all((encode_response(late.response),))


async def _nothing() -> None:
    """A request that comes too late is not served."""
