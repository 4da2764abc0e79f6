"""The runs and searches that judge a mutant. Only a child process imports this module.

Simulations: every shipped scenario with each variant for which it states an expectation, the
chaos scenario with some seeds, small clusters with faults at random moments, and the classes of
drawn scenarios; an audit of the registry at the end is a part of the judgement, and so is what
members say of themselves. Searches: the battery of a small cluster for each variant, and the
configurations of the catalogue of mutants, run by the variant without the mistake.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from bench.mutation.accounts import differences
from bench.mutation.child_process import RunsOn, within_cpu
from bench.mutation.outcome import Kind, Outcome
from bench.proved import CASES
from bench.regression_classes.members import MEMBERS
from bench.regression_classes.operators import OPERATORS
from bench.regressions import CLASSES
from bench.support.mutant_search import plan_of
from bench.support.random_faults import Aimed

from watchkeeper.check.battery import Cell, cells_of
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.search.liveness import judge as judge_liveness
from watchkeeper.checker.search.liveness import violation_of
from watchkeeper.checker.search.search import Limits, Search, Searched, SearchOptions
from watchkeeper.model.audit.audit import audit
from watchkeeper.model.audit.snapshot import snapshot_after
from watchkeeper.model.group.assignment import Assignor
from watchkeeper.model.judgement.judge import Judgement, judge
from watchkeeper.model.mutants.catalogue import MUTANTS
from watchkeeper.model.plan.bounds import Bounds, shrunk
from watchkeeper.model.plan.plan import GroupPlan, Plan
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import Scenario, from_text, load, shipped
from watchkeeper.sim.world import Simulated, simulate

TURN_FAILED = EventKind.TURN_FAILED
CHAOS = Path(__file__).resolve().parent.parent / "chaos.yaml"
CHAOS_SEEDS = range(8)
AIMED_SEEDS = range(6)
"""Seeds of each small cluster with faults at random moments."""
DRAWN_SEEDS = range(6)
"""Seeds of each class of drawn scenarios."""
GROUP_SEEDS = range(40)
"""Seeds of each class that is about what groups own: such a run takes little time."""
OF_GROUPS = frozenset(one.name for one in (*MEMBERS, *OPERATORS))
MOST_STATES = 5_000
"""Searches that have more states without a mutant are left out."""
GROWTH = 4
"""A search stops at so many times its states without the mutant, and some more."""
SMALLEST_GROWTH = 2_000
ROUND_ROBIN: dict[str, Assignor] = {
    "roundrobin": "roundrobin",
    "roundrobin_11": "roundrobin_11",
}
"""Strategy by its setting; any other value means range, as in Kafka 0.8.2."""
LONGEST = 20.0
"""A killer may take so many times its CPU time without the mutant, and some seconds more."""
SLACK_S = 5.0

SMALL = """
name: small
about: Two members of a group share the partitions of a topic.
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: 1, layout: "{layout}",
                  topics: {{clicks: {{{partitions}: 1}}}}}}}}
