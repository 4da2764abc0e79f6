"""A simulated broker: a process that serves requests from the logs on its host's disk.

The host outlives the process: what was written is in its pagecache or on its disk when the
process starts again. Each connection has a task of its own, which reads a request, serves
it through `watchkeeper.model.broker.request_handler`, and sends the response before it reads
the next one.

A broker that leaves in good order accepts no further request, finishes those under way and
the periodic work under way, and closes its logs only then: a log has one writer at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from watchkeeper.model.actor.effects import Partition, sleep
from watchkeeper.model.broker.request_handler import Reply, Serving
from watchkeeper.model.delivery.message_id import ranges_in
from watchkeeper.model.log.folder_names import partition_of
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.requests import (
    FetchResponse,
    MultiFetchResponse,
    encode_response,
)
from watchkeeper.model.log.log import AppendResult, FileView
from watchkeeper.model.log.log_manager import LogManager, StartReport
from watchkeeper.model.log.settings import FIRST_CLEANUP_MS, BrokerLogSettings
from watchkeeper.model.log.storage import NoSuchFile, Send, StorageError
from watchkeeper.model.plan.plan import StoragePlan
from watchkeeper.model.registry.paths import partition_07
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.sim.brokers.metrics import HostMetrics
from watchkeeper.sim.disk.host_costs import MACHINES, Connection
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.rpc import Calls, Link
from watchkeeper.sim.process.tasks import Tasks
from watchkeeper.sim.storage.crash import Lost
from watchkeeper.sim.storage.host_effects import Receive, Transmit
from watchkeeper.sim.storage.storage import Storage

T = TypeVar("T")


class Gone(Exception):
    """A file was deleted while a part of it was sent: the peer would wait for the rest."""


class BrokerHost:
    """The machine of a broker; its disk and its pagecache outlive the broker's process."""

    def __init__(self, node: str, plan: StoragePlan, calls: Calls) -> None:
        profile = MACHINES[plan.machine]
        if plan.memory_bytes:
            profile = replace(profile, memory_bytes=plan.memory_bytes)
        self.node = node
        self.plan = plan
        self.calls = calls
        self.storage = Storage(calls.kernel, profile, node)
        self.storage.has_sendfile = plan.sends_files
        self.broker: Broker | None = None
        """The process that runs on it."""

    def lose_power(self) -> tuple[Lost, ...]:
        """The machine is lost, with whatever its disk does not have; what that was."""
        return self.storage.lose_power()


@dataclass(frozen=True, slots=True)
class Announced:
    """The identity and settings of a broker's process."""

    broker_id: int
    address: str
    settings: BrokerLogSettings


