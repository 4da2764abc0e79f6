"""The search of every interleaving of a scenario within its bounds."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from watchkeeper.check.limits import limit_words, with_memory
from watchkeeper.checker.cluster import control_plane
from watchkeeper.checker.cluster.cluster import ClusterSystem, commits_by_hand
from watchkeeper.checker.cluster.initial import CannotExplore, NeverSettles
from watchkeeper.checker.cluster.terminal import ANSWERED
from watchkeeper.checker.contracts.contracts import BrokenContract
from watchkeeper.checker.counterexample.explanation import counterexample_of
from watchkeeper.checker.search.liveness import Liveness, judge, violation_of
from watchkeeper.checker.search.search import (
    DEFAULT_OPTIONS,
    Limits,
    Progress,
    Search,
    Searched,
    SearchOptions,
    Tell,
)
from watchkeeper.console.exit import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop
from watchkeeper.console.progress import timed
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.audit.retry_budget import warnings_of
from watchkeeper.model.counterexample.counterexample import Counterexample
from watchkeeper.model.judgement.expectations import Expected
from watchkeeper.model.plan.bounds import Bounds, FaultKind, of_timeline, shrunk, variants_in
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.at_quiescence import AGREED, BALANCE, CONSENSUS, COVER
from watchkeeper.model.properties.ownership import MONOTONE, OWN_NODES, SINGLE, STRICT, TRUTHFUL
from watchkeeper.model.properties.progress import PROGRESS
from watchkeeper.model.properties.verdicts import (
    Finding,
    Property,
    Verdict,
    counted,
    overall,
    unexercised,
)
from watchkeeper.scenarios import Scenario

ALWAYS = (SINGLE, TRUTHFUL, OWN_NODES, MONOTONE)
AT_REST = (COVER, CONSENSUS, AGREED, BALANCE, ANSWERED)
ALL_AT_REST = (*AT_REST, *control_plane.AT_REST)
WITHOUT_REPLICAS = (
    "the search is about requests to ZooKeeper: brokers send each other nothing and store no "
    "messages, so only controllers change an ISR"
)


@dataclass(frozen=True, slots=True)
class Explored:
    """The result of a search."""

    scenario: Scenario
    plan: Plan
    """As it was searched: no larger than its bounds."""
    bounds: Bounds
    remarks: tuple[str, ...]
    findings: tuple[Finding, ...]
    searched: Searched
    counterexample: Counterexample | None
    """The nearest counterexample."""
    others: tuple[Counterexample, ...] = ()
    """The nearest one of each other property, where the search went on."""
    options: SearchOptions = DEFAULT_OPTIONS
    """The options that the search was given."""
    failed_turns: Mapping[str, str] = field(default_factory=dict)
    """Process -> the first error that ended a turn of its program."""

    @property
    def counterexamples(self) -> tuple[Counterexample, ...]:
        """The nearest counterexample, then those of the other properties."""
        return self.others if self.counterexample is None else (self.counterexample, *self.others)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the scenario within its bounds."""
        return overall(self.findings)

    @property
    def _expected(self) -> Expected:
        return self.scenario.expected_of(self.plan.variant) or Expected()

    @property
    def _other_findings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.verdict is not Verdict.VIOLATED]

    @property
    def violated(self) -> list[str]:
        """The names of the violated properties."""
        return [
            finding.claim.name for finding in self.findings if finding.verdict is Verdict.VIOLATED
        ]

    @property
    def is_allowed(self) -> bool:
        """Whether it violates only what is a known limit."""
        return bool(self._expected.limit) and self._expected.allowed.issuperset(self.violated)

    def limit_of(self, name: str) -> str:
        """Why no client can avoid the violation of a property; empty where a client can."""
        return self._expected.limit if name in self._expected.allowed else ""

    @property
    def known_limit(self) -> str:
        """Why no client can avoid what is violated, where everything else holds; else empty."""
        is_whole = overall(self._other_findings) is not Verdict.UNKNOWN
        is_known = self.verdict is Verdict.VIOLATED and self.is_allowed and is_whole
        return self._expected.limit if is_known else ""

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        if self.verdict is Verdict.VIOLATED and self.is_allowed:
            return HOLDS if self.known_limit else UNKNOWN
        return exit_code_of(self.verdict)

    @property
    def command(self) -> str:
        """Return the command that repeats the search."""
        return command_of(self.scenario, self.plan, self.options)


