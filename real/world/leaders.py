"""0.8: passes the partition leaders in the registry on to the data plane.

The world must never wait for a ZooKeeper that does not answer, because the world is what
restarts it. So all requests are sent at once, and answers that are late are collected by a
later poll. Until then the known leaders stay.
"""

from __future__ import annotations

from time import monotonic

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.interfaces import IAsyncResult

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry.paths import BadPayload, partition_state
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.real.world.data_plane import DataPlane

TIMEOUT_S = 0.02
"""How long a poll waits for answers."""


class Leaders:
    """The leaders of one cluster."""

    def __init__(self, operator: KazooClient, root: str, data: DataPlane) -> None:
        self.operator = operator
        self.root = root
        self.data = data
        self._pending: dict[Partition, IAsyncResult] = {}

    def poll(self) -> None:
        """Request the leaders; pass them to the data plane when all answers have arrived."""
        if not self._pending and self.operator.connected:
            self._send_requests()
        ends = monotonic() + TIMEOUT_S
        for answer in self._pending.values():
            answer.wait(max(ends - monotonic(), 0))
        if self._pending and all(answer.ready() for answer in self._pending.values()):
            pending, self._pending = self._pending, {}
            self._update(pending)

    def _send_requests(self) -> None:
        for topic, homes in self.data.homes.items():
            for index, _ in homes.replicas:
                partition = Partition(topic, str(index))
                path = f"{self.root}{partition_state(partition)}"
                self._pending[partition] = self.operator.get_async(path)

    def _update(self, pending: dict[Partition, IAsyncResult]) -> None:
        leaders = {
            str(partition): self._leader(partition, pending[partition]) for partition in pending
        }
        self.data.lead({name: leader for name, leader in leaders.items() if leader is not None})

    def _leader(self, partition: Partition, answer: IAsyncResult) -> int | None:
        """The leader of a partition; the known one without an answer, None if there is none."""
        if answer.successful():
            data, _ = answer.value
            path = partition_state(partition)
            try:
                return PartitionState.decode(path, data).leader
            except BadPayload:
                return None
        is_gone = isinstance(answer.exception, NoNodeError)
        return None if is_gone else self.data.leaders.get(str(partition))
