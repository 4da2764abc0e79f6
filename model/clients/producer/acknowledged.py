"""A producer of 0.8 that waits for acknowledgements: it finds the leader, sends, and retries.

One task sends the messages of a partition, in order; each batch is sent until the leader has
confirmed it or the tries are over. Kafka 0.8.2.2: the synchronous producer, with
`message.send.max.retries` and `retry.backoff.ms` as shipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition, emit, sleep
from watchkeeper.model.actor.rpc import Call, CallError
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.requests import (
    Appended,
    AppendRecords,
    DescribeTopic,
    ErrorCode,
    TopicMetadata,
)
from watchkeeper.model.trace.kinds import EventKind

TIMEOUT_MS = 10_000
"""`request.timeout.ms`."""
TRIES = 4
"""The first try and `message.send.max.retries`."""
BACKOFF_MS = 100
"""`retry.backoff.ms`."""


@dataclass(slots=True)
class AcknowledgedProducer:
    """The producers of one process."""

    brokers: Sequence[str]
    """`metadata.broker.list`: the addresses of some brokers."""
    acks: int
    leaders: dict[Partition, int] = field(default_factory=dict)
    addresses: dict[int, str] = field(default_factory=dict)
    _next: int = 0

    async def send(self, partition: Partition, numbers: tuple[int, ...]) -> None:
        """Send messages; the trace has the outcome."""
        for attempt in range(TRIES):
            if attempt:
                await sleep(BACKOFF_MS)
                self.leaders.pop(partition, None)
            appended = await self._send_once(partition, numbers)
            if appended is not None and appended.error is ErrorCode.NONE:
                await _note(
                    EventKind.ACKNOWLEDGED, partition, numbers, self.acks, start=appended.offset
                )
                return
        await _note(EventKind.NOT_ACKNOWLEDGED, partition, numbers, self.acks)

    async def _send_once(self, partition: Partition, numbers: tuple[int, ...]) -> Appended | None:
        if partition not in self.leaders:
            await self._refresh(partition.topic)
        address = self.addresses.get(self.leaders.get(partition, NO_LEADER))
        if address is None:
            return None
        request = AppendRecords(partition, numbers, self.acks, TIMEOUT_MS)
        try:
            appended: Appended = await Call(address, request, TIMEOUT_MS + BACKOFF_MS)
        except CallError:
            return None
        return appended

    async def _refresh(self, topic: str) -> None:
        """Ask the next broker that answers who leads the partitions of a topic."""
        for _ in self.brokers:
            address = self.brokers[self._next % len(self.brokers)]
            self._next += 1
            try:
                found: TopicMetadata = await Call(address, DescribeTopic(topic), TIMEOUT_MS)
            except CallError:
                continue
            self.leaders.update(found.leaders)
            self.addresses.update(found.alive)
            return


async def _note(
    kind: EventKind, partition: Partition, numbers: tuple[int, ...], acks: int, **more: int
) -> None:
    await emit(
        kind,
        topic=partition.topic,
        partition=partition.name,
        numbers=list(numbers),
        acks=acks,
        **more,
    )
