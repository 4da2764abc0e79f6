"""The search of a group that keeps its offsets in Kafka: the nearest violation of a property."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from watchkeeper.checker.offsets.group import Bounds, Steps, initial
from watchkeeper.checker.offsets.state import Group, Step
from watchkeeper.checker.search.search import Limits, Search, SearchOptions, Tell
from watchkeeper.checker.state_space.whole_state import WholeStateSystem
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.replication.variants import ReplicationVariant

UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a search."""

    variant: ReplicationVariant
    bounds: Bounds
    verdict: Verdict
    states: int
    transitions: int
    stopped: str = ""
    """Why the search is not complete; empty where it is."""
    violated: str = ""
    """The property that is violated nearest."""
    steps: tuple[str, ...] = ()
    """The sentences of a shortest way to its violation."""


class OffsetsSystem(WholeStateSystem[Group]):
    """A group as a system to search."""

    actors = ("group",)

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self.steps = steps

    def first(self) -> Group:
        """Return the group before its first commit."""
        return initial(self.steps.bounds)

    def steps_of(self, state: Group) -> Iterable[Step]:
        """Return the steps that the group and its coordinators may take."""
        return self.steps.of(state)

    def violation_of(self, state: Group) -> str:
        """Return the property that a state violates."""
        return state.violation


def search(
    variant: ReplicationVariant,
    bounds: Bounds,
    *,
    limits: Limits = UNLIMITED,
    tell: Tell | None = None,
) -> Result:
    """Search every state of a group; find the nearest violation. `tell` receives the progress."""
    system = OffsetsSystem(Steps(variant, bounds))
    options = SearchOptions(limits=limits, reduces=False, keeps_edges=False)
    done = Search(system, options, tell=tell)
    searched = done.run()
    progress = searched.progress
    for violation in searched.violations:
        path = [done.state(number) for number in done.path(violation.state)]
        return Result(
            variant,
            bounds,
            Verdict.VIOLATED,
            progress.states,
            progress.transitions,
            violated=violation.what,
            steps=system.sentences_along(path),
        )
    verdict = Verdict.HOLDS if searched.is_complete else Verdict.UNKNOWN
    return Result(
        variant, bounds, verdict, progress.states, progress.transitions, searched.stopped
    )
