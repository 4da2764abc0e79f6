"""0.8: passes the partition leaders in the registry on to the data plane; finds the controller.

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
from watchkeeper.model.registry.paths import CONTROLLER, BadPayload, partition_state
from watchkeeper.model.registry.payloads import Controller, PartitionState
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
        self._others: dict[Partition, None] = {}
        """The partitions of topics that no plan names, such as that of offsets."""

    def follow(self, partition: Partition) -> None:
        """Request the leader of this partition too, from the next poll on."""
        if partition.topic in self.data.homes or partition in self._others:
            return
        if self._pending:
            self.poll()
        self._others[partition] = None

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
        planned = (
            Partition(topic, str(index))
            for topic, homes in self.data.homes.items()
            for index, _ in homes.replicas
        )
        for partition in (*planned, *self._others):
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


class ControllerPoll:
    """The broker that `/controller` names, as it was read last."""

    def __init__(self, operator: KazooClient, root: str) -> None:
        self.operator = operator
        self.path = f"{root}{CONTROLLER}"
        self.broker_id: int | None = None
        """None if no broker is the controller, as far as is known."""
        self._pending: IAsyncResult | None = None

    def poll(self) -> None:
        """Request the znode, and take the answer to an earlier request."""
        if self._pending is None and self.operator.connected:
            self._pending = self.operator.get_async(self.path)
        if self._pending is None:
            return
        self._pending.wait(TIMEOUT_S)
        if self._pending.ready():
            answer, self._pending = self._pending, None
            self._update(answer)

    def _update(self, answer: IAsyncResult) -> None:
        if answer.successful():
            data, _ = answer.value
            self.broker_id = Controller.broker_in(CONTROLLER, data)
        elif isinstance(answer.exception, NoNodeError):
            self.broker_id = None