def command_of(
    scenario: Scenario, plan: Plan, options: SearchOptions, *, budget_s: float | None = None
) -> str:
    """Return the command that searches a scenario with these options."""
    words = ["watchkeeper", "explore", scenario.source or scenario.name]
    words += ["--variant", plan.variant]
    words += ["--budget", f"{budget_s:g}s"] if budget_s is not None else []
    words += ["--all"] if options.finds_all else []
    words += limit_words(options.limits)
    words += [] if options.reduces else ["--no-reduce"]
    words += [] if options.jobs == 1 else ["--jobs", str(options.jobs)]
    return shlex.join(words)


def exit_code_of(verdict: Verdict) -> int:
    """Return the exit code of the command for a verdict."""
    return {Verdict.HOLDS: HOLDS, Verdict.VIOLATED: VIOLATED}.get(verdict, UNKNOWN)


def explore_scenario(
    scenario: Scenario,
    variant: str | None = None,
    options: SearchOptions = DEFAULT_OPTIONS,
    *,
    tell: Tell | None = None,
) -> Explored:
    """Search every interleaving of a scenario within its own bounds, or those of its timeline.

    Raises Stop where it cannot be searched.
    """
    plan = scenario.plan(variant)
    bounds, remarks = bounds_of(scenario, plan)
    return explore_within(scenario, plan, bounds, remarks, options, tell=tell)


def explore_within(
    scenario: Scenario,
    whole: Plan,
    bounds: Bounds,
    about: Sequence[str] = (),
    options: SearchOptions = DEFAULT_OPTIONS,
    *,
    tell: Tell | None = None,
) -> Explored:
    """Search every interleaving of a plan within bounds; Stop where it cannot be searched.

    A group that does not come to rest before the search begins violates progress: then the
    search begins with the start of its consumers, without faults, and shows the steps.
    `about` has remarks on the bounds.
    """
    plan = shrunk(whole, bounds)
    remarks = [
        *about,
        *([WITHOUT_REPLICAS] if whole.replicates else []),
        *_lost_variants(whole, plan),
        *map(str, warnings_of(plan)),
    ]
    wanted = scenario.expected_of(whole.variant)
    given = options
    if wanted is not None and wanted.limit:  # then the other properties have to be judged
        options = replace(options, finds_all=True)
    try:
        try:
            found = _explored(scenario, plan, bounds, remarks, options, tell)
        except NeverSettles as never:
            remarks.append(
                "the group does not come to rest by itself, as `begin: settled` expects; the "
                "search begins with the start of its consumers, without faults"
            )
            options = replace(options, finds_all=True)
            found = _explored(scenario, plan, _without_faults(bounds), remarks, options, tell)
            found = _restless(found, never)
        return replace(found, options=given)
    except (CannotExplore, BrokenContract) as error:
        raise Stop(USAGE, str(error)) from None


def _explored(
    scenario: Scenario,
    plan: Plan,
    bounds: Bounds,
    remarks: list[str],
    options: SearchOptions,
    tell: Tell | None,
) -> Explored:
    system = ClusterSystem(plan, bounds, folds=options.reduces)
    options = replace(options, limits=with_memory(options.limits))
    search = Search(system, options, tell=tell)
    with INTERRUPTS.noted(), timed("search"):
        searched = search.run()
    with timed("judgement of progress"):
        live = judge(search) if searched.is_complete else None
    stuck = violation_of(live)
    found = [*searched.violations, *([stuck] if stuck is not None else [])]
    about = _about(live) if live is not None else []
    failed = system.failed_turns(search.rows)
    with timed("counterexamples"):
        counterexamples = [
            counterexample_of(system, search, violation, live)
            for violation in sorted(found, key=lambda violation: violation.state)
        ]
        if counterexamples and options.reduces and not INTERRUPTS.came:
            counterexamples[0] = _shorter(
                plan, bounds, counterexamples[0], _left(options.limits, searched.progress)
            )
    return Explored(
        scenario,
        plan,
        bounds,
        (*remarks, *about, *failed_in_words(failed)),
        _findings(plan, searched, counterexamples),
        searched,
        counterexamples[0] if counterexamples else None,
        tuple(counterexamples[1:]),
        failed_turns=failed,
    )


