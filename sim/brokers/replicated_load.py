"""What is written to a replicated cluster: one process sends the loads of a timeline."""

from __future__ import annotations

from collections import Counter

from watchkeeper.model.actor.effects import Partition, sleep
from watchkeeper.model.actor.program import Program
from watchkeeper.model.clients.producer.acknowledged import AcknowledgedProducer
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.rpc import Calls
from watchkeeper.sim.process.tasks import Tasks

EVERY_MS = 100
"""How often messages are sent; those that are due go out together."""


class ReplicatedLoad:
    """The process that writes to the topics of a cluster."""

    def __init__(self, plan: ClusterPlan, prefix: str, calls: Calls) -> None:
        self.plan = plan
        node = Node(calls.kernel, f"{prefix}writer", Program(_no_turn, None, None))
        node.is_alive = True
        self.kernel = calls.kernel
        self.tasks = Tasks(node, calls)
        self.brokers = tuple(f"{broker.host}:{broker.port}" for broker in plan.brokers)
        self.loads: dict[Load, None] = {}
        self._sent: Counter[Partition] = Counter()
        """How many messages each partition was sent: the number of the next one."""

    def produce(self, topic: str, load: Load) -> None:
        """Send a load to a topic from now on."""
        self.loads[load] = None
        size = next(each.size for each in self.plan.topics if each.name == topic)
        for index in range(size):
            partition = Partition(topic, str(index))
            self.tasks.start(f"write {partition}", self._write(partition, load, size, index))

    def cease(self, load: Load) -> None:
        """Stop sending a load."""
        del self.loads[load]

    async def _write(self, partition: Partition, load: Load, size: int, index: int) -> None:
        producer = AcknowledgedProducer(self.brokers, load.acks)
        begun_us = self.kernel.now_us
        sent = 0
        while load in self.loads:
            due = load.rate_per_1000_s * (self.kernel.now_us - begun_us) // 1_000_000_000
            mine = (due - index + size - 1) // size - sent
            if mine > 0:
                first = self._sent[partition]
                self._sent[partition] += mine
                sent += mine
                load.flows()
                await producer.send(partition, tuple(range(first, first + mine)))
            await sleep(EVERY_MS)


async def _no_turn(zk: object, me: None, state: None) -> None:
    """A process without a program: its tasks do everything."""
