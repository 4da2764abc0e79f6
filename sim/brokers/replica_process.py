"""The replicas of a simulated broker of 0.8: its host, and the process that serves them.

The host outlives the process. What a process has appended is in the pagecache of its host: it
survives the process, and not the host unless it was written back before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from watchkeeper.model.admin.auto_creation import create_missing_topics
from watchkeeper.model.broker_08.replicated_clients import serve_clients
from watchkeeper.model.broker_08.replicated_coordinator import coordinate_groups
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.offset_manager.settings import ReplicatedOffsetSettings
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import BrokerPlan, ClusterPlan
from watchkeeper.model.replication.replica_files import ReplicaFiles
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.service import ENDS_BROKER, answer, open_replicas
from watchkeeper.model.replication.settings import ReplicationSettings
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.wire_08.client_request import ClientRequest
from watchkeeper.sim.disk.host_costs import MACHINES
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.rpc import Calls, Link
from watchkeeper.sim.process.tasks import Tasks
from watchkeeper.sim.storage.filesystem import FileSystem
from watchkeeper.sim.storage.storage import Storage

MACHINE = MACHINES["page"]
"""The machine of each broker."""


class ReplicaProcess:
    """A broker's process that serves replicas."""

    def __init__(
        self,
        node: Node,
        calls: Calls,
        address: str,
        settings: ReplicationSettings,
        offsets: ReplicatedOffsetSettings,
        storage: Storage,
        failed: Callable[[str], object],
    ) -> None:
        """`failed` is called with the reason when it cannot go on."""
        self.process = node
        self.calls = calls
        self.address = address
        self.tasks = Tasks(node, calls, storage)
        self.tasks.ends_process = ENDS_BROKER
        self.tasks.failed = lambda error: self._fail(error, failed)
        self.replicas = Replicas(settings, ReplicaFiles(offsets.compacted_logs), node.clock_ms)
        create_missing_topics(self.replicas)
        coordinate_groups(self.replicas, offsets)
        serve_clients(self.replicas)

    @property
    def node(self) -> str:
        """Whose port it is."""
        return self.process.name

    def start(self, ready: Callable[[], object]) -> None:
        """Open the replicas; then listen, and call `ready`."""
        self.tasks.start("open replicas", self._open(ready))

    async def _open(self, ready: Callable[[], object]) -> None:
        await open_replicas(self.replicas)
        self.calls.listen(self.address, self)
        ready()

    def _fail(self, error: Exception, failed: Callable[[str], object]) -> None:
        """The process ends: what its disk holds is unknown, or may not be cut."""
        self.process.kernel.write(self.node, EventKind.BROKER_FAILED, {"why": str(error)})
        failed(str(error))

    def arrived(self, link: Link) -> None:
        """A request has come over a connection: serve what it has sent, in order."""
        if not link.is_served:
            link.is_served = True
            self.tasks.start(f"serve {link.client}", self._serve(link))

    async def _serve(self, link: Link) -> None:
        while link.inbox:
            request, size_bytes = link.inbox.popleft()
            link.read(size_bytes)
            if isinstance(request, ClientRequest):
                await self._serve_client(link, request)
            else:
                response: Any = await answer(self.replicas, request)
                link.respond(response)
        link.is_served = False

    async def _serve_client(self, link: Link, request: ClientRequest) -> None:
        """Answer a client; a failed request that has no response ends the connection."""
        try:
            response: Any = await answer(self.replicas, request.request)
        except LogError:
            link.reset()
            return
        if request.has_response:
            link.respond(response)

    def close(self, then: Callable[[], None]) -> None:
        """The program is over: write the checkpoint, and call `then`."""
        self.tasks.start("close", self._close(then))

    async def _close(self, then: Callable[[], None]) -> None:
        await self.replicas.write_checkpoint()
        then()

    def end(self, *, is_host_lost: bool) -> None:
        """The process is gone."""
        self.calls.close(self.address, is_host_lost=is_host_lost)
        self.tasks.end()


class ReplicaHosts:
    """The hosts of a cluster that replicates, and the processes on them."""

    def __init__(self, plan: ClusterPlan, calls: Calls) -> None:
        self.plan = plan
        self.calls = calls
        self.storages = {
            broker.node: Storage(calls.kernel, MACHINE, broker.node) for broker in plan.brokers
        }
        self.running: dict[str, ReplicaProcess] = {}

    def start(
        self,
        node: Node,
        plan: BrokerPlan,
        ready: Callable[[], object],
        failed: Callable[[str], object],
    ) -> Tasks:
        """Start a broker's process, ready when its replicas are open; returns its tasks."""
        assert self.plan.replication is not None, "its brokers replicate"
        settings, offsets = self.plan.replication_of(plan), self.plan.replication.offsets
        address = f"{plan.host}:{plan.port}"
        storage = self.storages[node.name]
        process = ReplicaProcess(node, self.calls, address, settings, offsets, storage, failed)
        self.running[node.name] = process
        process.start(ready)
        return process.tasks

    def close(self, node: str, then: Callable[[], None]) -> None:
        """Let a broker that leaves in good order write its checkpoint first."""
        process = self.running.get(node)
        if process is None:
            then()
        else:
            process.close(then)

    def end(self, node: str, *, effect: FaultEffect | None) -> None:
        """A broker's process is gone; with an `effect` its host is lost as well."""
        process = self.running.pop(node, None)
        if process is not None:
            process.end(is_host_lost=effect is not None)
        if effect is not None:
            lost = self.storages[node].lose_power()
            effect.add("bytes lost", sum(loss.lost_bytes for loss in lost))
            effect.add("files torn", sum(1 for loss in lost if loss.zero_bytes))

    def files_of(self, node: str) -> FileSystem:
        """The file system of a broker's host."""
        return self.storages[node].files
