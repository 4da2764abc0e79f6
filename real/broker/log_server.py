"""The process of a live broker: an event loop with connections, logs in files, and a clock.

What does not depend on the protocol is here; `server` has the broker of 0.7, `server_08` that of
0.8.

Rules
  - One event loop serves every connection. What waits for the disk (a flush, a new segment, a
    deletion) waits in a thread while the loop continues, except for flushes that take less time
    than passing them to a thread.
  - A request that is invalid or refused closes its connection and writes a line to the broker's
    log. Other connections are not affected.
  - A disk error ends the process, and the next start recovers the logs.
  - A requested end accepts no further request, finishes those under way, flushes, and leaves the
    marker that saves the next start its recovery. Any other end leaves no marker.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Any, Generic, TypeVar

from watchkeeper.model.actor.events import Notification
from watchkeeper.model.broker.upkeep import Upkeep
from watchkeeper.model.log.base_log import BaseLog
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.log_manager import Logs, StartReport
from watchkeeper.model.log.segments import Segment
from watchkeeper.model.log.settings import FIRST_CLEANUP_MS
from watchkeeper.model.log.storage import StorageError
from watchkeeper.real.broker.disk_worker import DiskWorker
from watchkeeper.real.broker.framed_connection import FramedConnection
from watchkeeper.real.broker.settings import BrokerSettings
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.process.tasks import Tasks
from watchkeeper.real.storage.file_storage import FileStorage
from watchkeeper.real.storage.folder_lock import lock_folder

L = TypeVar("L", bound=BaseLog)

LOGGER = logging.getLogger("watchkeeper.broker")
HOST = "127.0.0.1"
BACKLOG = 128
PAUSE_S = 1.0
"""How long no connection is accepted when the system is out of descriptors or memory."""
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class LogServer(ABC, Generic[L]):
    """A broker in the event loop that creates it."""

    def __init__(
        self,
        settings: BrokerSettings,
        logs: Logs[L],
        *,
        remind: Callable[[Notification], object],
        storage: FileStorage | None = None,
        skew_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """`remind` gets notifications of new topics; `storage` must be that of the folder."""
        self.settings = settings
        self.logs = logs
        self.port = settings.port
        """The port, once the broker is open."""
        self._storage = storage or FileStorage(settings.log_dir)
        self._disk = DiskWorker(self._storage.answer)
        self._tasks = Tasks(remind=remind, failed=self._task_failed, skew_ms=skew_ms)
        self._lock = lock_folder(self._storage.root, "another broker works in")
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._is_ending = asyncio.Event()
        self._listener: socket.socket | None = None
        self._connections: dict[asyncio.Task[None], FramedConnection] = {}
        self._timers: list[asyncio.Task[None]] = []
        self._disk.serve(self._tasks)

    @abstractmethod
    def _connection(self, connection: socket.socket) -> FramedConnection:
        """Return the server of a connection that was accepted."""

    @abstractmethod
    def _upkeep(self) -> Upkeep[L]:
        """Return what flushes and deletes from time to time."""

    def _opened(self, started: StartReport) -> None:
        """The logs are open, and no connection was accepted yet."""

    def _refused(self, name: str, error: LogError) -> None:
        """A connection is closed because of what arrived on it."""
        LOGGER.warning("%s is closed: %s: %s", name, type(error).__name__, error)

    def _deleted(self, segment: Segment) -> None:
        """A segment was deleted because of its age or its size."""
        LOGGER.info("%s is deleted: %d bytes", segment.path, segment.size_bytes)

    # --- open and close --------------------------------------------------------------------

    async def open(self, deleted: Collection[str] = ()) -> StartReport:
        """Open the logs, recover them if needed, and listen.

        The logs of `deleted` topics are deleted and not opened.

        Raises a LogError or StorageError if the logs cannot be opened, EnvironmentProblem if the
        port is taken.
        """
        self._listener = bound_socket(self.port)
        self.port = self._listener.getsockname()[1]
        started = await self._tasks.run(self.logs.start(deleted), self)
        self._opened(started)
        self._listener.listen(BACKLOG)
        self._begin(self._accept())
        self._begin(self._repeat(self._flush, self.settings.logs.flush_check_ms))
        self._begin(
            self._repeat(self._clean, self.settings.logs.cleanup_ms, first_ms=FIRST_CLEANUP_MS)
        )
        return started

    async def over(self) -> str:
        """Wait until the broker has to end; return the reason."""
        return await asyncio.shield(self._over)

    def end(self, why: str = "") -> None:
        """Make `over` return, with the reason if the broker cannot continue."""
        if not self._over.done():
            self._over.set_result(why)

    async def close(self) -> None:
        """Finish what is under way, flush everything, and write the marker of a clean end."""
        await self._drain()
        try:
            await self._tasks.run(self.logs.close(), self)
        finally:
            self.abandon()

    async def _drain(self) -> None:
        """Accept no connection and no request, and wait for those being served."""
        self._is_ending.set()
        for task, broker_connection in self._connections.items():
            broker_connection.end()
            # An append that is under way must be finished: the log would end in half a message.
            if not broker_connection.is_serving:
                task.cancel()
        self._timers[0].cancel()
        await asyncio.gather(*self._timers, *self._connections, return_exceptions=True)

    def abandon(self) -> None:
        """Close everything without flushing; what is in the files stays there."""
        if self._listener is not None:
            self._listener.close()
        for task in (*self._timers, *self._connections):
            task.cancel()
        self._disk.close()
        self._storage.close()
        os.close(self._lock)

    # --- connections -------------------------------------------------------------------

    async def _accept(self) -> None:
        assert self._listener is not None, "connections are accepted once the broker is open"
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, (host, port) = await loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                LOGGER.warning("no connection is accepted for %g s: %s", PAUSE_S, error.strerror)
                await asyncio.sleep(PAUSE_S)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._serve_connection(connection, f"{host}:{port}")

    def _serve_connection(self, connection: socket.socket, name: str) -> None:
        broker_connection = self._connection(connection)
        task = asyncio.get_running_loop().create_task(self._serve(broker_connection, name))
        self._connections[task] = broker_connection

        def ended(task: asyncio.Task[None]) -> None:
            self._connections.pop(task).close()

        task.add_done_callback(ended)

    async def _serve(self, broker_connection: FramedConnection, name: str) -> None:
        try:
            await broker_connection.run()
        except LogError as error:
            self._refused(name, error)
        except OSError as error:
            LOGGER.info("%s is gone: %s", name, error.strerror or error)
        except StorageError as error:
            self._fail(error)
        except Exception:
            LOGGER.exception("%s is closed, by a defect of this broker", name)

    # --- periodic work ---------------------------------------------------------------------

    def _begin(self, work: Any) -> None:
        self._timers.append(asyncio.get_running_loop().create_task(work))

    async def _repeat(
        self, work: Callable[[], Awaitable[None]], every_ms: int, first_ms: int | None = None
    ) -> None:
        """Repeat something until this broker ends; it is never interrupted."""
        pause_ms = every_ms if first_ms is None else first_ms
        while not await self._is_over_within(pause_ms):
            pause_ms = every_ms
            try:
                await work()
            except LogError as error:
                LOGGER.error("%s: %s", type(error).__name__, error)
            except StorageError as error:
                self._fail(error)
                return

    async def _is_over_within(self, pause_ms: int) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_ms / 1000):
                await self._is_ending.wait()
        return self._is_ending.is_set()

    async def _flush(self) -> None:
        await self._tasks.run(self._upkeep().flush_due(), self)

    async def _clean(self) -> None:
        for segment in await self._tasks.run(self._upkeep().delete_old(), self):
            self._deleted(segment)

    # --- the end -----------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        self.end(f"{error}; start it again, and it recovers its logs")

    def _task_failed(self, name: str, error: Exception) -> None:
        self.end(f"{name}: {type(error).__name__}: {error}")


def bound_socket(port: int) -> socket.socket:
    """A bound socket that does not listen yet: early connections are refused."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise EnvironmentProblem(
            f"a broker cannot listen on {HOST}:{port}: {error.strerror}; end the process that "
            "has the port, or choose another"
        ) from None
    listener.setblocking(False)
    return listener
