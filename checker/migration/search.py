"""The search of a migration: does a member begin below what the group has committed?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from watchkeeper.checker.migration.group import Bounds, Group, Steps, initial
from watchkeeper.checker.search.search import Limits, Search, SearchOptions
from watchkeeper.checker.state_space.intern import Interner
from watchkeeper.checker.state_space.system import Budget, Move, UnreducedSystem
from watchkeeper.model.offset_manager.migration import Order
from watchkeeper.model.properties.verdicts import Verdict

NO_STEP_BACK = "no step back"
"""A member begins at the newest acknowledged commit of its group, or behind it."""
DEFAULT_BOUNDS = Bounds()
UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a search."""

    order: Order
    verdict: Verdict
    states: int
    steps: tuple[str, ...] = ()
    """The sentences of the shortest way to a violation."""


class MigrationSystem(UnreducedSystem):
    """A group as a system to search: one actor, whose local value is the whole state."""

    actors = ("group",)
    exercised_by_moves: tuple[str, ...] = ()

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.budget = Budget({})
        self.states: Interner[Group] = Interner()

    def initial(self) -> tuple[int, ...]:
        """Return the number of the shared value and of the first state."""
        return (0, self.states.of(initial(self.steps.order)))

    def moves(self, actor: int, shared: int, local: int) -> list[Move]:
        """Return a move for each step."""
        return [
            Move(step.text, 0, self.states.of(step.after))
            for step in self.steps.of(self.states[local])
        ]

    def pair_violation(self, actor: int, shared: int, local: int) -> str:
        """Return the property that a state violates."""
        return NO_STEP_BACK if self.states[local].began_below else ""

    def receive(self, actor: int, local: int, broadcast: int) -> int:
        """Nothing is broadcast: there is no other actor."""
        return local

    def terminal_violation(self, state: tuple[int, ...]) -> str:
        """A state without a step is no violation: the bounds are used up."""
        return ""

    def is_exercised_at_rest(self, state: tuple[int, ...]) -> bool:
        """No property is judged at rest."""
        return False


def search(
    order: Order, bounds: Bounds = DEFAULT_BOUNDS, *, limits: Limits = UNLIMITED
) -> Result:
    """Search every state of a migration; find the nearest violation."""
    system = MigrationSystem(Steps(order, bounds))
    options = SearchOptions(limits=limits, reduces=False, keeps_edges=False)
    done = Search(system, options)
    searched = done.run()
    states = searched.progress.states
    for violation in searched.violations:
        numbers = [done.state(number)[1] for number in done.path(violation.state)]
        path = [system.states[number] for number in numbers]
        return Result(order, Verdict.VIOLATED, states, _sentences(system.steps, path))
    verdict = Verdict.HOLDS if searched.is_complete else Verdict.UNKNOWN
    return Result(order, verdict, states)


def _sentences(steps: Steps, path: list[Group]) -> tuple[str, ...]:
    return tuple(
        next(step.text for step in steps.of(before) if step.after == after)
        for before, after in pairwise(path)
    )
