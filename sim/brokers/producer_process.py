"""The producers of a simulated world: one process each, which sends the loads of a timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from watchkeeper.model.clients.compositions.load_generator import LoadGenerator
from watchkeeper.model.clients.compositions.load_producer import load_messages, load_producer
from watchkeeper.model.log.format.contents import Series
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.plan.plan import ProducerPlan
from watchkeeper.sim.process.tasks import Tasks


class ProducerProcess:
    """The process of a producer, and the loads that it sends."""

    def __init__(self, plan: ProducerPlan, tasks: Tasks) -> None:
        self.plan = plan
        self.tasks = tasks
        self.producer = load_producer(plan)
        self.sendings: dict[Load, LoadGenerator] = {}

    def close(self, then: Callable[[], None]) -> None:
        """Send the batches that wait, then call `then`."""
        for sending in self.sendings.values():
            sending.is_running = False
        self.tasks.start("close", self._close(then))

    async def _close(self, then: Callable[[], None]) -> None:
        await self.producer.close()
        then()


class Producers:
    """The producers of a world and the loads that they share."""

    def __init__(self, plans: Iterable[ProducerPlan]) -> None:
        self.plans = {plan.node: plan for plan in plans}
        self.running: dict[str, ProducerProcess] = {}
        self._next: dict[str, int] = {}
        """Producer -> the number of its next message. A restarted process continues the count."""
        self._loads: dict[Load, tuple[str, str]] = {}
        """Load -> its topic, and the set of producers that share it."""

    def start(self, plan: ProducerPlan, tasks: Tasks) -> None:
        """Let a producer whose process has started send its share of every load."""
        process = self.running[plan.node] = ProducerProcess(plan, tasks)
        for load in self._loads:
            self._begin(process, load)

    def end(self, name: str) -> None:
        """Forget a producer whose process has ended."""
        process = self.running.pop(name, None)
        if process is not None:
            process.tasks.end()

    # --- loads -------------------------------------------------------------------------

    def produce(self, topic: str, load: Load, named: str | None, cluster: str) -> None:
        """Send a load from now on, shared by the named producers or by the first of a cluster."""
        of_cluster = [plan.set for plan in self.plans.values() if plan.cluster == cluster]
        self._loads[load] = (topic, named or of_cluster[0])
        for process in self.running.values():
            self._begin(process, load)

    def cease(self, load: Load) -> None:
        """Stop sending a load."""
        del self._loads[load]
        for process in self.running.values():
            sending = process.sendings.pop(load, None)
            if sending is not None:
                sending.is_running = False

    def _begin(self, process: ProducerProcess, load: Load) -> None:
        topic, named = self._loads[load]
        plan = process.plan
        if plan.set != named:
            return
        share = sum(1 for other in self.plans.values() if other.set == named)
        sending = LoadGenerator(
            process.producer,
            topic,
            load.rate_per_1000_s // share,
            make=load_messages(plan, partial(_series, plan.name, load.size_bytes)),
            numbers=partial(self._numbers, plan, load),
            keys=plan.keys,
        )
        process.sendings[load] = sending
        process.tasks.start(f"send to {topic}", sending.run())

    def _numbers(self, plan: ProducerPlan, load: Load, count: int) -> int:
        load.flows()
        first = self._next.get(plan.node, plan.first_number)
        self._next[plan.node] = first + count
        return first


def _series(producer: str, payload_bytes: int, first: int, count: int) -> Series:
    return Series(producer, first, count, payload_bytes)
