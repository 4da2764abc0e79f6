"""A live broker of Kafka 0.7: an event loop that serves five requests from logs in files.

`watchkeeper.model.broker.request_handler` decides what a request does; this module provides the
connections, the disk and the clock.
`log_server` has what does not depend on the protocol.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from watchkeeper.model.actor.events import Notification
from watchkeeper.model.broker.request_handler import Serving
from watchkeeper.model.broker.upkeep import Upkeep
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.log import AppendResult, Log
from watchkeeper.model.log.log_manager import LogManager, StartReport
from watchkeeper.model.log.segments import Segment
from watchkeeper.model.log.storage import StorageError
from watchkeeper.real.broker.connection import BrokerConnection
from watchkeeper.real.broker.log_server import HOST, LOGGER, LogServer
from watchkeeper.real.broker.settings import BrokerSettings
from watchkeeper.real.storage.file_storage import FileStorage

__all__ = ["HOST", "Broker", "Journal"]


class Journal:
    """Receives what a broker does; this one logs only exceptional events."""

    def opened(self, logs: LogManager, started: StartReport) -> None:
        """The logs are open, and no connection was accepted yet."""

    def stored(self, topic: str, index: int, contents: Contents, appended: AppendResult) -> None:
        """Messages were appended."""

    def refused(self, name: str, error: LogError) -> None:
        """A connection is closed because of what arrived on it."""
        LOGGER.warning("%s is closed: %s: %s", name, type(error).__name__, error)

    def topic_deleted(self, topic: str, index: int) -> None:
        """A log was deleted with its topic."""
        LOGGER.info("%s-%d is deleted with its topic", topic, index)

    def deleted(self, segment: Segment) -> None:
        """A segment was deleted because of its age or its size."""
        LOGGER.info("%s is deleted: %d bytes", segment.path, segment.size_bytes)


class Broker(LogServer[Log]):
    """A broker of 0.7 in the event loop that creates it."""

    logs: LogManager

    def __init__(
        self,
        settings: BrokerSettings,
        remind: Callable[[Notification], object],
        *,
        journal: Journal | None = None,
        storage: FileStorage | None = None,
        logs: type[LogManager] = LogManager,
        skew_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """`remind` gets notifications of new topics; `storage` must be that of the folder."""
        self._journal = journal or Journal()
        super().__init__(
            settings, logs(settings.logs), remind=remind, storage=storage, skew_ms=skew_ms
        )
        self._serving = Serving(self.logs, self._journal.stored, self._journal.topic_deleted)

    def _connection(self, connection: socket.socket) -> BrokerConnection:
        return BrokerConnection(
            connection,
            self._storage,
            self._serving,
            self._tasks,
            limit_bytes=self.settings.largest_frame_bytes,
        )

    def _upkeep(self) -> Upkeep[Log]:
        return self._serving

    def _opened(self, started: StartReport) -> None:
        self._journal.opened(self.logs, started)

    def _refused(self, name: str, error: LogError) -> None:
        self._journal.refused(name, error)

    def _deleted(self, segment: Segment) -> None:
        self._journal.deleted(segment)

    # --- topics ------------------------------------------------------------------------

    def set_partitions(self, topic: str, count: int) -> None:
        """Let a topic have so many partitions from now on."""
        self.logs.set_partitions(topic, count)

    async def delete_topic(self, topic: str) -> None:
        """Delete the logs of a topic; a broker that is ending does not.

        A storage error ends the broker.
        """
        if self._is_ending.is_set():
            return
        task = asyncio.ensure_future(self._tasks.run(self._serving.delete_topic(topic), self))
        self._timers.append(task)
        try:
            await task
        except StorageError as error:
            self._fail(error)
            raise
