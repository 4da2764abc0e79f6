"""The search of users' own protocols: programs, claims and a bound in, a verdict out.

    found = explore(
        {"a": Program(turn, "a", Memory()), "b": Program(turn, "b", Memory())},
        always={"one holder": lambda state: holders(state) <= 1},
        faults={"crash": 1},
    )
    assert found.holds, found

A claim sees the state with which a program's turn began, and nothing of the middle of the
turn. So a program has to put into its state what it may do, before it does it, and may take
it out only when it has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.checker.search.lasso import Lasso
from watchkeeper.checker.search.liveness import judge
from watchkeeper.checker.search.search import Limits, Progress, Search, Searched, SearchOptions
from watchkeeper.checker.search.successors import Violation
from watchkeeper.checker.user_model.arguments import check_arguments
from watchkeeper.checker.user_model.counterexample import (
    afterwards,
    counterexample_of,
    lines_of,
    why_not,
)
from watchkeeper.checker.user_model.system import Claim, Claims, UserSystem
from watchkeeper.model.actor.program import Program
from watchkeeper.model.counterexample.counterexample import Counterexample
from watchkeeper.model.properties.verdicts import Verdict

COMES_TO_REST = "comes to rest"
"""The property that a terminal state comes; judged if there are claims about such states."""
MOST_STATES = 5_000_000

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class ExploreResult:
    """The result of a search of programs."""

    verdict: Verdict
    violated: str
    """The claim that fails; empty for none."""
    counterexample: Counterexample | None
    """A shortest path to where it fails."""
    states: int
    transitions: int
    depth: int
    """The number of steps up to which every state was explored."""
    terminal_states: int
    """How many states have nothing left that has to come."""
    seconds: float
    bound: str
    stopped: str
    """Why the search stopped early; empty where it is complete."""
    lines: tuple[str, ...] = field(repr=False, default=())

    @property
    def holds(self) -> bool:
        """Whether every claim holds, in every state that the bound allows."""
        return self.verdict is Verdict.HOLDS

    def __str__(self) -> str:
        seen = f"{self.states:,} states, {self.depth} steps deep, in {self.seconds:.2f}s"
        if self.verdict is Verdict.UNKNOWN:
            return f"unknown: {self.stopped} ({seen}; {self.bound})"
        if self.verdict is Verdict.HOLDS:
            return "\n".join([f"holds: all {seen}; {self.bound}", *self.lines])
        return "\n".join([f"violated: {self.violated} ({seen}; {self.bound})", *self.lines])


def explore(
    programs: Mapping[str, Program],
    *,
    always: Mapping[str, Claim] | None = None,
    at_rest: Mapping[str, Claim] | None = None,
    eventually: Mapping[str, Claim] | None = None,
    sometimes: Mapping[str, Claim] | None = None,
    faults: Mapping[str, int] | None = None,
    together: int | None = None,
    max_states: int | None = MOST_STATES,
    max_seconds: float | None = None,
    tell: Callable[[Progress], None] | None = None,
) -> ExploreResult:
    """Search every interleaving of some programs about one ZooKeeper.

    A claim is a function of a state (`watchkeeper.checker.user_model.view.State`).
    `always`: it holds in every state. `at_rest`: in every state in
    which nothing has to come any more; then it is
    asked, too, whether rest comes. `eventually`: from every state, without further faults,
    one comes in which it holds, under weak fairness. `sometimes`: there
    is a state in which it holds, so that the others do not hold of nothing.

    `faults` says how many of which kind there may be (`watchkeeper.model.plan.bounds.FAULTS`),
    `together` how many in all; with `join`, the last programs start later, if ever. A search
    that reaches `max_states` or `max_seconds` is unknown, unless it has found something.
    `tell` receives the progress.

    Raises TypeError or ValueError where an argument is nothing of the kind, and
    `watchkeeper.checker.contracts.contracts.BrokenPromise` where a program cannot be searched.
    """
    claims = Claims(always or {}, at_rest or {}, eventually or {}, sometimes or {})
    check_arguments(programs, claims, faults or {}, together, max_states, max_seconds)
    system = UserSystem(programs, claims, faults or {}, together)
    options = SearchOptions(Limits(max_states, max_seconds), reduces=False)
    search = Search(system, options, tell=tell)
    searched = search.run()
    for member in system.members:
        member.moves.process.compiled.run_all_again()
    return _judged(system, search, searched)


def _judged(system: UserSystem, search: Search, searched: Searched) -> ExploreResult:
    if searched.violations:
        violation = searched.violations[0]
        why = why_not(system, violation.what, search.state(violation.state))
        return _violated(system, search, violation, why)
    if searched.stopped:
        return _found(system, search, Verdict.UNKNOWN, searched.stopped)
    remarks = []
    for name, good in _what_has_to_come(system, search):
        live = judge(search, good)
        where = "rest" if name == COMES_TO_REST else f"where this holds: {name}"
        if live.nearest is not None:
            why = f"all may go on for ever, no process passed over, and never come to {where}"
            if live.stuck is not None:
                why = f"nothing that may come leads to {where}"
            first = Violation(name, live.nearest)
            return _violated(system, search, first, why, goes_on=True, lasso=live.lasso)
        if not live.is_known:
            remarks.append(f"all can come to {where}; whether they must was too much to see")
    for name, claim in system.claims.sometimes.items():
        if not _where(system, search, name, claim).any():
            message = f"in no state does this hold: {name}"
            return _found(system, search, Verdict.VIOLATED, violated=name, lines=(message,))
    return _found(system, search, Verdict.HOLDS, lines=tuple(remarks))


def _what_has_to_come(system: UserSystem, search: Search) -> Iterator[tuple[str, Array]]:
    """Yield the names of the liveness properties, each with a flag for each good state."""
    if system.claims.at_rest:
        yield COMES_TO_REST, search.good.values
    for name, claim in system.claims.eventually.items():
        yield name, _where(system, search, name, claim)


def _where(system: UserSystem, search: Search, name: str, claim: Claim) -> Array:
    """Return a flag for each state: whether a claim holds in it."""
    held: dict[tuple[int, ...], bool] = {}
    holds = np.zeros(len(search.visited), np.bool_)
    for number in range(len(holds)):
        key = system.key_of(search.state(number)[:-1])
        if key not in held:
            held[key] = system.holds(name, claim, system.view(key))
        holds[number] = held[key]
    return holds


def _violated(
    system: UserSystem,
    search: Search,
    violation: Violation,
    why: str,
    *,
    goes_on: bool = False,
    lasso: Lasso | None = None,
) -> ExploreResult:
    """`goes_on` adds the steps that may follow; `lasso` is how it goes round."""
    counterexample = counterexample_of(system, search, violation, why, lasso)
    lines = list(lines_of(system, counterexample, search.state(violation.state)))
    if goes_on:
        lines += afterwards(system, counterexample, search.state(violation.state))
    return _found(
        system, search, Verdict.VIOLATED, "", violation.what, counterexample, tuple(lines)
    )


def _found(
    system: UserSystem,
    search: Search,
    verdict: Verdict,
    stopped: str = "",
    violated: str = "",
    counterexample: Counterexample | None = None,
    lines: tuple[str, ...] = (),
) -> ExploreResult:
    progress = search.progress
    return ExploreResult(
        verdict,
        violated,
        counterexample,
        progress.states,
        progress.transitions,
        progress.depth,
        search.terminal_states,
        progress.seconds,
        str(system.budget),
        stopped,
        lines,
    )
