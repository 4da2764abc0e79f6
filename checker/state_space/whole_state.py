"""Systems that are searched as a whole: one actor, whose local value is the whole state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from watchkeeper.checker.state_space.intern import Interner
from watchkeeper.checker.state_space.system import Budget, Move, UnreducedSystem

StateT = TypeVar("StateT")
StateC = TypeVar("StateC", covariant=True)


class StepTo(Protocol[StateC]):
    """A step: its sentence, and the state after it."""

    @property
    def text(self) -> str:
        """What happens, in a sentence."""

    @property
    def after(self) -> StateC:
        """The state after the step."""


class WholeStateSystem(UnreducedSystem, ABC, Generic[StateT]):
    """A system whose steps are known for each whole state; faults are steps like others."""

    actors: tuple[str, ...]
    exercised_by_moves: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.budget = Budget({})
        self.states: Interner[StateT] = Interner()

    @abstractmethod
    def first(self) -> StateT:
        """Return the initial state."""

    @abstractmethod
    def steps_of(self, state: StateT) -> Iterable[StepTo[StateT]]:
        """Return the steps that a state allows."""

    @abstractmethod
    def violation_of(self, state: StateT) -> str:
        """Return the property that a state violates; empty for none."""

    def represented_by(self, state: StateT) -> StateT:
        """Return the state that stands for this one: itself."""
        return state

    def sentences_along(self, found: Iterable[tuple[int, ...]]) -> tuple[str, ...]:
        """Return the sentence of each step along a path of a search, whose states these are."""
        path = [self.states[state[1]] for state in found]
        return tuple(
            next(step.text for step in self.steps_of(before) if step.after == after)
            for before, after in pairwise(path)
        )

    # --- as the search sees it ---------------------------------------------------------

    def initial(self) -> tuple[int, ...]:
        """Return the number of the shared value and of the first state."""
        return (0, self.states.of(self.represented_by(self.first())))

    def moves(
        self, actor: int, shared: int, local: int, *, with_faults: bool = True
    ) -> list[Move]:
        """Return a move for each step; none of them is a fault that the budget counts."""
        return [
            Move(step.text, 0, self.states.of(self.represented_by(step.after)))
            for step in self.steps_of(self.states[local])
        ]

    def pair_violation(self, actor: int, shared: int, local: int) -> str:
        """Return the first property that a state violates."""
        return self.violation_of(self.states[local])

    def receive(self, actor: int, local: int, broadcast: int) -> int:
        """Nothing is broadcast: there is no other actor."""
        return local

    def terminal_violation(self, state: tuple[int, ...]) -> str:
        """A state without a step is no violation: the bounds are used up."""
        return ""

    def is_exercised_at_rest(self, state: tuple[int, ...]) -> bool:
        """No property is judged at rest."""
        return False
