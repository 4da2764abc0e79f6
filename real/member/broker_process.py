"""The process of a live broker that stores messages: its files, requests and registration.

An event loop in a thread of its own serves requests. The program that registers the broker
runs beside it, and starts when the logs are open.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command, CommandKind, Notification
from watchkeeper.model.actor.program import Ended
from watchkeeper.model.delivery.message_id import ranges_in
from watchkeeper.model.log.folder_names import partition_of
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.log import AppendResult
from watchkeeper.model.log.log_manager import LogManager, StartReport
from watchkeeper.model.log.segments import Segment
from watchkeeper.model.log.storage import StorageError
from watchkeeper.model.registry.paths import partition_07
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.broker.server import Broker, Journal
from watchkeeper.real.broker.settings import BrokerSettings
from watchkeeper.real.member.context import MemberContext
from watchkeeper.real.member.job import BrokerRole
from watchkeeper.real.member.unreported_appends import reported_in, trace_files_of, unreported_in
from watchkeeper.real.process.driver import Driver
from watchkeeper.real.process.loop_thread import Loop
from watchkeeper.real.storage.metrics import HostMetrics


def run(context: MemberContext) -> Ended:
    """Open the logs, serve, register, and close the logs when the program ends."""
    job = context.job
    driver = Driver(
        job.program, context.writer, context.connect, None, context.channel, skew_ms=job.skew_ms
    )
    host = _Host(context, driver)
    loop = Loop(f"{job.node} requests")
    loop.begin(host.open()).result()
    context.report(serves=True, without=host.role.deleted)
    context.listen(driver, lambda command: loop.begin(host.change(command)))
    loop.begin(host.watch())
    loop.begin(host.report_metrics())
    ended = driver.run()
    loop.begin(host.close()).result()
    return ended


class _Host:
    """The broker in its event loop."""

    def __init__(self, context: MemberContext, driver: Driver) -> None:
        role = context.job.role
        assert isinstance(role, BrokerRole), "the job of a broker has its role"
        self.context = context
        self.driver = driver
        self.role = role
        self.storage = role.storage(Path(role.root), Path(role.sync_log))
        self.metrics = HostMetrics(self.storage, context.writer)
        self.broker: Broker | None = None

    async def open(self) -> None:
        role, root = self.role, Path(self.role.root)
        settings = BrokerSettings(
            root, broker_id=role.broker_id, port=self.context.job.port, logs=role.settings
        )
        self.broker = Broker(
            settings,
            self._remind,
            journal=_TraceJournal(self.context, role),
            storage=self.storage,
            logs=role.logs,
            skew_ms=lambda: self.driver.skew_ms,
        )
        try:
            await self.broker.open(self.role.deleted)
        except (LogError, StorageError) as error:
            self._fail(str(error))

    async def watch(self) -> None:
        """End the process when the broker cannot continue."""
        assert self.broker is not None, "it is watched when it is open"
        self._fail(await self.broker.over())

    async def report_metrics(self) -> None:
        """Report the state of the broker's files periodically."""
        try:
            await self.metrics.report_periodically()
        except OSError as error:
            self._fail(f"its files could not be looked at: {error}")

    async def change(self, command: Command) -> None:
        """Follow an administrator who creates, grows or deletes a topic."""
        assert self.broker is not None, "orders are handled when it is open"
        if command.kind in (CommandKind.CREATE_TOPIC, CommandKind.ADD_PARTITIONS):
            self.broker.set_partitions(command.topic, command.number)
        elif command.kind is CommandKind.DELETE_TOPIC:
            with suppress(LogError):
                await self.broker.delete_topic(command.topic)
                self.context.report(deleted=command.topic)

    async def close(self) -> None:
        assert self.broker is not None, "what is closed was open"
        try:
            await self.broker.close()
        except (LogError, StorageError) as error:
            self._fail(str(error))
        self.metrics.report()

    def _remind(self, notification: Notification) -> None:
        """A topic was created: the program registers it, and the world is informed."""
        self.driver.queue.put(notification)
        if isinstance(notification, Command):
            self.context.report(topic=notification.topic, partitions=notification.number)

    def _fail(self, why: str) -> NoReturn:
        """End the process: after a failed disk operation the contents of the disk are unknown."""
        self.context.writer.write(EventKind.BROKER_FAILED, {"why": why})
        self.context.report(fails=why)
        os._exit(1)


class _TraceJournal(Journal):
    """Writes what the broker does into the trace."""

    def __init__(self, context: MemberContext, role: BrokerRole) -> None:
        self.writer = context.writer
        self.broker_id = role.broker_id
        self.root = Path(role.root)
        self.reported = reported_in(trace_files_of(Path(context.job.trace_file)))

    def opened(self, logs: LogManager, started: StartReport) -> None:
        """Write the extent of each log, which the end of the host may have cut."""
        for topic, index in started.deleted:
            self.topic_deleted(topic, index)
        for log in logs.all():
            key = partition_of(log.folder)
            assert key is not None, "a log has the folder of its partition"
            partition = partition_07(key[0], self.broker_id, key[1])
            reported = self.reported.get((partition.topic, partition.name), 0)
            if ranges := [
                list(message_range) for message_range in unreported_in(log, self.root, reported)
            ]:
                self._write(EventKind.STORED, {"ranges": ranges}, partition)
            detail = {"start": log.start, "end": log.end, "clean": started.was_clean}
            self._write(EventKind.LOG_OPENED, detail, partition)

    def stored(self, topic: str, index: int, contents: Contents, appended: AppendResult) -> None:
        """Write which messages were appended, and where."""
        ranges = [list(message_range) for message_range in ranges_in(contents, appended.offset)]
        self._write(
            EventKind.STORED, {"ranges": ranges}, partition_07(topic, self.broker_id, index)
        )

    def topic_deleted(self, topic: str, index: int) -> None:
        """Write that a deleted log ends at 0."""
        detail = {"start": 0, "end": 0, "clean": True}
        self._write(EventKind.LOG_OPENED, detail, partition_07(topic, self.broker_id, index))

    def refused(self, name: str, error: LogError) -> None:
        """Write which connection is closed, and why."""
        self.writer.write(EventKind.REQUEST_REFUSED, {"of": name, "why": str(error)})

    def deleted(self, segment: Segment) -> None:
        """Write which segment was deleted."""
        detail = {"path": segment.path, "size": segment.size_bytes}
        self.writer.write(EventKind.SEGMENT_DELETED, detail)

    def _write(self, kind: str, detail: dict[str, Any], partition: Partition) -> None:
        self.writer.write(kind, detail, topic=partition.topic, partition=partition.name)
