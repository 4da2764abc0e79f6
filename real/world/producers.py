"""The producers of a live run, and their loads.

A load is shared by a set of producers, or sent by the writer of a cluster that replicates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from watchkeeper.model.nemesis.load import Load
from watchkeeper.real.world.process import MemberProcess

if TYPE_CHECKING:
    from watchkeeper.real.world.world import World


class _Share(NamedTuple):
    """A load, and who sends it."""

    load: Load
    topic: str
    senders: tuple[str, ...]


class Producers:
    """Distributes loads over processes; each load has a number."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.plans = {plan.node: plan for plan in world.plan.producers}
        self.writers = {
            plan.writer(world.plan.prefix_of(plan.name)): plan.name
            for plan in world.plan.clusters
            if plan.replication is not None and not world.plan.senders_to(plan.name)
        }
        """The writer of a cluster -> the cluster."""
        self._loads: dict[int, _Share] = {}
        self._made = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all processes that send messages."""
        return (*self.plans, *self.writers)

    def cluster_of(self, name: str) -> str | None:
        """The cluster to which a process sends; None for one that sends nothing."""
        plan = self.plans.get(name)
        return self.writers.get(name) if plan is None else plan.cluster

    def produce(self, topic: str, load: Load, named: str | None, cluster: str) -> int:
        """Start a load on a set of producers (the first by default); return its number."""
        self._made += 1
        self._loads[self._made] = _Share(load, topic, self._senders(named, cluster))
        for name in self._loads[self._made].senders:
            self._begin(name, self._made)
        return self._made

    def _senders(self, named: str | None, cluster: str) -> tuple[str, ...]:
        writers = [name for name, of in self.writers.items() if of == cluster]
        sets = [plan.set for plan in self.plans.values() if plan.cluster == cluster]
        if writers:
            return tuple(writers)
        return tuple(name for name, plan in self.plans.items() if plan.set == (named or sets[0]))

    def cease(self, number: int) -> None:
        """Stop a load."""
        for process in self._running(self._loads.pop(number).senders):
            process.send(cease=number)

    def has_started(self, name: str) -> None:
        """A process has started: it takes its share of the loads."""
        for number, share in self._loads.items():
            if name in share.senders:
                self._begin(name, number)

    def flows(self, number: int) -> None:
        """The first messages of a load were sent."""
        if number in self._loads:
            self._loads[number].load.flows()

    def _running(self, names: tuple[str, ...]) -> Iterator[MemberProcess]:
        running = (self.world.running(name) for name in names)
        return (process for process in running if process is not None)

    def _begin(self, name: str, number: int) -> None:
        load, topic, senders = self._loads[number]
        for process in self._running((name,)):
            process.send(
                produce=number,
                topic=topic,
                rate_per_1000_s=load.rate_per_1000_s // len(senders),
                size=load.size_bytes,
                acks=load.acks,
            )