groups: {{billing: {{consumers: 2, streams: {{clicks: 1}}}}}}
"""
BATTERIES = (
    ("hardened", "0.7", True),
    ("hardened", "0.8", False),
    ("kafka_08", "0.8", True),
    ("kafka_07", "0.7", False),
    ("documented", "0.7", False),
)
"""Variant and layout of each battery, and whether a group at rest has messages in it."""


@dataclass(frozen=True, slots=True)
class Killer:
    """A run or a search that may judge a mutant differently."""

    kind: Kind
    name: str
    run: Callable[[int], Outcome]
    """Takes the number of states at which a search stops."""

    def outcome(self, base: Outcome | None = None) -> Outcome:
        """Run it, within a multiple of what it takes without a mutant."""
        begun_s = time.process_time()
        states = MOST_STATES if base is None else GROWTH * base.states + SMALLEST_GROWTH
        most_s = 60.0 if base is None else LONGEST * base.cpu_s + SLACK_S
        try:
            with within_cpu(most_s):
                return self.run(states)
        except RunsOn:
            judgement = "it does not end"
        except Exception as error:
            judgement = f"{type(error).__name__}: {error}"
        return Outcome(judgement, "", time.process_time() - begun_s)


def killers() -> Iterator[Killer]:
    """Yield every killer."""
    yield from simulations()
    yield from searches()


# --- simulations -----------------------------------------------------------------------


@cache
def _scenario(name: str) -> Scenario:
    return load(name)


def simulations() -> Iterator[Killer]:
    """Yield the simulated runs."""
    for name in shipped():
        for variant in _scenario(name).expectations:
            run = partial(_shipped_run, name, variant)
            yield Killer(Kind.SIMULATION, f"{name}, {variant}", run)
    for seed in CHAOS_SEEDS:
        yield Killer(Kind.SIMULATION, f"chaos, seed {seed}", partial(_chaos_run, seed))
    for case in CASES:
        for seed in AIMED_SEEDS:
            name = f"{case.name} at random, seed {seed}"
            yield Killer(Kind.SIMULATION, name, partial(_aimed_run, case.name, seed))
    for name in CLASSES:
        for seed in GROUP_SEEDS if name in OF_GROUPS else DRAWN_SEEDS:
            run = partial(_drawn_run, name, seed)
            yield Killer(Kind.SIMULATION, f"class {name}, seed {seed}", run)


def _shipped_run(name: str, variant: str, states: int) -> Outcome:
    return _run(_scenario(name), variant, 0)


def _chaos_run(seed: int, states: int) -> Outcome:
    return _run(_scenario(str(CHAOS)), "hardened", seed)


def _run(scenario: Scenario, variant: str, seed: int) -> Outcome:
    """Run a scenario: whether it comes to what it expects."""
    begun_s = time.process_time()
    plan = scenario.plan(variant)
    done, judgement = _judged(plan, seed)
    wanted = scenario.expected_of(variant)
    assert wanted is not None, f"{scenario.name} expects nothing of {variant}"
    met = wanted.met_by(judgement)
    result = "as expected" if met else _not_met(judgement, met)
    result += _failed_turns(done) + _audited(plan, done) + _accounts(plan, done)
    return Outcome(result, done.trace.fingerprint, time.process_time() - begun_s)


def _judged(plan: Plan, seed: int) -> tuple[Simulated, Judgement]:
    done = simulate(plan, seed)
    return done, judge(plan, done.trace, done.effects)


def _not_met(judgement: Judgement, met: bool | None) -> str:
    if met is None:
        return "unknown, not as expected"
    violated = ", ".join(judgement.violated())
    return f"violates {violated}" if violated else "violates nothing, not as expected"


def _failed_turns(done: Simulated) -> str:
    """Name the first error that ends a turn: an error of the program, after which it goes on."""
    error = next((event.detail["error"] for event in done.trace.of_kind(TURN_FAILED)), None)
    return "" if error is None else f"; a turn fails: {error}"


def _audited(plan: Plan, done: Simulated) -> str:
    """Name the kinds of findings of an audit of each registry at the end of the run."""
    found = set()
    for cluster in plan.clusters:
        servers = f"{plan.prefix_of(cluster.name)}zookeeper"
        registry = snapshot_after(event for event in done.trace if event.node.startswith(servers))
        assigned = {g.name: _assignor_of(g) for g in plan.groups if g.cluster == cluster.name}
        for assignor in set(assigned.values()) or {"range"}:
            audited = audit(registry, assignor=assignor)
            found |= {one.kind for one in audited.findings}
            for group in audited.groups:
                if assigned.get(group.name) == assignor:
                    found |= {one.kind for one in group.findings}
    return f"; the audit finds: {', '.join(sorted(found))}" if found else ""


def _accounts(plan: Plan, done: Simulated) -> str:
    """Name what members say of themselves and the registry does not."""
    found = differences(plan, done.trace)
    return f"; members' accounts differ: {', '.join(found)}" if found else ""


def _assignor_of(group: GroupPlan) -> Assignor:
    """Return the strategy that the group is set to, found without the code of its members."""
    member = group.consumers[0]
    if member.variant.assignor is not None:
        return member.variant.assignor
    return ROUND_ROBIN.get(member.settings.assignor, "range")


@cache
def _case(name: str) -> tuple[Plan, Bounds]:
    [case] = [case for case in CASES if case.name == name]
    scenario = case.scenario("hardened")
    bounds = scenario.bounds()
    assert bounds is not None, "every case states its bounds"
    return scenario.plan(), bounds


def _aimed_run(name: str, seed: int, states: int) -> Outcome:
    """Run a small cluster with faults at random moments: the properties that it violates."""
    begun_s = time.process_time()
    plan, bounds = _case(name)
    done, judgement = _judged(Aimed(name, plan, bounds, seed).drawn(), seed)
    violated = ", ".join(judgement.violated())
    return Outcome(
        f"violates {violated or 'nothing'}{_failed_turns(done)}{_audited(plan, done)}"
        f"{_accounts(plan, done)}",
        done.trace.fingerprint,
        time.process_time() - begun_s,
    )


def _drawn_run(name: str, seed: int, states: int) -> Outcome:
    """Run a drawn scenario of a class: what the class finds wrong with it."""
    begun_s = time.process_time()
    wrong = "; ".join(CLASSES[name].outcome(seed).wrong)
    return Outcome(wrong or "nothing is wrong", "", time.process_time() - begun_s)


# --- searches --------------------------------------------------------------------------


def searches() -> Iterator[Killer]:
    """Yield the searches."""
    for mutant in MUTANTS.values():
        name = f"configuration of {mutant.name}, {mutant.base.name}"
        run = partial(_search_configuration, mutant.name)
        yield Killer(Kind.SEARCH, name, run)
    for variant, layout, with_messages in BATTERIES:
        for cell in _cells(variant, layout):
            is_small = with_messages and cell.bounds.begin == "settled"
            if is_small or not cell.bounds.messages:
                name = f"{cell.name}, {variant} {layout}"
                run = partial(_search_cell, variant, layout, cell.name)
                yield Killer(Kind.SEARCH, name, run)


@cache
def _cells(variant: str, layout: str) -> tuple[Cell, ...]:
    partitions = "partitions_per_broker" if layout == "0.7" else "partitions"
    text = SMALL.format(layout=layout, partitions=partitions)
    cells, _ = cells_of(from_text("small.yaml", text).plan(variant))
    return tuple(cells[1:])


def _search_cell(variant: str, layout: str, name: str, states: int) -> Outcome:
    [cell] = [cell for cell in _cells(variant, layout) if cell.name == name]
    return _searched(shrunk(cell.plan, cell.bounds), cell.bounds, states)


def _search_configuration(name: str, states: int) -> Outcome:
    mutant = MUTANTS[name]
    return _searched(plan_of(mutant, mutant.base), mutant.configuration.bounds, states)


def _searched(plan: Plan, bounds: Bounds, states: int) -> Outcome:
    """Search to the end: the properties that are violated, and those never exercised."""
    begun_s = time.process_time()
    system = ClusterSystem(plan, bounds)
    search = Search(system, SearchOptions(Limits(states=states), finds_all=True))
    found = search.run()
    digest = f"{found.progress.states} {found.progress.transitions} {found.terminal_states}"
    if found.is_complete:
        stuck = violation_of(judge_liveness(search))
        violated = sorted(
            {one.what for one in found.violations} | ({stuck.what} if stuck else set())
        )
        judgement = f"violates {', '.join(violated) or 'nothing'}{_unexercised(found)}"
    else:
        judgement = "it does not end"
    errors = system.failed_turns(search.rows).values()
    judgement += "".join(f"; a turn fails: {error}" for error in list(errors)[:1])
    cpu_s = time.process_time() - begun_s
    return Outcome(judgement, digest, cpu_s, found.progress.states)


def _unexercised(found: Searched) -> str:
    """Name what the search never exercises; those properties are unknown then."""
    counts = {
        "exclusive ownership": found.exercised.exclusion,
        "rest": found.exercised.at_rest,
        **found.exercised.by_moves,
    }
    names = sorted(name for name, count in counts.items() if not count)
    return f"; never exercises {', '.join(names)}" if names else ""
