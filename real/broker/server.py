"""A broker of Kafka 0.7, for real: a process that serves five requests from logs in files.

What is done with a request stands in `model.serving`; here are the connections, the disk and
the clock that it asks for.

Rules
  - One event loop serves everybody. What waits for the disk (a flush, a new segment, a
    deletion) waits in a thread, and the loop goes on meanwhile; but for flushes that take
    less time than it takes to hand them over.
  - A request that cannot be read, or is refused, closes the connection that it came over and
    leaves a line in the broker's own log. It changes nothing for anybody else.
  - What a disk has done wrong is not survived: the process ends, and starts with recovery.
  - An end that was asked for takes no further request, finishes those under way, flushes, and
    leaves the marker that saves the next start its recovery. Any other end leaves none.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from model.answers import Note
from model.log import storage as asks
from model.log.contents import Contents
from model.log.errors import LogError
from model.log.log import Appended
from model.log.logs import Logs, Started
from model.log.segments import Segment
from model.log.settings import FIRST_CLEANUP_MS
from model.log.storage import StorageError
from model.serving import Serving
from real.answering import Answering
from real.broker_settings import BrokerSettings
from real.disk_worker import DiskWorker
from real.problems import EnvironmentProblem
from real.storage import FileStorage
from real.threads import NOT_YET, Threads

LOGGER = logging.getLogger("watchkeeper.broker")
HOST = "127.0.0.1"
BACKLOG = 128
PAUSE_S = 1.0
"""How long nobody is let in when there is no room for another connection."""
QUICK = (asks.Append, asks.Read, asks.Listed, asks.Touch)
"""They go to the pagecache; to hand them to a thread costs more than they do."""
SLOW = (
    asks.Flush,
    asks.Truncate,
    asks.CreateFile,
    asks.MakeFolder,
    asks.Delete,
    asks.Rename,
)
"""They wait for the disk."""
SMALL_BYTES = 2 * 1024 * 1024
"""To flush more than that is not quick, however quick others were."""
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Journal:
    """Where a broker says what it does; this one logs what is out of the ordinary."""

    def opened(self, logs: Logs, started: Started) -> None:
        """The logs are open, and nobody has been let in yet."""

    def stored(self, topic: str, index: int, contents: Contents, appended: Appended) -> None:
        """Messages were appended."""

    def refused(self, name: str, error: LogError) -> None:
        """A connection is closed because of what came over it."""
        LOGGER.warning("%s is closed: %s: %s", name, type(error).__name__, error)

    def deleted(self, segment: Segment) -> None:
        """A segment was deleted for its age or for its size."""
        LOGGER.info("%s is deleted: %d bytes", segment.path, segment.size_bytes)


class Broker:
    """A broker at work in the event loop that makes it."""

    def __init__(
        self,
        settings: BrokerSettings,
        remind: Callable[[Note], object],
        *,
        journal: Journal | None = None,
        storage: FileStorage | None = None,
        logs: type[Logs] = Logs,
        skew_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """`remind` hears of topics that come into being; the storage is that of the folder."""
        self.settings = settings
        self.logs = logs(settings.logs)
        self.port = settings.port
        """Where it listens, once it has opened."""
        self._journal = journal or Journal()
        self._storage = storage or FileStorage(settings.log_dir)
        self._disk = DiskWorker(self._storage.answer)
        self._serving = Serving(self.logs, self._journal.stored)
        self._threads = Threads(remind=remind, failed=self._thread_failed, skew_ms=skew_ms)
        self._lock = _lock_folder(self._storage.root)
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._is_ending = asyncio.Event()
        self._listener: socket.socket | None = None
        self._answering: dict[asyncio.Task[None], Answering] = {}
        self._timers: list[asyncio.Task[None]] = []
        for quick in QUICK:
            self._threads.answer_too(quick, self._storage.answer)
        for slow in SLOW:
            self._threads.answer_later(slow, lambda ask, caller: self._disk.ask(ask))
        self._threads.answer_too(asks.Flush, self._flush_if_quick)

    def _flush_if_quick(self, ask: asks.Flush) -> Any:
        is_small = 0 <= ask.size_bytes <= SMALL_BYTES
        return self._disk.do(ask) if is_small and self._disk.is_quick(asks.Flush) else NOT_YET

    # --- life --------------------------------------------------------------------------

    async def open(self) -> Started:
        """Open the logs, recover them if need be, and listen.

        `LogError` or `StorageError` if the logs cannot be opened, EnvironmentProblem if the
        port is not to be had.
        """
        self._listener = _bound(self.port)
        self.port = self._listener.getsockname()[1]
        started = await self._threads.run(self.logs.start(), self)
        self._journal.opened(self.logs, started)
        self._listener.listen(BACKLOG)
        self._begin(self._let_in())
        self._begin(self._from_time_to_time(self._flush, self.settings.logs.flush_check_ms))
        self._begin(
            self._from_time_to_time(
                self._clean, self.settings.logs.cleanup_ms, first_ms=FIRST_CLEANUP_MS
            )
        )
        return started

    async def over(self) -> str:
        """Wait until it cannot go on; why."""
        return await asyncio.shield(self._over)

    def end(self, why: str = "") -> None:
        """Let `over` return, with the reason why it cannot go on, if that is so."""
        if not self._over.done():
            self._over.set_result(why)

    async def close(self) -> None:
        """Finish what is under way, flush everything, and say on the disk that this was done."""
        await self._fall_quiet()
        try:
            await self._threads.run(self.logs.close(), self)
        finally:
            self.abandon()

    async def _fall_quiet(self) -> None:
        """Let in nobody, and take no further request; wait for those that are being served."""
        self._is_ending.set()
        for task, answering in self._answering.items():
            answering.end()
            if not answering.is_serving:
                task.cancel()
        self._timers[0].cancel()
        await asyncio.gather(*self._timers, *self._answering, return_exceptions=True)

    def abandon(self) -> None:
        """Leave everything as it is; what is in the files is in them."""
        if self._listener is not None:
            self._listener.close()
        for task in (*self._timers, *self._answering):
            task.cancel()
        self._disk.close()
        self._storage.close()
        os.close(self._lock)

    # --- connections -------------------------------------------------------------------

    async def _let_in(self) -> None:
        assert self._listener is not None, "it lets nobody in before it has opened"
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, (host, port) = await loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                LOGGER.warning("nobody is let in for %g s: %s", PAUSE_S, error.strerror)
                await asyncio.sleep(PAUSE_S)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._take_in(connection, f"{host}:{port}")

    def _take_in(self, connection: socket.socket, name: str) -> None:
        limit_bytes = self.settings.largest_frame_bytes
        answering = Answering(
            connection, self._storage, self._serving, self._threads, limit_bytes=limit_bytes
        )
        task = asyncio.get_running_loop().create_task(self._serve(answering, name))
        self._answering[task] = answering

        def ended(task: asyncio.Task[None]) -> None:
            self._answering.pop(task).close()

        task.add_done_callback(ended)

    async def _serve(self, answering: Answering, name: str) -> None:
        try:
            await answering.run()
        except LogError as error:
            self._journal.refused(name, error)
        except OSError as error:
            LOGGER.info("%s is gone: %s", name, error.strerror or error)
        except StorageError as error:
            self._fail(error)
        except Exception:
            LOGGER.exception("%s is closed, by a defect of this broker", name)

    # --- from time to time -------------------------------------------------------------

    def _begin(self, work: Any) -> None:
        self._timers.append(asyncio.get_running_loop().create_task(work))

    async def _from_time_to_time(
        self, work: Callable[[], Awaitable[None]], every_ms: int, first_ms: int | None = None
    ) -> None:
        """Do something again and again until this broker ends; it is never cut short."""
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
        await self._threads.run(self._serving.flush_due(), self)

    async def _clean(self) -> None:
        for segment in await self._threads.run(self._serving.delete_old(), self):
            self._journal.deleted(segment)

    # --- the end -----------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        self.end(f"{error}; start it again, and it recovers its logs")

    def _thread_failed(self, name: str, error: Exception) -> None:
        self.end(f"{name}: {type(error).__name__}: {error}")


def _bound(port: int) -> socket.socket:
    """A socket that has its port, and listens later: whoever comes too early is refused."""
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


def _lock_folder(root: str) -> int:
    """Have a folder for oneself for as long as this process lives, or the descriptor."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise EnvironmentProblem(
            f"another broker works in {root}; end that one, or choose another folder"
        ) from None
    return descriptor
