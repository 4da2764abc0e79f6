"""The producers of a live run: who there is, and what each of them is to send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.load import Load
from model.plan import ProducerPlan
from real.process import MemberProcess

if TYPE_CHECKING:
    from real.world import World


class Producers:
    """Tells processes what to send; each load has a number."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.plans = {plan.node: plan for plan in world.plan.producers}
        self._loads: dict[int, tuple[Load, str, str]] = {}
        """Number -> what is to be sent, to which topic, and the producers that share it."""
        self._made = 0

    def produce(self, topic: str, load: Load, named: str | None, cluster: str) -> int:
        """Let producers share what is to be sent from now on: those named, or the first."""
        of_cluster = [plan.set for plan in self.plans.values() if plan.cluster == cluster]
        self._made += 1
        self._loads[self._made] = (load, topic, named or of_cluster[0])
        for plan, process in self._running():
            self._begin(plan, process, self._made)
        return self._made

    def cease(self, number: int) -> None:
        """Cease to send what `produce` began."""
        _, _, named = self._loads.pop(number)
        for plan, process in self._running():
            if plan.set == named:
                process.tell(cease=number)

    def has_started(self, name: str) -> None:
        """A producer's process is there: it sends what the others of its name do."""
        process = self.world.running(name)
        if name in self.plans and process is not None:
            for number in self._loads:
                self._begin(self.plans[name], process, number)

    def flows(self, number: int) -> None:
        """The first messages are sent."""
        if number in self._loads:
            self._loads[number][0].flows()

    def _running(self) -> list[tuple[ProducerPlan, MemberProcess]]:
        running = ((plan, self.world.running(name)) for name, plan in self.plans.items())
        return [(plan, process) for plan, process in running if process is not None]

    def _begin(self, plan: ProducerPlan, process: MemberProcess, number: int) -> None:
        load, topic, named = self._loads[number]
        if plan.set == named:
            share = sum(1 for one in self.plans.values() if one.set == named)
            process.tell(
                produce=number,
                topic=topic,
                rate_per_1000_s=load.rate_per_1000_s // share,
                size=load.size_bytes,
            )
