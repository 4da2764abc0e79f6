"""A load on a topic of a replicated cluster: messages at a rate, evenly over the partitions.

One task sends the messages of a partition. Messages that have become due since the last time
go out together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition, now_ms, sleep
from watchkeeper.model.clients.producer.acknowledged import AcknowledgedProducer

EVERY_MS = 100
"""How often messages are sent."""


@dataclass(slots=True)
class Writer:
    """What the loads of one process share."""

    brokers: Sequence[str]
    """The addresses of the brokers."""
    sent: Counter[Partition] = field(default_factory=Counter)
    """How many messages each partition was sent: the number of the next one."""


@dataclass(slots=True)
class SteadyLoad:
    """A load, until `is_running` is false."""

    writer: Writer
    topic: str
    size: int
    """How many partitions the topic has."""
    rate_per_1000_s: int
    acks: int
    flows: Callable[[], object]
    """Called when messages are sent."""
    is_running: bool = True

    def partitions(self) -> Iterator[Partition]:
        """Yield the partitions of the topic."""
        return (Partition(self.topic, str(index)) for index in range(self.size))

    async def write(self, partition: Partition) -> None:
        """Send the messages of a partition."""
        producer = AcknowledgedProducer(self.writer.brokers, self.acks)
        index, begun_ms, sent = int(partition.name), await now_ms(), 0
        while self.is_running:
            due = self.rate_per_1000_s * (await now_ms() - begun_ms) // 1_000_000
            mine = (due - index + self.size - 1) // self.size - sent
            if mine > 0:
                first = self.writer.sent[partition]
                self.writer.sent[partition] += mine
                sent += mine
                self.flows()
                await producer.send(partition, tuple(range(first, first + mine)))
            await sleep(EVERY_MS)
