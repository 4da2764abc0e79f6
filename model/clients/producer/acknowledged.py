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
from watchkeeper.model.clients.leader_table import TIMEOUT_MS, LeaderTable
from watchkeeper.model.delivery.ledger import Outcome
from watchkeeper.model.replication.messages import producer_of
from watchkeeper.model.replication.requests import Appended, AppendRecords, ErrorCode
from watchkeeper.model.trace.kinds import EventKind

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
    leaders: LeaderTable = field(init=False)

    def __post_init__(self) -> None:
        self.leaders = LeaderTable(self.brokers)

    async def send(self, partition: Partition, numbers: tuple[int, ...]) -> None:
        """Send messages; the trace has the outcome."""
        for attempt in range(TRIES):
            if attempt:
                await sleep(BACKOFF_MS)
                self.leaders.forget(partition)
            appended = await self._send_once(partition, numbers)
            if appended is not None and appended.error is ErrorCode.NONE:
                await _note(
                    EventKind.ACKNOWLEDGED, partition, numbers, self.acks, start=appended.offset
                )
                await _note_sent(partition, numbers, "accepted")
                return
        await _note(EventKind.NOT_ACKNOWLEDGED, partition, numbers, self.acks)
        await _note_sent(partition, numbers, "unknown")

    async def _send_once(self, partition: Partition, numbers: tuple[int, ...]) -> Appended | None:
        if not self.leaders.knows(partition):
            await self.leaders.refresh(partition.topic)
        address = self.leaders.address_of(partition)
        if not address:
            return None
        request = AppendRecords(partition, numbers, self.acks, TIMEOUT_MS)
        try:
            appended: Appended = await Call(address, request, TIMEOUT_MS + BACKOFF_MS)
        except CallError:
            return None
        return appended


async def _note_sent(partition: Partition, numbers: tuple[int, ...], outcome: Outcome) -> None:
    """Say what became of messages, as producers of 0.7 do; their numbers are consecutive."""
    await emit(
        EventKind.SENT,
        topic=partition.topic,
        producer=producer_of(partition),
        first=numbers[0],
        end=numbers[-1] + 1,
        outcome=outcome,
    )


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
