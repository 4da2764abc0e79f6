"""A live broker of Kafka 0.8: the requests of its clients, from logs in files.

`watchkeeper.model.broker_08.request_handler` decides what a request does. The broker replicates
nothing: it leads the partitions that the registry gives it, or all that it has without one.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from watchkeeper.model.actor.effects import Emit
from watchkeeper.model.actor.errors import ConnectionLoss, Failure
from watchkeeper.model.actor.operations import Operation, Pipelined
from watchkeeper.model.broker.upkeep import Upkeep
from watchkeeper.model.broker_08.cluster import Cluster, SingleBroker
from watchkeeper.model.broker_08.registry import RegistryCluster
from watchkeeper.model.broker_08.request_handler import HandlerSettings, Serving08
from watchkeeper.model.log.folder_names import partition_of
from watchkeeper.model.log.log_manager import StartReport
from watchkeeper.model.log_08.cleaner import Cleaner
from watchkeeper.model.log_08.compaction import Interrupted
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.log_08.manager import KeyedLogs
from watchkeeper.model.replication.settings import AutoCreation
from watchkeeper.model.wire_08.metadata import BrokerEndpoint
from watchkeeper.real.broker.connection_08 import BrokerConnection08
from watchkeeper.real.broker.log_server import HOST, LOGGER, LogServer
from watchkeeper.real.broker.settings_08 import BrokerSettings08

REFRESH_MS = 1000
"""How often the registry is read, beside the reads at metadata requests."""

Operate = Callable[[Any], Awaitable[Any]]
"""Sends an operation to ZooKeeper, and returns its answer."""


class Broker08(LogServer[KeyedLog]):
    """A broker of 0.8 in the event loop that creates it."""

    def __init__(self, settings: BrokerSettings08, *, has_registry: bool) -> None:
        """With a registry, `operate` is set before the broker serves requests."""
        super().__init__(settings, KeyedLogs(settings.logs), remind=_ignore)
        self._own = settings
        self._has_registry = has_registry
        self._registry_gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._serving: Serving08
        self._cleaner: Cleaner
        self._tasks.operate = _not_connected
        self._tasks.answer_immediately(Emit, _log)

    def use(self, operate: Operate) -> None:
        """Send operations to ZooKeeper with this function; until then there is no connection."""
        self._tasks.operate = partial(_unless_gone, operate, self._registry_gone)

    def disconnect(self) -> None:
        """The session with ZooKeeper has ended: nothing answers operations any more."""
        self._registry_gone.set_result(None)
        self._tasks.operate = _not_connected

    async def open(self, deleted: Collection[str] = ()) -> StartReport:
        """Open the logs, recover them if needed, and listen.

        Raises a LogError or StorageError if the logs cannot be opened, EnvironmentProblem if the
        port is taken.
        """
        started = await super().open(deleted)
        self._begin(self._repeat(self._refresh, REFRESH_MS, first_ms=0))
        self._begin(self._repeat(self._expire, self._own.offsets.expiry_check_ms))
        if self._own.cleaner.is_enabled:
            self._begin(self._repeat(self._compact, self._own.cleaner.backoff_ms, first_ms=0))
        return started

    def _opened(self, started: StartReport) -> None:
        settings = HandlerSettings(
            self._own.creates_topics, self._has_registry, self._own.offsets
        )
        cluster = self._cluster()
        self._serving = Serving08(self.logs, self.settings.broker_id, cluster, settings)
        self._cleaner = Cleaner(
            self.logs, self._serving.locked, self._own.cleaner, self._is_ending.is_set
        )

    def _cluster(self) -> Cluster:
        broker, partitions = self.settings.broker_id, self.settings.logs.default.partitions
        if self._has_registry:
            how = AutoCreation(partitions, self._own.replication_factor)
            return RegistryCluster(broker, how)
        me = BrokerEndpoint(broker, HOST, self.port)
        return SingleBroker(me, partitions, self._partitions, self._make_log)

    def _partitions(self) -> Mapping[str, int]:
        """The topics on the disk, with their numbers of partitions."""
        keys = (partition_of(log.folder) for log in self.logs.all())
        highest = Counter[str]()
        for topic, index in filter(None, keys):
            highest[topic] = max(highest[topic], index + 1)
        return highest

    async def _make_log(self, topic: str, index: int) -> None:
        await self._serving.log_of(topic, index)

    async def _refresh(self) -> None:
        await self._tasks.run(self._serving.refresh(), self)

    async def _expire(self) -> None:
        count = await self._tasks.run(self._serving.coordinator.expire(), self)
        if count:
            LOGGER.info("%d committed offsets have expired", count)

    async def _compact(self) -> None:
        """Compact logs, the dirtiest first, until none is dirty enough."""
        with suppress(Interrupted):
            while done := await self._tasks.run(self._cleaner.clean_dirtiest(), self):
                LOGGER.info(
                    "%s is compacted up to offset %d: %d messages, %d bytes less",
                    *(done.folder, done.first_dirty, done.removed_messages, done.removed_bytes),
                )

    def _connection(self, connection: socket.socket) -> BrokerConnection08:
        return BrokerConnection08(
            connection,
            self._storage,
            self._serving,
            self._tasks,
            limit_bytes=self.settings.largest_frame_bytes,
        )

    def _upkeep(self) -> Upkeep[KeyedLog]:
        return self._serving


async def _unless_gone(
    operate: Operate, gone: asyncio.Future[None], effect: Operation[Any] | Pipelined
) -> Any:
    """Perform an operation; one that is under way when the session ends has no answer."""
    answered = asyncio.ensure_future(operate(effect))
    try:
        await asyncio.wait((answered, gone), return_when=asyncio.FIRST_COMPLETED)
        return answered.result() if answered.done() else await _not_connected(effect)
    finally:
        answered.cancel()


async def _not_connected(effect: Operation[Any] | Pipelined) -> Failure:
    path = effect.operations[0].path if isinstance(effect, Pipelined) else effect.path
    return Failure(ConnectionLoss, path, sent=False)


def _ignore(notification: object) -> None:
    """There is no program beside the requests that would read it."""


def _log(effect: Emit) -> None:
    LOGGER.info("%s %s %s", effect.kind, effect.topic or "", dict(effect.detail))
