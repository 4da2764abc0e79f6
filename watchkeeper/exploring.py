"""Explores a scenario: searches every interleaving within its bounds, and says what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from explore.beginning import CannotExplore
from explore.cluster import ClusterSystem
from explore.liveness import Liveness, judge, violation_of
from explore.promises import BrokenPromise
from explore.search import Limits, Progress, Search, Searched
from explore.story import story_of
from model.bounds import Bounds, of_timeline, shrunk
from model.calm import BALANCE, CONSENSUS, COVER
from model.ownership import MONOTONE, OWN_NODES, SINGLE, STRICT, TRUTHFUL
from model.plan import Plan
from model.progress import PROGRESS
from model.story import Story
from model.verdicts import Finding, Property, Verdict, counted, overall
from scenarios import Scenario
from watchkeeper.endings import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop

ALWAYS = (SINGLE, TRUTHFUL, OWN_NODES, MONOTONE)
AT_REST = (COVER, CONSENSUS, BALANCE)

Tell = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Explored:
    """What a search has found."""

    scenario: Scenario
    plan: Plan
    """As it was searched: no larger than its bounds."""
    bounds: Bounds
    remarks: tuple[str, ...]
    findings: tuple[Finding, ...]
    searched: Searched
    story: Story | None
    """The nearest counterexample."""
    others: tuple[Story, ...] = ()
    """The nearest one of each other property, where the search went on."""

    @property
    def verdict(self) -> Verdict:
        """What can be said of the scenario within its bounds."""
        return overall(self.findings)

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return {Verdict.HOLDS: HOLDS, Verdict.VIOLATED: VIOLATED}.get(self.verdict, UNKNOWN)

    @property
    def command(self) -> str:
        """What finds it again."""
        name = self.scenario.source or self.scenario.name
        return f"watchkeeper explore {name} --variant {self.plan.variant}"


def explore_scenario(
    scenario: Scenario,
    variant: str | None = None,
    *,
    limits: Limits | None = None,
    goes_on: bool = False,
    reduces: bool = True,
    jobs: int = 1,
    tell: Tell | None = None,
) -> Explored:
    """Search every interleaving of a scenario; Stop where it cannot be searched."""
    plan = scenario.plan(variant)
    bounds, remarks = bounds_of(scenario, plan)
    plan = shrunk(plan, bounds)
    try:
        system = ClusterSystem(plan, bounds, folds=reduces)
        search = Search(system, limits, tell=tell, goes_on=goes_on, reduces=reduces, jobs=jobs)
        searched = search.run()
    except (CannotExplore, BrokenPromise) as error:
        raise Stop(USAGE, str(error)) from None
    live = judge(search) if searched.is_complete else None
    stuck = violation_of(live)
    found = [*searched.violations, *([stuck] if stuck is not None else [])]
    remarks += _about(live) if live is not None else []
    stories = [
        story_of(system, search, one, live) for one in sorted(found, key=lambda one: one.state)
    ]
    if stories and reduces:
        stories[0] = _shorter(plan, bounds, stories[0], _left(limits, searched.progress))
    return Explored(
        scenario,
        plan,
        bounds,
        tuple(remarks),
        _findings(plan, searched, stories),
        searched,
        stories[0] if stories else None,
        tuple(stories[1:]),
    )


MOST_STATES_AGAIN = 300_000


def _left(limits: Limits | None, progress: Progress) -> Limits:
    """What is left for another search."""
    given = limits or Limits()
    states = min(given.states or MOST_STATES_AGAIN, MOST_STATES_AGAIN)
    seconds = None if given.seconds is None else given.seconds - progress.seconds
    return replace(given, states=states, seconds=seconds)


def _shorter(plan: Plan, bounds: Bounds, story: Story, limits: Limits) -> Story:
    """The shortest counterexample, by a search that passes over nothing, if that is soon done.

    Reductions let some steps come before others that would do without them. What may never
    come again takes a look at every state, so nothing shorter is looked for there.
    """
    if story.violates == PROGRESS.name:
        return story
    system = ClusterSystem(plan, bounds, folds=False)
    search = Search(system, limits, keeps_edges=False, goes_on=True, reduces=False)
    search.run()
    found = search.found.get(story.violates)
    if found is None:
        return story
    other = story_of(system, search, found)
    return other if len(other.steps) < len(story.steps) else story


def limits(states: int | None, seconds: float | None, gib: float | None) -> Limits:
    """When a search gives up; by default before it takes the memory that others need."""
    held = int(gib * 2**30) if gib is not None else _free_memory() * 3 // 4
    return Limits(states, seconds, held)


def _free_memory() -> int:
    """The memory that is free; where the machine does not say, four gigabytes."""
    try:
        with Path("/proc/meminfo").open() as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 4 * 2**30


def bounds_of(scenario: Scenario, plan: Plan) -> tuple[Bounds, list[str]]:
    """The bounds of a scenario, its own or what its timeline suggests; and what to say of it."""
    own = scenario.bounds()
    if own is not None:
        return own, []
    suggested = of_timeline(plan)
    remarks = [
        "the scenario has no `bounds:`; one unit for each fault of its timeline is tried, at "
        f"most {suggested.bounds.together} together, with at most {suggested.bounds.consumers} "
        f"consumers of a group and {suggested.bounds.partitions} partitions"
    ]
    if suggested.left_out:
        remarks.append(f"not explored: {', '.join(suggested.left_out)}")
    return suggested.bounds, remarks


def _about(live: Liveness) -> list[str]:
    """What else is to be said of what comes in the end."""
    if live.is_inevitable:
        return ["without further faults every way leads to a good rest"]
    if not live.is_known:
        return ["a good rest can be reached; whether it must come was too much to look through"]
    if live.stuck is None and live.circle is None:
        return ["only ways on which somebody is passed over for ever never come to rest"]
    return []


def _findings(plan: Plan, searched: Searched, stories: list[Story]) -> tuple[Finding, ...]:
    proofs = {story.violates: story.proof for story in stories}
    claims = [*ALWAYS, *AT_REST, PROGRESS]
    if plan.strict_ownership:
        claims.insert(1, STRICT)
    return tuple(_finding(claim, searched, proofs) for claim in claims)


def _finding(claim: Property, searched: Searched, proofs: dict[str, str]) -> Finding:
    if claim.name in proofs:
        return Finding(claim, Verdict.VIOLATED, proofs[claim.name])
    if not searched.is_complete:
        depth = searched.progress.depth
        said = f"not in the first {depth} steps; the search ended when {searched.stopped}"
        return Finding(claim, Verdict.UNKNOWN, said)
    return Finding(claim, Verdict.HOLDS, _held(claim, searched))


def _held(claim: Property, searched: Searched) -> str:
    states, rests = f"{searched.progress.states:,}", f"{searched.rests:,}"
    if claim in AT_REST:
        return f"in each of {rests} states at rest"
    if claim is PROGRESS:
        return f"from each of {states} states a good rest can be reached without further faults"
    return f"in each of {states} states"


def to_json(explored: Explored, files: list[str]) -> dict[str, Any]:
    """What `--json` prints."""
    progress = explored.searched.progress
    return {
        "scenario": explored.plan.name,
        "variant": explored.plan.variant,
        "world": "explore",
        "verdict": explored.verdict.value,
        "bound": bound_in_words(explored),
        "complete": explored.searched.is_complete,
        "stopped": explored.searched.stopped,
        "states": progress.states,
        "transitions": progress.transitions,
        "depth": progress.depth,
        "seconds": round(progress.seconds, 3),
        "bytes_per_state": progress.nbytes // max(progress.states, 1),
        "properties": [
            {
                "name": one.claim.name,
                "kind": one.claim.kind,
                "verdict": one.verdict.value,
                "evidence": one.evidence,
            }
            for one in explored.findings
        ],
        "remarks": list(explored.remarks),
        "steps": len(explored.story.steps) if explored.story is not None else None,
        "command": explored.command,
        "files": files,
    }


def bound_in_words(explored: Explored) -> str:
    """The bound of a search."""
    plan, bounds = explored.plan, explored.bounds
    consumers = sum(len(group.consumers) for group in plan.groups)
    cluster = plan.clusters[0]
    partitions = sum(topic.size for topic in cluster.topics)
    parts = [
        counted(consumers, "consumer"),
        f"{counted(partitions, 'partition')} of {counted(len(cluster.topics), 'topic')}",
        counted(len(cluster.brokers), "broker"),
        "settled in the beginning" if bounds.begin == "settled" else "from the start",
        *(f"{number} {kind.replace('_', ' ')}" for kind, number in bounds.faults.items()),
    ]
    if bounds.together is not None and bounds.together < sum(bounds.faults.values()):
        parts.append(f"at most {bounds.together} together")
    if bounds.messages:
        parts.append(f"{bounds.messages} messages a partition")
    return ", ".join(parts)
