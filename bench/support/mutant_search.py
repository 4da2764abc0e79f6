"""Searches for mutants: whether each is caught, by what, how soon, and its base is not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.explanation import counterexample_of
from watchkeeper.checker.search.liveness import Liveness, judge, violation_of
from watchkeeper.checker.search.search import Limits, Search, Searched, SearchOptions
from watchkeeper.model.counterexample.counterexample import Counterexample
from watchkeeper.model.group.variants import Variant
from watchkeeper.model.mutants.mutant import Mutant, scenario_of
from watchkeeper.model.plan.plan import Plan
from watchkeeper.scenarios import from_text

LIMITS = Limits(states=400_000, seconds=120)


@dataclass(frozen=True, slots=True)
class Caught:
    """The result of a search of a mutant's configuration."""

    what: str
    """The property that is violated first; empty for none."""
    states: int
    seconds: float
    counterexample: Counterexample | None
    """The shortest one."""
    stopped: str
    """Why the search stopped; empty if it was complete, or found a violation."""

    @property
    def steps(self) -> int:
        """How long the shortest counterexample is."""
        return len(self.counterexample.steps) if self.counterexample is not None else 0


def plan_of(mutant: Mutant, variant: Variant, extra: Iterable[str] = ()) -> Plan:
    """A mutant's configuration, run by a variant; `extra` are more lines of the scenario."""
    text = "\n".join((*scenario_of(mutant), *extra))
    return from_text(f"{mutant.name}.yaml", text).plan(variant.name)


def catch(mutant: Mutant, *, reduces: bool = True, limits: Limits = LIMITS) -> Caught:
    """Search a mutant's configuration for the nearest violation."""
    system, search, searched = _searched(mutant, mutant.variant, reduces, limits, finds_all=False)
    live = _live(search, searched)
    first = searched.violations[0] if searched.violations else violation_of(live)
    return Caught(
        first.what if first is not None else "",
        searched.progress.states,
        searched.progress.seconds,
        counterexample_of(system, search, first, live) if first is not None else None,
        "" if searched.violations else searched.stopped,
    )


def violated_by_base(mutant: Mutant, *, limits: Limits = LIMITS) -> tuple[frozenset[str], str]:
    """Return the properties that the base violates, and why the search stopped early."""
    _, search, searched = _searched(mutant, mutant.base, True, limits, finds_all=True)
    found = {violation.what for violation in searched.violations}
    stuck = violation_of(_live(search, searched))
    if stuck is not None:
        found.add(stuck.what)
    return frozenset(found), searched.stopped


def states_of(mutant: Mutant, variant: Variant) -> int:
    """How many states a variant has in a mutant's configuration."""
    _, _, searched = _searched(mutant, variant, True, LIMITS, finds_all=True)
    assert searched.is_complete, f"{mutant.name} has too many states: {searched.stopped}"
    return searched.progress.states


def _searched(
    mutant: Mutant, variant: Variant, reduces: bool, limits: Limits, *, finds_all: bool
) -> tuple[ClusterSystem, Search, Searched]:
    plan = plan_of(mutant, variant)
    system = ClusterSystem(plan, mutant.configuration.bounds, folds=reduces)
    search = Search(system, SearchOptions(limits, finds_all, reduces))
    return system, search, search.run()


def _live(search: Search, searched: Searched) -> Liveness | None:
    """Judge progress, if the search has seen every state."""
    return judge(search) if searched.is_complete else None