class Broker:
    """A process that serves requests."""

    def __init__(self, node: Node, host: BrokerHost, announced: Announced) -> None:
        self.kernel = node.kernel
        self.client_node = node
        self.host = host
        self.announced = announced
        self.logs = LogManager(announced.settings)
        self.serving = Serving(self.logs, self._stored, self._deleted)
        self.tasks = Tasks(node, host.calls, host.storage)
        self.metrics = HostMetrics(node.kernel, node.name, host.storage.files)
        self.on_ready: Callable[[], object] | None = None
        """Called when it has recovered its logs and listens."""
        self.on_failed: Callable[[str], object] | None = None
        """Called when it cannot go on, with the reason."""
        self.on_topic: Callable[[str], None] | None = None
        """Called when something is stored of a topic for the first time."""
        self.deleted: dict[str, None] = {}
        """The deleted topics whose logs are still on the disk."""
        self._is_open = False
        self._closed: Callable[[], None] | None = None
        """What to call when the logs are closed; None until the broker has a command to end."""
        self._under_way = 0
        """How many requests and periodic jobs use the logs."""
        host.broker = self

    @property
    def node(self) -> str:
        """Whose port it is."""
        return self.client_node.name

    # --- life --------------------------------------------------------------------------

    def start(self) -> None:
        """Open the logs, and listen when that is done."""
        self.tasks.start("open", self._open())

    async def _open(self) -> None:
        try:
            started = await self.logs.start(tuple(self.deleted))
        except (LogError, StorageError) as error:
            self._fail(error)
            return
        self.deleted.clear()
        self._is_open = True
        self._write_opened(started)
        self.host.calls.listen(self.announced.address, self)
        self.tasks.start("flush", self._flush_from_time_to_time())
        self.tasks.start("clean", self._clean_from_time_to_time())
        self.tasks.start("tell", self.metrics.sample_regularly())
        if self.on_ready is not None:
            self.on_ready()

    async def _flush_from_time_to_time(self) -> None:
        while True:
            await sleep(self.announced.settings.flush_check_ms)
            if self._closed is not None:
                return
            try:
                await self._work(self.serving.flush_due())
            except StorageError as error:
                self._fail(error)
                return

    async def _clean_from_time_to_time(self) -> None:
        pause_ms = FIRST_CLEANUP_MS
        while True:
            await sleep(pause_ms)
            if self._closed is not None:
                return
            pause_ms = self.announced.settings.cleanup_ms
            try:
                deleted = await self._work(self.serving.delete_old())
            except StorageError as error:
                self._fail(error)
                return
            for segment in deleted:
                self._write(
                    EventKind.SEGMENT_DELETED, {"path": segment.path, "size": segment.size_bytes}
                )

    def delete_topic(self, topic: str) -> None:
        """Delete the logs of a topic; a process that does not serve leaves it to the next."""
        if self._is_open and self._closed is None:
            self.tasks.start(f"delete {topic}", self._delete_topic(topic))

    async def _delete_topic(self, topic: str) -> None:
        try:
            await self._work(self.serving.delete_topic(topic))
        except LogError as error:
            self._write(EventKind.REQUEST_REFUSED, {"of": "delete_topic", "why": str(error)})
        except StorageError as error:
            self._fail(error)
        else:
            self.deleted.pop(topic, None)

    async def _work(self, work: Awaitable[T]) -> T:
        """Do work that uses the logs: they are closed only when none is under way."""
        self._under_way += 1
        try:
            done = await work
        except Exception:  # not where the process ends: its logs stay as they are
            self._end_work()
            raise
        self._end_work()
        return done

    def _end_work(self) -> None:
        self._under_way -= 1
        self._close_when_idle()

    def close(self, then: Callable[[], None]) -> None:
        """Accept no request, finish those under way, close the logs, and call `then`."""
        self.host.calls.close(self.announced.address, is_host_lost=False)
        self._closed = then
        self._close_when_idle()

    def _close_when_idle(self) -> None:
        if self._closed is not None and not self._under_way:
            self.tasks.start("close", self._close(self._closed))

    async def _close(self, then: Callable[[], None]) -> None:
        try:
            await self.logs.close()
        except (LogError, StorageError) as error:
            self._write(EventKind.BROKER_FAILED, {"why": str(error)})
        then()

    def end(self, *, is_host_lost: bool = False) -> None:
        """The process is gone."""
        self.host.calls.close(self.announced.address, is_host_lost=is_host_lost)
        self.host.broker = None
        self.metrics.sample()
        self.tasks.end()

    def _fail(self, error: Exception) -> None:
        """A disk error ends the process: what the disk holds is unknown."""
        self._write(EventKind.BROKER_FAILED, {"why": str(error)})
        if self.on_failed is not None:
            self.on_failed(str(error))

    # --- requests ----------------------------------------------------------------------

    def arrived(self, link: Link) -> None:
        """A request has come over a connection: serve what it has sent, in order."""
        if not link.is_served:
            link.is_served = True
            self.tasks.start(f"serve {link.client}", self._serve(link))

    async def _serve(self, link: Link) -> None:
        to = Connection(self.host.storage.machine)
        while link.inbox:
            request, size = link.inbox.popleft()
            await Receive(size)
            link.read(size)
            if self._closed is not None:
                return
            try:
                response = await self._work(self._respond(request, to))
            except Gone:
                link.reset()
                return
            except LogError as error:
                self._write(EventKind.REQUEST_REFUSED, {"of": link.client, "why": str(error)})
                link.reset()
                return
            except StorageError as error:
                self._fail(error)
                return
            if response is not None:
                link.respond(response)
        link.is_served = False

    async def _respond(self, request: Any, to: Connection) -> Any:
        served = await self.serving.answer(request)
        if not isinstance(served, Reply):
            if served is not None:
                await Transmit(encode_response(served), to)
            return served
        response = self._values_of(served)
        for part in served.wire():
            if isinstance(part, bytes):
                await Transmit(part, to)
            else:
                await _send(part, to)
        return response

    def _values_of(self, served: Reply) -> FetchResponse | MultiFetchResponse:
        """Look into the files; Gone where the deletion of their topic is under way."""
        try:
            return served.response(self._peek)
        except NoSuchFile as error:
            raise Gone(str(error)) from error

    def _peek(self, view: FileView) -> Contents:
        """What is in a part of a file; what it costs to send it is a separate question."""
        file = self.host.storage.files.tree.file(view.path)
        return file.read(view.at, view.size_bytes)

    # --- the trace ---------------------------------------------------------------------

    def _stored(self, topic: str, index: int, contents: Contents, appended: AppendResult) -> None:
        if self.on_topic is not None and not self.serving.is_retired(topic, index):
            self.on_topic(topic)
        partition = partition_07(topic, self.announced.broker_id, index)
        ranges = [list(message_range) for message_range in ranges_in(contents, appended.offset)]
        self._write(EventKind.STORED, {"ranges": ranges}, partition)

    def _deleted(self, topic: str, index: int) -> None:
        """Say of a deleted log that it ends at 0."""
        partition = partition_07(topic, self.announced.broker_id, index)
        self._write(EventKind.LOG_OPENED, {"start": 0, "end": 0, "clean": True}, partition)

    def _write_opened(self, started: StartReport) -> None:
        """Say of each log where it ends: the end of the host may have cut it."""
        for topic, index in started.deleted:
            self._deleted(topic, index)
        for log in self.logs.all():
            key = partition_of(log.folder)
            assert key is not None, "a log has the folder of its partition"
            partition = partition_07(key[0], self.announced.broker_id, key[1])
            detail = {"start": log.start, "end": log.end, "clean": started.was_clean}
            self._write(EventKind.LOG_OPENED, detail, partition)

    def _write(
        self, kind: str, detail: dict[str, Any], partition: Partition | None = None
    ) -> None:
        self.kernel.write(
            self.node,
            kind,
            detail,
            topic=partition.topic if partition is not None else "",
            partition=partition.name if partition is not None else "",
        )


async def _send(view: FileView, to: Connection) -> None:
    sent = 0
    try:
        while sent < view.size_bytes:
            sent += await Send(view.path, view.at + sent, view.size_bytes - sent, to)
    except NoSuchFile as error:
        raise Gone(view.path) from error
