"""The producers of a simulated world: a process each, which sends what the timeline asks for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from model.clients.loading import Sending
from model.clients.producer import Producer
from model.load import Load
from model.log.contents import Series
from model.plan import ProducerPlan
from model.programs import PRODUCER_TIMEOUT_MS, producer_program
from sim.node import Node
from sim.threads import Threads

if TYPE_CHECKING:
    from sim.world import World


class ProducerProcess:
    """A process, and what it sends."""

    def __init__(self, plan: ProducerPlan, threads: Threads) -> None:
        self.plan = plan
        self.threads = threads
        self.producer = Producer(plan.settings, name=plan.name)
        self.sendings: dict[Load, Sending] = {}

    def close(self, then: Callable[[], None]) -> None:
        """Send what is waiting, and then?"""
        for sending in self.sendings.values():
            sending.is_on = False
        self.threads.start("close", self._close(then))

    async def _close(self, then: Callable[[], None]) -> None:
        await self.producer.close()
        then()


class Producers:
    """Every producer of a world, and what is to be sent."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.plans = {plan.node: plan for plan in world.plan.producers}
        self.running: dict[str, ProducerProcess] = {}
        self._next: dict[str, int] = {}
        """Producer -> the number of its next message; it outlives the process."""
        self._loads: dict[Load, tuple[str, str]] = {}
        """What is to be sent -> its topic, and the producers that share it."""

    def start(self, plan: ProducerPlan) -> Node:
        """Start a producer's process."""
        world = self.world
        cluster = world.clusters[plan.cluster]
        node = world.NODE(world.kernel, plan.node, producer_program(plan))
        node.connect_to(cluster.ensemble, PRODUCER_TIMEOUT_MS, resends_watches=True)
        threads = Threads(node, world.calls)
        process = self.running[plan.node] = ProducerProcess(plan, threads)
        world.run_with(node, threads, {"sends to": plan.cluster})
        for load in self._loads:
            self._begin(process, load)
        return node

    def end(self, name: str) -> None:
        """A producer's process is gone."""
        process = self.running.pop(name, None)
        if process is not None:
            process.threads.end()

    # --- loads -------------------------------------------------------------------------

    def produce(self, topic: str, load: Load, named: str | None, cluster: str) -> None:
        """Let producers share what is to be sent from now on: those named, or the first."""
        of_cluster = [plan.set for plan in self.plans.values() if plan.cluster == cluster]
        self._loads[load] = (topic, named or of_cluster[0])
        for process in self.running.values():
            self._begin(process, load)

    def cease(self, load: Load) -> None:
        """Cease to send what `produce` began."""
        del self._loads[load]
        for process in self.running.values():
            sending = process.sendings.pop(load, None)
            if sending is not None:
                sending.is_on = False

    def _begin(self, process: ProducerProcess, load: Load) -> None:
        topic, named = self._loads[load]
        plan = process.plan
        if plan.set != named:
            return
        number = sum(1 for one in self.plans.values() if one.set == named)
        sending = Sending(
            process.producer,
            topic,
            load.rate_per_1000_s // number,
            make=partial(_series, plan.name, load.size_bytes),
            numbers=partial(self._numbers, plan.node, load),
            keys=plan.keys,
        )
        process.sendings[load] = sending
        process.threads.start(f"send to {topic}", sending.run())

    def _numbers(self, node: str, load: Load, count: int) -> int:
        load.flows()
        first = self._next.get(node, 0)
        self._next[node] = first + count
        return first


def _series(producer: str, payload_bytes: int, first: int, count: int) -> Series:
    return Series(producer, first, count, payload_bytes)
