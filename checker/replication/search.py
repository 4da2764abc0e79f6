"""The search of a replicated partition: the nearest violation of each property in a version.

The partition is one actor of a `System` without faults of its own: delay, loss and repetition
of requests are steps of the partition, and so are brokers that stand still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from watchkeeper.checker.replication.partition import (
    Bounds,
    Partition,
    Step,
    Steps,
    believes_to_lead,
    initial,
)
from watchkeeper.checker.replication.representatives import Representatives
from watchkeeper.checker.search.search import Limits, Search, Searched, SearchOptions, Tell
from watchkeeper.checker.state_space.whole_state import WholeStateSystem
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.variants import ReplicationVariant

Holds = Callable[[Partition], bool]
MembersOf = Callable[[Partition, int], Iterable[int]]
UNLIMITED = Limits()

MEMBERS: dict[str, MembersOf] = {
    "strong ISR": lambda state, number: state.cell.isr,
    "weak ISR": lambda state, number: state.replicas[number].believes.isr,
}
"""Property -> the replicas that have to have what a presumed leader has committed."""


def _agree_below_high_watermark(state: Partition, members_of: MembersOf) -> bool:
    """Whether members have what each presumed leader has below its high watermark."""
    for number, leader in enumerate(state.replicas):
        committed = leader.log[: leader.high_watermark]
        if believes_to_lead(state, number) and any(
            state.replicas[member].log[: len(committed)] != committed
            for member in members_of(state, number)
        ):
            return False
    return True


def _leader_in_isr(state: Partition) -> bool:
    return state.cell.leader in state.cell.isr | {NO_LEADER}


PROPERTIES: dict[str, Holds] = {
    **{
        name: partial(_agree_below_high_watermark, members_of=members_of)
        for name, members_of in MEMBERS.items()
    },
    "leader in ISR": _leader_in_isr,
}
"""Name -> property. *Strong ISR*: each member of the ISR in ZooKeeper has all that any presumed
leader has below its high watermark; *weak ISR*: the same for the ISR that the leader knows."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a search."""

    variant: ReplicationVariant
    bounds: Bounds
    states: int
    transitions: int
    depth: int
    stopped: str
    """Why the search is not complete; empty where it is."""
    counterexamples: dict[str, tuple[str, ...]]
    """Violated property -> the sentences of a shortest path to its violation."""
    paths: dict[str, tuple[Partition, ...]] = field(default_factory=dict)
    """Violated property -> the states along that path, from the first one."""
    seconds: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether every state was seen."""
        return not self.stopped


class ReplicationSystem(WholeStateSystem[Partition]):
    """A partition as a system to search."""

    actors = ("partition",)

    def __init__(
        self, steps: Steps, properties: Mapping[str, Holds], *, merges: bool = False
    ) -> None:
        super().__init__()
        self.steps = steps
        self.properties = properties
        self.merges = merges
        self.representatives = Representatives(steps)

    def first(self) -> Partition:
        """Return the partition before anything has happened."""
        return initial(self.steps.bounds.replicas, self.steps.bounds.faults)

    def steps_of(self, state: Partition) -> Iterable[Step]:
        """Return the steps that a partition may take."""
        return self.steps.of(state)

    def violation_of(self, state: Partition) -> str:
        """Return the first property that a state violates."""
        return next((name for name, holds in self.properties.items() if not holds(state)), "")

    def represented_by(self, state: Partition) -> Partition:
        """Return the state that has the same future, where states are merged."""
        return self.representatives.of(state) if self.merges else state

    def sentences(self, path: Iterable[int]) -> tuple[str, ...]:
        """Return the sentence of each step of a run along the states with these numbers."""
        states = [self.states[number] for number in path]
        if not self.merges:
            return sentences(self.steps, states)
        return tuple(step.text for step in self.representatives.run_along(states))


def search(
    variant: ReplicationVariant,
    bounds: Bounds,
    *,
    properties: Iterable[str] = tuple(PROPERTIES),
    limits: Limits = UNLIMITED,
    tell: Tell | None = None,
) -> Result:
    """Search every state of a partition; find the nearest violation of each property.

    Each property has a search of its own, which ends at its first violation. The numbers are
    those of the largest of them. `tell` receives the progress.
    """
    chosen = {name: PROPERTIES[name] for name in properties}
    return search_steps(Steps(variant, bounds), chosen, limits=limits, tell=tell)


def search_steps(
    steps: Steps,
    properties: Mapping[str, Holds],
    *,
    limits: Limits = UNLIMITED,
    tell: Tell | None = None,
    merges: bool = False,
) -> Result:
    """Search as `search` does, by other steps or for other properties.

    Where it merges, it sees one state for each class of states with the same future.
    """
    counterexamples: dict[str, tuple[str, ...]] = {}
    paths: dict[str, tuple[Partition, ...]] = {}
    largest: Searched | None = None
    for name, holds in properties.items():
        system = ReplicationSystem(steps, {name: holds}, merges=merges)
        options = SearchOptions(limits=limits, reduces=False, keeps_edges=False)
        done = Search(system, options, tell=tell)
        searched = done.run()
        for violation in searched.violations:
            numbers = [done.state(number)[1] for number in done.path(violation.state)]
            counterexamples[name] = system.sentences(numbers)
            if not merges:  # else the states are those of different runs
                paths[name] = tuple(system.states[at] for at in numbers)
        if largest is None or searched.progress.states > largest.progress.states:
            largest = searched
    assert largest is not None, "a search without a property shows nothing"
    progress = largest.progress
    return Result(
        steps.variant,
        steps.bounds,
        progress.states,
        progress.transitions,
        progress.depth,
        largest.stopped,
        counterexamples,
        paths,
        progress.seconds,
    )


def sentences(steps: Steps, path: Iterable[Partition]) -> tuple[str, ...]:
    """Return the sentence of each step along a path.

    Raises ValueError where no step leads from one state to the next.
    """
    return tuple(step_between(steps, before, after).text for before, after in pairwise(path))


def step_between(steps: Steps, before: Partition, after: Partition) -> Step:
    """Return the step that leads from one state to the next; ValueError if none does."""
    for step in steps.of(before):
        if step.after == after:
            return step
    raise ValueError(f"no step leads from {before} to {after}")
