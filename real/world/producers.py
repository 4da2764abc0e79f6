"""The producers of a live run, and their loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.plan.plan import ProducerPlan
from watchkeeper.real.world.process import MemberProcess

if TYPE_CHECKING:
    from watchkeeper.real.world.world import World


class Producers:
    """Distributes loads over producer processes; each load has a number."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.plans = {plan.node: plan for plan in world.plan.producers}
        self._loads: dict[int, tuple[Load, str, str]] = {}
        """Number -> the load, its topic, and the set of producers that share it."""
        self._made = 0

    def produce(self, topic: str, load: Load, named: str | None, cluster: str) -> int:
        """Start a load on a set of producers (the first by default); return its number."""
        of_cluster = [plan.set for plan in self.plans.values() if plan.cluster == cluster]
        self._made += 1
        self._loads[self._made] = (load, topic, named or of_cluster[0])
        for plan, process in self._running():
            self._begin(plan, process, self._made)
        return self._made

    def cease(self, number: int) -> None:
        """Stop a load."""
        _, _, named = self._loads.pop(number)
        for plan, process in self._running():
            if plan.set == named:
                process.send(cease=number)

    def has_started(self, name: str) -> None:
        """A producer's process has started: it takes its share of its set's loads."""
        process = self.world.running(name)
        if name in self.plans and process is not None:
            for number in self._loads:
                self._begin(self.plans[name], process, number)

    def flows(self, number: int) -> None:
        """The first messages of a load were sent."""
        if number in self._loads:
            self._loads[number][0].flows()

    def _running(self) -> list[tuple[ProducerPlan, MemberProcess]]:
        running = ((plan, self.world.running(name)) for name, plan in self.plans.items())
        return [(plan, process) for plan, process in running if process is not None]

    def _begin(self, plan: ProducerPlan, process: MemberProcess, number: int) -> None:
        load, topic, named = self._loads[number]
        if plan.set == named:
            share = sum(1 for producer in self.plans.values() if producer.set == named)
            process.send(
                produce=number,
                topic=topic,
                rate_per_1000_s=load.rate_per_1000_s // share,
                size=load.size_bytes,
            )
