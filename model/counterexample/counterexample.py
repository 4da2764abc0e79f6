"""A counterexample as a value: the steps, the state after each, and what they violate.

A replay in any world follows its schedule, and pages are drawn from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from watchkeeper.model.counterexample.step_kind import StepKind, text_of
from watchkeeper.model.plan.bounds import FaultKind

Phase = Literal["absent", "running", "abandoned", "gone", "over"]
"""The process has not started yet, runs, goes on without its program, was killed, or its program
has ended."""


UNKNOWN_OWNER = "no process"
"""The owner of a claim whose session belongs to no process of the counterexample."""


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """What one process did or suffered: the part of a step that a replay follows."""

    node: str
    does: StepKind
    fault: FaultKind | None = None
    """The fault of the budget that the step uses up; None for a step that needs none."""
    operation: str = ""
    """The request to the service, as a trace describes it."""
    answer: Any = None
    """Its answer, as a trace describes it."""
    reads: tuple[tuple[str, Any], ...] = ()
    """The reads that were folded into the step, each with its answer."""
    then: StepKind | None = None
    """The fault that ends the step before the reads after it are complete."""

    @property
    def text(self) -> str:
        """What the process does or suffers, as the verb phrase after its name."""
        return text_of(self.does, self.then)

    @property
    def last(self) -> StepKind:
        """The kind that the step ends with: the fault within it, if there is one."""
        return self.does if self.then is None else self.then


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    """What one process is doing."""

    phase: Phase
    waits_for: str
    """The effect that it waits for."""
    session: str
    """alive, dead and unknown to it, none."""
    fetching: tuple[str, ...]
    notifications: tuple[str, ...]
    """The notifications that were sent to it and that it has not taken yet."""


@dataclass(frozen=True, slots=True)
class CounterexampleStep:
    """A step, and the state after it."""

    number: int
    scheduled: ScheduledStep
    snapshots: dict[str, ProcessSnapshot]
    owners: dict[str, str]
    """Partition -> the owner of its claim; partitions without a claim are left out."""
    disabled: tuple[str, ...] = ()
    """Why the other processes could not move before it, a sentence each."""
    registry: dict[str, str] = field(default_factory=dict)
    """What the search shows of the registry: a persistent znode and its data, or the controller,
    its epoch, and each partition with its leader and ISR."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The part of a counterexample that a replay follows."""

    violates: str
    """The property; empty where nothing is violated."""
    steps: tuple[ScheduledStep, ...]
    cycle: tuple[ScheduledStep, ...] = ()
    """The steps that then repeat for ever."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A counterexample."""

    scenario: str
    variant: str
    """The variant of the consumers, or all of them where they differ."""
    violates: str
    """The property."""
    proof: str
    """One sentence that says why."""
    bound: str
    nodes: tuple[str, ...]
    steps: tuple[CounterexampleStep, ...]
    """The path to the violation."""
    first: dict[str, ProcessSnapshot]
    """The processes before the first step."""
    first_owners: dict[str, str]
    first_registry: dict[str, str] = field(default_factory=dict)
    stem: tuple[CounterexampleStep, ...] = ()
    """The steps from there into a cycle, for a violation of liveness."""
    cycle: tuple[CounterexampleStep, ...] = ()
    """The steps that then repeat for ever; after the last the state is that before the first."""

    @property
    def all_steps(self) -> tuple[CounterexampleStep, ...]:
        """The path, the stem and the cycle, once."""
        return (*self.steps, *self.stem, *self.cycle)

    @property
    def schedule(self) -> Schedule:
        """The part that a replay follows."""
        steps = (*self.steps, *self.stem)
        return Schedule(
            self.violates,
            tuple(step.scheduled for step in steps),
            tuple(step.scheduled for step in self.cycle),
        )
