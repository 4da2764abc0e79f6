"""The door for users' own protocols: programs, claims and a bound in, a verdict out.

    found = explore(
        {"a": Program(turn, "a", Memory()), "b": Program(turn, "b", Memory())},
        always={"one holder": lambda state: holders(state) <= 1},
        faults={"crash": 1},
    )
    assert found.holds, found

What a program does in the middle of its turn is its own affair: a claim sees the memory
with which the turn began. So what a program may be doing has to be in its memory before it
does it, and may leave it only when it has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explore.circle import Circle
from explore.expanding import Violation
from explore.liveness import judge
from explore.own_arguments import check_arguments
from explore.own_story import afterwards, lines_of, story_of, why_not
from explore.own_system import Claim, Claims, OwnSystem
from explore.search import Limits, Progress, Search, Searched
from model.program import Program
from model.story import Story
from model.verdicts import Verdict

COMES_TO_REST = "comes to rest"
"""What is violated where rest does not come; asked if something is claimed of it."""
MOST_STATES = 5_000_000

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search of programs has found."""

    verdict: Verdict
    violated: str
    """The claim that fails; empty for none."""
    story: Story | None
    """A shortest way to where it fails."""
    states: int
    transitions: int
    depth: int
    """How many steps from the beginning every state was looked at."""
    rests: int
    """States in which nothing has to come any more."""
    seconds: float
    bound: str
    stopped: str
    """Why the search gave up; empty where it has seen everything."""
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
) -> Found:
    """Search every interleaving of some programs about one ZooKeeper.

    A claim is a function of a state (`explore.view.State`). `always`: it holds in every
    state. `at_rest`: in every state in which nothing has to come any more; then it is
    asked, too, whether rest comes. `eventually`: from every state, without further faults,
    one comes in which it holds, unless somebody is passed over for ever. `sometimes`: there
    is a state in which it holds, so that the others do not hold of nothing.

    `faults` says how many of which kind there may be (`model.bounds.FAULTS`), `together`
    how many in all; with `join`, the last programs start later, if ever. A search
    that reaches `max_states` or `max_seconds` is unknown, unless it has found something.
    `tell` hears how far it has come.

    Raises TypeError or ValueError where an argument is nothing of the kind, and
    `explore.promises.BrokenPromise` where a program cannot be searched.
    """
    claims = Claims(always or {}, at_rest or {}, eventually or {}, sometimes or {})
    check_arguments(programs, claims, faults or {}, together, max_states, max_seconds)
    system = OwnSystem(programs, claims, faults or {}, together)
    search = Search(system, Limits(max_states, max_seconds), tell=tell, reduces=False)
    searched = search.run()
    for member in system.members:
        member.moves.process.unfolding.run_again()
    return _judged(system, search, searched)


def _judged(system: OwnSystem, search: Search, searched: Searched) -> Found:
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
            why = f"all may go on for ever, nobody passed over, and never come to {where}"
            if live.stuck is not None:
                why = f"nothing that may come leads to {where}"
            first = Violation(name, live.nearest)
            return _violated(system, search, first, why, goes_on=True, circle=live.circle)
        if not live.is_known:
            remarks.append(f"all can come to {where}; whether they must was too much to see")
    for name, claim in system.claims.sometimes.items():
        if not _where(system, search, name, claim).any():
            said = f"in no state does this hold: {name}"
            return _found(system, search, Verdict.VIOLATED, violated=name, lines=(said,))
    return _found(system, search, Verdict.HOLDS, lines=tuple(remarks))


def _what_has_to_come(system: OwnSystem, search: Search) -> Iterator[tuple[str, Array]]:
    """By name, the states of which one has to come, wherever one is."""
    if system.claims.at_rest:
        yield COMES_TO_REST, search.good.values
    for name, claim in system.claims.eventually.items():
        yield name, _where(system, search, name, claim)


def _where(system: OwnSystem, search: Search, name: str, claim: Claim) -> Array:
    """Whether a claim holds, for each state."""
    held: dict[tuple[int, ...], bool] = {}
    holds = np.zeros(len(search.visited), np.bool_)
    for number in range(len(holds)):
        key = system.key_of(search.state(number)[:-1])
        if key not in held:
            held[key] = system.holds(name, claim, system.view(key))
        holds[number] = held[key]
    return holds


def _violated(
    system: OwnSystem,
    search: Search,
    violation: Violation,
    why: str,
    *,
    goes_on: bool = False,
    circle: Circle | None = None,
) -> Found:
    """`goes_on` where it is to be told what may come then; `circle` is how it goes round."""
    story = story_of(system, search, violation, why, circle)
    lines = list(lines_of(system, story, search.state(violation.state)))
    if goes_on:
        lines += afterwards(system, story, search.state(violation.state))
    return _found(system, search, Verdict.VIOLATED, "", violation.what, story, tuple(lines))


def _found(
    system: OwnSystem,
    search: Search,
    verdict: Verdict,
    stopped: str = "",
    violated: str = "",
    story: Story | None = None,
    lines: tuple[str, ...] = (),
) -> Found:
    progress = search.progress
    return Found(
        verdict,
        violated,
        story,
        progress.states,
        progress.transitions,
        progress.depth,
        search.rests,
        progress.seconds,
        str(system.budget),
        stopped,
        lines,
    )
