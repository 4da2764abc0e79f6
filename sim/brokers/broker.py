"""A simulated broker: a process that serves requests from the logs on its host's disk.

The host outlives the process: what was written is in its pagecache or on its disk when the
process starts again. Each connection has a thread of its own, which reads a request, serves
it through `model.serving`, and sends what it is answered with before it reads the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from model.asks import Partition, sleep
from model.clients.identities import lots_in
from model.log.contents import Contents
from model.log.errors import LogError
from model.log.folders import partition_of
from model.log.log import Appended, View
from model.log.logs import Logs, Started
from model.log.requests import encode_response
from model.log.settings import FIRST_CLEANUP_MS, BrokerLogSettings
from model.log.storage import Send, StorageError
from model.plan import StoragePlan
from model.registry import partition_07
from model.serving import Reply, Serving
from sim.calls import Calls, Link
from sim.crashing import Lost
from sim.gauges import Gauges
from sim.machine import MACHINES, Connection
from sim.node import Node
from sim.storage import Storage
from sim.threads import Threads
from sim.work import Receive, Transmit


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
    """What a broker's process is told to be."""

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
        self.logs = Logs(announced.settings)
        self.serving = Serving(self.logs, self._stored)
        self.threads = Threads(node, host.calls, host.storage)
        self.gauges = Gauges(node.kernel, node.name, host.storage.files)
        self.on_ready: Callable[[], object] | None = None
        """Called when it has recovered its logs and listens."""
        self.on_failed: Callable[[str], object] | None = None
        """Called when it cannot go on, with the reason."""
        self.on_topic: Callable[[str], None] | None = None
        """Called when something is stored of a topic for the first time."""
        host.broker = self

    @property
    def node(self) -> str:
        """Whose port it is."""
        return self.client_node.name

    # --- life --------------------------------------------------------------------------

    def start(self) -> None:
        """Open the logs, and listen when that is done."""
        self.threads.start("open", self._open())

    async def _open(self) -> None:
        try:
            started = await self.logs.start()
        except (LogError, StorageError) as error:
            self._fail(error)
            return
        self._write_opened(started)
        self.host.calls.listen(self.announced.address, self)
        self.threads.start("flush", self._flush_from_time_to_time())
        self.threads.start("clean", self._clean_from_time_to_time())
        self.threads.start("tell", self.gauges.tell_from_time_to_time())
        if self.on_ready is not None:
            self.on_ready()

    async def _flush_from_time_to_time(self) -> None:
        while True:
            await sleep(self.announced.settings.flush_check_ms)
            try:
                await self.serving.flush_due()
            except StorageError as error:
                self._fail(error)
                return

    async def _clean_from_time_to_time(self) -> None:
        pause_ms = FIRST_CLEANUP_MS
        while True:
            await sleep(pause_ms)
            pause_ms = self.announced.settings.cleanup_ms
            try:
                deleted = await self.serving.delete_old()
            except StorageError as error:
                self._fail(error)
                return
            for segment in deleted:
                self._write("segment deleted", {"path": segment.path, "size": segment.size_bytes})

    def close(self, then: Callable[[], None]) -> None:
        """Stop listening, flush everything, say on the disk that this was done; and then?"""
        self.host.calls.close(self.announced.address, is_host_lost=False)
        self.threads.start("close", self._close(then))

    async def _close(self, then: Callable[[], None]) -> None:
        try:
            await self.logs.close()
        except (LogError, StorageError) as error:
            self._write("broker fails", {"why": str(error)})
        then()

    def end(self, *, is_host_lost: bool = False) -> None:
        """The process is gone."""
        self.host.calls.close(self.announced.address, is_host_lost=is_host_lost)
        self.host.broker = None
        self.gauges.tell()
        self.threads.end()

    def _fail(self, error: Exception) -> None:
        """What a disk has done wrong is not survived: nobody knows what it holds."""
        self._write("broker fails", {"why": str(error)})
        if self.on_failed is not None:
            self.on_failed(str(error))

    # --- requests ----------------------------------------------------------------------

    def arrived(self, link: Link) -> None:
        """A request has come over a connection: serve what it has sent, in order."""
        if not link.is_served:
            link.is_served = True
            self.threads.start(f"serve {link.client}", self._serve(link))

    async def _serve(self, link: Link) -> None:
        to = Connection(self.host.storage.machine)
        while link.inbox:
            request, size = link.inbox.popleft()
            await Receive(size)
            link.read(size)
            try:
                response = await self._respond(request, to)
            except LogError as error:
                self._write("request refused", {"of": link.client, "why": str(error)})
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
        response = served.response(self._peek)
        for part in served.wire():
            if isinstance(part, bytes):
                await Transmit(part, to)
            else:
                await _send(part, to)
        return response

    def _peek(self, view: View) -> Contents:
        """What is in a part of a file; what it costs to send it is asked for separately."""
        file = self.host.storage.files.tree.file(view.path)
        return file.read(view.at, view.size_bytes)

    # --- the trace ---------------------------------------------------------------------

    def _stored(self, topic: str, index: int, contents: Contents, appended: Appended) -> None:
        if self.on_topic is not None:
            self.on_topic(topic)
        partition = partition_07(topic, self.announced.broker_id, index)
        lots = [list(lot) for lot in lots_in(contents, appended.offset)]
        self._write("stored", {"lots": lots}, partition)

    def _write_opened(self, started: Started) -> None:
        """Say of each log where it ends: the end of the host may have cut it."""
        for log in self.logs.all():
            key = partition_of(log.folder)
            assert key is not None, "a log has the folder of its partition"
            partition = partition_07(key[0], self.announced.broker_id, key[1])
            detail = {"start": log.start, "end": log.end, "clean": started.was_clean}
            self._write("opened", detail, partition)

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


async def _send(view: View, to: Connection) -> None:
    sent = 0
    while sent < view.size_bytes:
        sent += await Send(view.path, view.at + sent, view.size_bytes - sent, to)
