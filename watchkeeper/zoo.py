"""Searches the zoo: whether each plant is caught, by what, how soon, and its base is not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from explore.cluster import ClusterSystem
from explore.liveness import Liveness, judge, violation_of
from explore.search import Limits, Search, Searched
from explore.story import story_of
from model.plan import Plan
from model.planting import Plant, scenario_of
from model.story import Story
from model.variants import Variant
from scenarios import from_text

LIMITS = Limits(states=400_000, seconds=120)


@dataclass(frozen=True, slots=True)
class Caught:
    """What a search of a plant's configuration has come to."""

    what: str
    """The property that is violated first; empty where none is."""
    states: int
    seconds: float
    story: Story | None
    """The shortest way there."""
    stopped: str
    """Why the search was given up; empty where it saw everything, or found something."""

    @property
    def steps(self) -> int:
        """How long the shortest counterexample is."""
        return len(self.story.steps) if self.story is not None else 0


def plan_of(plant: Plant, variant: Variant, extra: Iterable[str] = ()) -> Plan:
    """A plant's configuration, run by a variant; `extra` are more lines of the scenario."""
    text = "\n".join((*scenario_of(plant), *extra))
    return from_text(f"{plant.name}.yaml", text).plan(variant.name)


def catch(plant: Plant, *, reduces: bool = True, limits: Limits = LIMITS) -> Caught:
    """Search a plant's configuration for the nearest violation."""
    system, search, searched = _searched(plant, plant.variant, reduces, limits, goes_on=False)
    live = _live(search, searched)
    first = searched.violations[0] if searched.violations else violation_of(live)
    return Caught(
        first.what if first is not None else "",
        searched.progress.states,
        searched.progress.seconds,
        story_of(system, search, first, live) if first is not None else None,
        "" if searched.violations else searched.stopped,
    )


def violated_by_base(plant: Plant, *, limits: Limits = LIMITS) -> tuple[frozenset[str], str]:
    """Every property that the base violates there; and why that is not known, if it is not."""
    _, search, searched = _searched(plant, plant.base, True, limits, goes_on=True)
    found = {one.what for one in searched.violations}
    stuck = violation_of(_live(search, searched))
    if stuck is not None:
        found.add(stuck.what)
    return frozenset(found), searched.stopped


def states_of(plant: Plant, variant: Variant) -> int:
    """How many states a variant has in a plant's configuration."""
    _, _, searched = _searched(plant, variant, True, LIMITS, goes_on=True)
    assert searched.is_complete, f"{plant.name} has too many states: {searched.stopped}"
    return searched.progress.states


def _searched(
    plant: Plant, variant: Variant, reduces: bool, limits: Limits, *, goes_on: bool
) -> tuple[ClusterSystem, Search, Searched]:
    plan = plan_of(plant, variant)
    system = ClusterSystem(plan, plant.configuration.bounds, folds=reduces)
    search = Search(system, limits, goes_on=goes_on, reduces=reduces)
    return system, search, search.run()


def _live(search: Search, searched: Searched) -> Liveness | None:
    """Whether a good rest comes, where every state was seen."""
    return judge(search) if searched.is_complete else None
