"""The search of a migration: does a member begin below what the group has committed?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from watchkeeper.checker.migration.group import Bounds, Group, Step, Steps, initial
from watchkeeper.checker.search.search import Limits, Search, SearchOptions
from watchkeeper.checker.state_space.whole_state import WholeStateSystem
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


class MigrationSystem(WholeStateSystem[Group]):
    """A group as a system to search."""

    actors = ("group",)

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self.steps = steps

    def first(self) -> Group:
        """Return the group before the migration."""
        return initial(self.steps.order)

    def steps_of(self, state: Group) -> Iterable[Step]:
        """Return the steps that a group may take."""
        return self.steps.of(state)

    def violation_of(self, state: Group) -> str:
        """Return the property that a state violates."""
        return NO_STEP_BACK if state.began_below else ""


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
        path = map(done.state, done.path(violation.state))
        return Result(order, Verdict.VIOLATED, states, system.sentences_along(path))
    verdict = Verdict.HOLDS if searched.is_complete else Verdict.UNKNOWN
    return Result(order, verdict, states)