def failed_in_words(failed: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each process with a turn that an error ended."""
    for name, error in failed.items():
        yield f"a turn of {name} ends with an error that its program does not handle: {error}"


def _without_faults(bounds: Bounds) -> Bounds:
    """The bounds of a search that begins with the start of the consumers, without faults."""
    joins = bounds.faults.get(FaultKind.JOIN, 0)
    faults = {FaultKind.JOIN.value: joins} if joins else {}
    return replace(bounds, faults=faults, together=None, begin="fresh")


def _restless(found: Explored, never: NeverSettles) -> Explored:
    """The result with the violation of progress first, also where the search ended before it."""
    who = " and ".join(never.movers)
    message = f"without a fault {who} may go round for ever, though no process is passed over"
    restless = Finding(PROGRESS, Verdict.VIOLATED, message)
    findings = tuple(
        restless
        if finding.claim is PROGRESS and finding.verdict is not Verdict.VIOLATED
        else finding
        for finding in found.findings
    )
    counterexamples = sorted(
        found.counterexamples,
        key=lambda counterexample: counterexample.violates != PROGRESS.name,
    )
    return replace(
        found,
        findings=findings,
        counterexample=next(iter(counterexamples), None),
        others=tuple(counterexamples[1:]),
    )


def _lost_variants(whole: Plan, plan: Plan) -> list[str]:
    """A remark on variants of which the bound left no consumer."""
    lost = sorted(variants_in(whole).keys() - variants_in(plan).keys())
    if not lost:
        return []
    return [
        f"the bound has no place for a consumer of {' or '.join(lost)}; a larger "
        "`bounds: {consumers: ...}` includes them"
    ]


MOST_STATES_AGAIN = 300_000


def _left(limits: Limits, progress: Progress) -> Limits:
    """Return the limits that remain for another search."""
    states = min(limits.states or MOST_STATES_AGAIN, MOST_STATES_AGAIN)
    seconds = None if limits.seconds is None else limits.seconds - progress.seconds
    return replace(limits, states=states, seconds=seconds)


def _shorter(
    plan: Plan, bounds: Bounds, counterexample: Counterexample, limits: Limits
) -> Counterexample:
    """Return the shortest counterexample, by an unreduced search if that ends soon.

    Reductions let some steps come before others that would do without them. What may never
    come again takes a look at every state, so nothing shorter is looked for there.
    """
    if counterexample.violates == PROGRESS.name:
        return counterexample
    system = ClusterSystem(plan, bounds, folds=False)
    options = SearchOptions(limits, finds_all=True, reduces=False, keeps_edges=False)
    search = Search(system, options)
    search.run()
    found = search.found.get(counterexample.violates)
    if found is None:
        return counterexample
    other = counterexample_of(system, search, found)
    return other if len(other.steps) < len(counterexample.steps) else counterexample


def bounds_of(scenario: Scenario, plan: Plan) -> tuple[Bounds, list[str]]:
    """Return the bounds of a scenario, its own or from its timeline, and remarks on them."""
    own = scenario.bounds()
    if own is not None:
        return own, []
    suggested = of_timeline(plan)
    remarks = [
        "the scenario has no `bounds:`; one unit for each fault of its timeline is tried, at "
        f"most {suggested.bounds.together} together, with at most {suggested.bounds.consumers} "
        f"consumers of a group and {suggested.bounds.partitions} partitions"
    ]
    if suggested.bounds.messages:
        remarks.append(
            "a group commits by hand, so each partition has "
            f"{counted(suggested.bounds.messages, 'message')}"
        )
    if suggested.left_out:
        remarks.append(f"not explored: {', '.join(suggested.left_out)}")
    return suggested.bounds, remarks


def _about(live: Liveness) -> list[str]:
    """Further remarks about progress."""
    if live.is_inevitable:
        return ["without further faults every path leads to a converged state"]
    if not live.is_known:
        return [
            "a converged state is reachable; whether every path leads to one is unknown: "
            "the search was too large"
        ]
    if live.stuck is None and live.lasso is None:
        return ["only executions that pass over one process for ever never converge"]
    return []


def _findings(
    plan: Plan, searched: Searched, counterexamples: list[Counterexample]
) -> tuple[Finding, ...]:
    proofs = {counterexample.violates: counterexample.proof for counterexample in counterexamples}
    return tuple(_finding(claim, searched, proofs) for claim in claims_of(plan))


def claims_of(plan: Plan) -> list[Property]:
    """Return the properties that a search of a plan judges."""
    of_group = bool(plan.groups) or not plan.elects_controllers
    claims = list(ALWAYS) if of_group else [OWN_NODES]
    if plan.strict_ownership and of_group:
        claims.insert(1, STRICT)
    claims += control_plane.OF_WRITES if plan.elects_controllers else ()
    commits = any(
        commits_by_hand(group, consumer.variant) for group, consumer in plan.consumers()
    )
    claims += [claim for claim in AT_REST if of_group and (commits or claim is not ANSWERED)]
    claims += control_plane.AT_REST if plan.elects_controllers else ()
    return [*claims, PROGRESS]


def _finding(claim: Property, searched: Searched, proofs: dict[str, str]) -> Finding:
    if claim.name in proofs:
        return Finding(claim, Verdict.VIOLATED, proofs[claim.name])
    if not searched.is_complete:
        depth = searched.progress.depth
        message = f"not in the first {depth} steps; the search ended when {searched.stopped}"
        return Finding(claim, Verdict.UNKNOWN, message)
    exercised = _exercised(claim, searched)
    if not exercised:
        return unexercised(claim)
    return Finding(claim, Verdict.HOLDS, _held(claim, searched, exercised), exercised=exercised)


def _exercised(claim: Property, searched: Searched) -> int:
    """How often a search exercised a property: in states, terminal states or transitions."""
    if claim.name in searched.exercised.by_moves:
        return searched.exercised.by_moves[claim.name]
    if claim in ALL_AT_REST:
        return searched.exercised.at_rest
    return searched.progress.states if claim is PROGRESS else searched.exercised.exclusion


def _held(claim: Property, searched: Searched, exercised: int) -> str:
    states, terminal_states = f"{searched.progress.states:,}", f"{searched.terminal_states:,}"
    if claim in ALL_AT_REST:
        return f"in each of {terminal_states} states at rest"
    if claim is PROGRESS:
        return (
            f"from each of {states} states a converged state is reachable without further faults"
        )
    return f"in each of {states} states; exercised {counted(exercised, 'time')}"


def to_json(explored: Explored, files: list[str]) -> dict[str, Any]:
    """Return the value that `--json` prints."""
    progress = explored.searched.progress
    return {
        "scenario": explored.plan.name,
        "variant": explored.plan.variant,
        "consumers": variants_in(explored.plan),
        "world": "explore",
        "verdict": explored.verdict.value,
        "known_limit": explored.known_limit or None,
        "bound": bound_in_words(explored),
        "complete": explored.searched.is_complete,
        "stopped": explored.searched.stopped,
        "states": progress.states,
        "transitions": progress.transitions,
        "depth": progress.depth,
        "seconds": round(progress.seconds, 3),
        "bytes_per_state": progress.nbytes // max(progress.states, 1),
        "properties": [finding.to_json() for finding in explored.findings],
        "remarks": list(explored.remarks),
        "failed_turns": dict(explored.failed_turns),
        "steps": len(explored.counterexample.steps)
        if explored.counterexample is not None
        else None,
        "command": explored.command,
        "files": files,
    }


def _mixed(plan: Plan) -> str:
    """The number of consumers of each variant, where they are not all of the plan's."""
    found = variants_in(plan)
    if found.keys() <= {plan.variant}:
        return ""
    return f" ({', '.join(f'{number} of {name}' for name, number in found.items())})"


def bound_in_words(explored: Explored) -> str:
    """The bound of a search."""
    plan, bounds = explored.plan, explored.bounds
    consumers = sum(len(group.consumers) for group in plan.groups)
    cluster = plan.clusters[0]
    partitions = sum(topic.size for topic in cluster.topics)
    parts = [
        f"{counted(consumers, 'consumer')}{_mixed(plan)}",
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
