"""What a connection of a broker of either version has: frames in, answers out, in order."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator

from watchkeeper.real.broker.sender import Rest, Sender
from watchkeeper.real.net.frames import Frames
from watchkeeper.real.process.tasks import Tasks
from watchkeeper.real.storage.file_storage import FileStorage


class FramedConnection(ABC):
    """The requests of one connection; a version says how it begins one."""

    def __init__(
        self, connection: socket.socket, storage: FileStorage, tasks: Tasks, *, limit_bytes: int
    ) -> None:
        self._connection = connection
        self._sender = Sender(connection, storage)
        self._tasks = tasks
        self._frames = Frames(connection, self._begin, limit_bytes=limit_bytes)
        self._is_ending = False
        self.is_serving = False
        """Whether a request is being served; it must not be interrupted."""

    def end(self) -> None:
        """Accept no further request."""
        self._is_ending = True

    def close(self) -> None:
        """Close the connection immediately."""
        self._frames.close()
        self._connection.close()

    async def run(self) -> None:
        """Answer requests until the peer closes the connection.

        Raises a LogError that says why the connection has to be closed, or an OSError of the
        connection.
        """
        while (rest := await self._frames.next()) is not None:
            await rest()
            if self._is_ending:
                return

    @abstractmethod
    def _begin(self, frames: Iterator[memoryview]) -> tuple[int, Rest | None]:
        """Begin requests as far as possible; return their number and the remaining work."""
