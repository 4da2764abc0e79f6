"""A load on a topic of a replicated cluster: messages at a rate, evenly over the partitions.

The load asks brokers which partitions the topic has. One task sends the messages of a partition;
messages that have become due since the last time go out together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition, now_ms, sleep
from watchkeeper.model.actor.tasks import Start
from watchkeeper.model.clients.leader_table import LeaderTable
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
    rate_per_1000_s: int
    acks: int
    flows: Callable[[], object]
    """Called when messages are sent."""
    is_running: bool = True

    async def run(self) -> None:
        """Start to send, once a broker knows the partitions of the topic."""
        leaders = LeaderTable(self.writer.brokers)
        begun_ms = await now_ms()
        while self.is_running:
            await leaders.refresh(self.topic)
            partitions = leaders.partitions_of(self.topic)
            if partitions:
                for index, partition in enumerate(partitions):
                    share = _Share(index, len(partitions), begun_ms)
                    await Start(f"write {partition}", partial(self._write, partition, share))
                return
            await sleep(EVERY_MS)

    async def _write(self, partition: Partition, share: _Share) -> None:
        """Send the messages of a partition."""
        producer = AcknowledgedProducer(self.writer.brokers, self.acks)
        sent = 0
        while self.is_running:
            due = self.rate_per_1000_s * (await now_ms() - share.begun_ms) // 1_000_000
            mine = (due - share.nth + share.of - 1) // share.of - sent
            if mine > 0:
                first = self.writer.sent[partition]
                self.writer.sent[partition] += mine
                sent += mine
                self.flows()
                await producer.send(partition, tuple(range(first, first + mine)))
            await sleep(EVERY_MS)


class _Share(NamedTuple):
    """The share of a partition in a load."""

    nth: int
    of: int
    begun_ms: int
