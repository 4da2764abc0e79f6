"""A counterexample as a value: what was done, step by step, and what it led to.

Every world can follow its schedule, and pages can be drawn of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Deed:
    """What one process did, or what befell it: the part of a step that a world can follow."""

    node: str
    does: str
    """In the words of the exploration."""
    fault: str = ""
    """The kind of fault it was drawn from; empty for what has to come."""
    operation: str = ""
    """What was asked of the service, as a trace describes it."""
    answer: Any = None
    """As a trace describes it."""
    reads: tuple[tuple[str, Any], ...] = ()
    """Reads that followed in the same step, each with its answer."""


@dataclass(frozen=True, slots=True)
class Stand:
    """Where one process stands."""

    phase: str
    waits_for: str
    """What it has asked for."""
    session: str
    """alive, dead and unknown to it, none."""
    fetching: tuple[str, ...]
    notes: tuple[str, ...]
    """What was sent to it and what it has not taken yet."""


@dataclass(frozen=True, slots=True)
class StoryStep:
    """A step of a story, and how everything stands after it."""

    number: int
    deed: Deed
    stands: dict[str, Stand]
    owners: dict[str, str]
    """Partition -> whose claim stands; nobody's are left out."""
    impossible: tuple[str, ...] = ()
    """What could not be done before it, and why."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The part of a counterexample that a world can follow."""

    violates: str
    """The property; empty where nothing is violated."""
    deeds: tuple[Deed, ...]
    circle: tuple[Deed, ...] = ()
    """What comes after them, again and again for ever."""


@dataclass(frozen=True, slots=True)
class Story:
    """A counterexample."""

    scenario: str
    variant: str
    violates: str
    """The property."""
    proof: str
    """One sentence that says why."""
    bound: str
    nodes: tuple[str, ...]
    steps: tuple[StoryStep, ...]
    """The way to where it is violated."""
    first: dict[str, Stand]
    """How everybody stands before the first step."""
    first_owners: dict[str, str]
    way_in: tuple[StoryStep, ...] = ()
    """What follows until it goes round in a circle, if it does."""
    circle: tuple[StoryStep, ...] = ()
    """What then comes again and again for ever: after the last all is as before the first."""

    @property
    def whole(self) -> tuple[StoryStep, ...]:
        """All that is told: the way, and once round the circle."""
        return (*self.steps, *self.way_in, *self.circle)

    @property
    def schedule(self) -> Schedule:
        """What a world can follow of it."""
        deeds = (*self.steps, *self.way_in)
        return Schedule(
            self.violates,
            tuple(step.deed for step in deeds),
            tuple(step.deed for step in self.circle),
        )
