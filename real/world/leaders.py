"""0.8: tells the data plane of a live run who leads which partition, as the registry has it.

Whoever runs the world must never be kept waiting by a ZooKeeper that does not answer, since
it is the one to bring it back. So all is asked at once, and what has not come at this look
is taken at a later one; until then everybody leads who led.
"""

from __future__ import annotations

from time import monotonic

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.interfaces import IAsyncResult

from model.asks import Partition
from model.payloads import PartitionState
from model.registry import BadPayload, partition_state
from real.dataplane import DataPlane

PATIENCE_S = 0.02
"""How long a look waits for answers."""


class Leaders:
    """The leaders of one cluster."""

    def __init__(self, operator: KazooClient, root: str, data: DataPlane) -> None:
        self.operator = operator
        self.root = root
        self.data = data
        self._asked: dict[Partition, IAsyncResult] = {}

    def look(self) -> None:
        """Ask who leads, and tell the data plane when the answers are there."""
        if not self._asked and self.operator.connected:
            self._ask()
        ends = monotonic() + PATIENCE_S
        for answer in self._asked.values():
            answer.wait(max(ends - monotonic(), 0))
        if self._asked and all(answer.ready() for answer in self._asked.values()):
            asked, self._asked = self._asked, {}
            self._tell(asked)

    def _ask(self) -> None:
        for topic, homes in self.data.homes.items():
            for index, _ in homes.replicas:
                partition = Partition(topic, str(index))
                path = f"{self.root}{partition_state(partition)}"
                self._asked[partition] = self.operator.get_async(path)

    def _tell(self, asked: dict[Partition, IAsyncResult]) -> None:
        leaders = {
            str(partition): self._leader(partition, asked[partition]) for partition in asked
        }
        self.data.lead({name: leader for name, leader in leaders.items() if leader is not None})

    def _leader(self, partition: Partition, answer: IAsyncResult) -> int | None:
        """Who leads a partition; None if nobody does, whom we knew if there is no answer."""
        if answer.successful():
            data, _ = answer.value
            path = partition_state(partition)
            try:
                return PartitionState.decode(path, data).leader
            except BadPayload:
                return None
        is_gone = isinstance(answer.exception, NoNodeError)
        return None if is_gone else self.data.leaders.get(str(partition))
