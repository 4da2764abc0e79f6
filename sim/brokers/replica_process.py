"""The replicas of a simulated broker of 0.8: its disk, and the process that serves them.

The disk outlives the process. What a process has appended is in the pagecache of its host: it
survives the process, and not the host unless it was written back before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import BrokerPlan, ClusterPlan
from watchkeeper.model.replication.replica import WRITTEN_BACK_AFTER_MS, ReplicaStore
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.replicas import Replicas, ReplicationSettings
from watchkeeper.model.replication.service import answer, open_replicas
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.rpc import Calls, Link
from watchkeeper.sim.process.tasks import Tasks


class ReplicaDisk(ReplicaStore):
    """The logs and the checkpoint of a broker, and since when each record is there."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._logs: dict[Partition, list[tuple[Record, int]]] = {}
        self._marks: dict[Partition, int] = {}

    def logs(self) -> Mapping[Partition, Sequence[Record]]:
        """Return what is there of each partition when a broker starts."""
        return {partition: [record for record, _ in log] for partition, log in self._logs.items()}

    def high_watermarks(self) -> Mapping[Partition, int]:
        """Return what the checkpoint file has."""
        return self._marks

    def append(self, partition: Partition, start: int, records: Sequence[Record]) -> None:
        """Append records to a log; the first one is at the offset `start`."""
        now = self.kernel.now_us
        self._logs.setdefault(partition, []).extend((record, now) for record in records)

    def truncate(self, partition: Partition, end: int) -> None:
        """Cut a log."""
        del self._logs[partition][end:]

    def delete(self, partition: Partition) -> None:
        """Delete a log."""
        self._logs.pop(partition, None)

    def write_checkpoint(self, marks: Mapping[Partition, int]) -> None:
        """Replace the checkpoint file."""
        self._marks = dict(marks)

    def lose_power(self) -> int:
        """Lose what was not written back; returns the number of records."""
        oldest_us = self.kernel.now_us - WRITTEN_BACK_AFTER_MS * 1_000
        lost = 0
        for log in self._logs.values():
            kept = sum(1 for _, since_us in log if since_us <= oldest_us)
            lost += len(log) - kept
            del log[kept:]
        return lost


class ReplicaProcess:
    """A broker's process that serves replicas."""

    def __init__(
        self,
        node: Node,
        calls: Calls,
        address: str,
        settings: ReplicationSettings,
        disk: ReplicaDisk,
    ) -> None:
        self.process = node
        self.calls = calls
        self.address = address
        self.tasks = Tasks(node, calls)
        self.replicas = Replicas(settings, disk, node.clock_ms)
        self.tasks.start("open replicas", open_replicas(self.replicas))
        calls.listen(address, self)

    @property
    def node(self) -> str:
        """Whose port it is."""
        return self.process.name

    def arrived(self, link: Link) -> None:
        """A request has come over a connection: serve what it has sent, in order."""
        if not link.is_served:
            link.is_served = True
            self.tasks.start(f"serve {link.client}", self._serve(link))

    async def _serve(self, link: Link) -> None:
        while link.inbox:
            request, size_bytes = link.inbox.popleft()
            link.read(size_bytes)
            response: Any = await answer(self.replicas, request)
            link.respond(response)
        link.is_served = False

    def end(self, *, is_host_lost: bool) -> None:
        """The process is gone."""
        self.calls.close(self.address, is_host_lost=is_host_lost)
        self.tasks.end()


class ReplicaHosts:
    """The brokers of a cluster that replicates: their disks, and the processes that run."""

    def __init__(self, plan: ClusterPlan, calls: Calls) -> None:
        self.plan = plan
        self.calls = calls
        self.disks = {broker.node: ReplicaDisk(calls.kernel) for broker in plan.brokers}
        self.running: dict[str, ReplicaProcess] = {}

    def start(self, node: Node, plan: BrokerPlan) -> Tasks:
        """Let a broker's process serve its replicas; returns its tasks."""
        settings = self.plan.replication_of(plan)
        address = f"{plan.host}:{plan.port}"
        process = ReplicaProcess(node, self.calls, address, settings, self.disks[node.name])
        self.running[node.name] = process
        return process.tasks

    def close(self, node: str) -> None:
        """A broker leaves in good order: it writes its checkpoint."""
        if node in self.running:
            self.running[node].replicas.write_checkpoint()

    def end(self, node: str, *, effect: FaultEffect | None) -> None:
        """A broker's process is gone; with an `effect` its host is lost as well."""
        process = self.running.pop(node, None)
        if process is not None:
            process.end(is_host_lost=effect is not None)
        if effect is not None:
            effect.add("records lost", self.disks[node].lose_power())

    def committed(self, node: str, partition: Partition) -> int:
        """The high watermark of a partition at a broker: consumers read below it."""
        process = self.running.get(node)
        replica = None if process is None else process.replicas.by_partition.get(partition)
        return 0 if replica is None else replica.high_watermark
