"""Which broker leads which partition, as the brokers say; any of them knows.

Kafka 0.8.2.2: ClientUtils.fetchTopicMetadata, BrokerPartitionInfo. A request for a topic that is
not there creates it, and its leaders are elected some time later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from watchkeeper.model.actor.rpc import Call, CallError
from watchkeeper.model.actor.tasks import below
from watchkeeper.model.clients.errors import NoBrokersForPartition
from watchkeeper.model.wire_08.client_request import ClientRequest
from watchkeeper.model.wire_08.metadata import MetadataRequest, MetadataResponse, leaders_in


class LedPartition(NamedTuple):
    """A partition, and the address of its leader; empty if it has none."""

    partition: int
    address: str


class Leaders:
    """The leaders that one client knows."""

    def __init__(self, brokers: Sequence[str], client_id: str, timeout_ms: int) -> None:
        self._brokers = brokers
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._known: dict[str, tuple[LedPartition, ...]] = {}

    def partitions_of(self, topic: str) -> tuple[LedPartition, ...]:
        """Return the partitions of a topic by their numbers; none if it is not known."""
        return self._known.get(topic, ())

    async def refresh(self, topics: Iterable[str]) -> None:
        """Request the leaders of topics from a random broker, and then from the others.

        Raises `NoBrokersForPartition` if none of them answers.
        """
        wanted = MetadataRequest(tuple(sorted(topics)))
        first = await below(len(self._brokers))
        for address in (*self._brokers[first:], *self._brokers[:first]):
            try:
                request = ClientRequest(wanted, self._client_id)
                self._learn(await Call(address, request, self._timeout_ms))
                return
            except CallError:
                continue
        raise NoBrokersForPartition(
            f"topics {', '.join(wanted.topics)}", f"no answer of {', '.join(self._brokers)}"
        )

    def _learn(self, found: MetadataResponse) -> None:
        for topic in found.topics:
            led = tuple(LedPartition(*pair) for pair in leaders_in(found, topic).items())
            if led or topic.error_code:
                self._known[topic.topic] = led
