"""Who leads which partition, as any of the registered brokers says.

A consumer of 0.8 knows ZooKeeper alone. It reads the brokers there, and requests the metadata of
its topics from one after the other until one answers; each question begins at another broker.

Kafka 0.8.2.2: ConsumerFetcherManager.LeaderFinderThread, ZkUtils.getAllBrokersInCluster.
"""

from __future__ import annotations

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.errors import ZooKeeperError
from watchkeeper.model.actor.retry import Direct
from watchkeeper.model.actor.rpc import Call, CallError
from watchkeeper.model.group.reads import broker_addresses
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.wire_08.client_request import ClientRequest
from watchkeeper.model.wire_08.metadata import MetadataRequest, MetadataResponse, leaders_in


class RegisteredLeaders:
    """The leaders that one consumer knows."""

    def __init__(self, client_id: str, timeout_ms: int) -> None:
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._addresses: dict[Partition, str] = {}
        self._asked = 0

    async def refresh(self, topic: str) -> None:
        """Learn who leads the partitions of a topic; nothing if no broker answers.

        Without a connection to ZooKeeper, or with a registration that cannot be read, nothing
        is learnt either: the fetcher pauses, and tries again.
        """
        try:
            brokers = await broker_addresses(Direct(), "read brokers")
        except (ZooKeeperError, BadPayload):
            return
        self._asked += 1
        request = ClientRequest(MetadataRequest((topic,)), self._client_id)
        for place in range(len(brokers)):
            address = brokers[(self._asked + place) % len(brokers)]
            try:
                self._learn(await Call(address, request, self._timeout_ms))
                return
            except CallError:
                continue

    def address_of(self, partition: Partition) -> str:
        """Return the address of the leader; empty if none is known."""
        return self._addresses.get(partition, "")

    def forget(self, partition: Partition) -> None:
        """Do not believe any more what was said of a partition."""
        self._addresses.pop(partition, None)

    def _learn(self, found: MetadataResponse) -> None:
        for topic in found.topics:
            for number, address in leaders_in(found, topic).items():
                self._addresses[Partition(topic.topic, str(number))] = address
