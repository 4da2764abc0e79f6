"""Prints how a claim about users' programs comes to fail: each step, and the state at the end."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.checker.actors.actors import State
from watchkeeper.checker.counterexample.explanation import scheduled_step_of, snapshots_of
from watchkeeper.checker.counterexample.path import lasso_steps, path_to, successors
from watchkeeper.checker.search.lasso import Lasso
from watchkeeper.checker.search.search import Search
from watchkeeper.checker.search.successors import Violation
from watchkeeper.checker.user_model.system import IN_VAIN, UserSystem
from watchkeeper.model.counterexample.counterexample import (
    Counterexample,
    CounterexampleStep,
    ScheduledStep,
)
from watchkeeper.model.counterexample.step_kind import StepKind

MOST_DATA = 40
LONGEST_CIRCLE = 60


def counterexample_of(
    system: UserSystem,
    search: Search,
    violation: Violation,
    why: str,
    cycle: Lasso | None = None,
) -> Counterexample:
    """The counterexample of a violation; `why` is its last sentence."""
    taken = path_to(system, search, violation)
    stem, hops = lasso_steps(system, search, cycle) if cycle is not None else ([], [])
    begins = len(taken) + len(stem)
    steps = tuple(
        CounterexampleStep(
            number,
            scheduled_step_of(system, hop),
            snapshots_of(system, hop.after),
            _owners(system, hop.after),
            registry=_registry(system, hop.after),
        )
        for number, hop in enumerate([*taken, *stem, *hops], 1)
    )
    first = search.state(0)
    return Counterexample(
        scenario="own programs",
        variant="",
        violates=violation.what,
        proof=f"after step {len(taken)} {why}",
        bound=str(system.budget),
        nodes=tuple(system.actors),
        steps=steps[: len(taken)],
        first=snapshots_of(system, first),
        first_owners=_owners(system, first),
        stem=steps[len(taken) : begins],
        cycle=steps[begins:],
        first_registry=_registry(system, first),
    )


def _owners(system: UserSystem, state: State) -> dict[str, str]:
    """Every ephemeral with its owner."""
    znodes = system.view(system.key_of(state)).znodes
    return {path: znode.owner for path, znode in znodes.items() if znode.owner}


def _registry(system: UserSystem, state: State) -> dict[str, str]:
    """Every persistent znode with data."""
    znodes = system.view(system.key_of(state)).znodes
    return {
        path: znode.data.decode("utf-8", "replace")
        for path, znode in znodes.items()
        if znode.data and not znode.owner
    }


def lines_of(system: UserSystem, counterexample: Counterexample, end: State) -> Iterator[str]:
    """A counterexample as values; `end` is the state it leads to."""
    for step in counterexample.steps:
        yield _line(counterexample, step.number, step.scheduled)
    yield counterexample.proof
    width = max(len(name) for name in counterexample.nodes)
    view = system.view(system.key_of(end))
    for name, stand in snapshots_of(system, end).items():
        if stand.phase != "running":
            yield f"      {name:{width}}  {stand.phase}"
            continue
        yield f"      {name:{width}}  {view[name].state!r}"
        yield f"      {'':{width}}  session {stand.session}; waits for {stand.waits_for}"
    for path, znode in view.znodes.items():
        owner = f", of {znode.owner}" if znode.owner else ""
        earlier = "'s earlier session" if owner and not znode.is_current else ""
        yield f"      {path}{_data(znode.data)}{owner}{earlier}"


def afterwards(system: UserSystem, counterexample: Counterexample, state: State) -> Iterator[str]:
    """What may come after a state, until all is as it was: round the circle, if there is one."""
    for step in (*counterexample.stem, *counterexample.cycle):
        yield _line(counterexample, step.number, step.scheduled)
    if counterexample.cycle:
        begins = len(counterexample.steps) + len(counterexample.stem)
        yield f"after step {counterexample.cycle[-1].number} all is as it was after step {begins}"
        return
    seen = {state: len(counterexample.steps)}
    for number in range(
        len(counterexample.steps) + 1, len(counterexample.steps) + LONGEST_CIRCLE
    ):
        can = [successor for successor in successors(system, state) if not successor.step.fault]
        if not can:
            return
        taken = can[number % len(can)]
        yield _line(counterexample, number, scheduled_step_of(system, taken))
        state = taken.after
        if state in seen:
            yield f"after step {number} all is as it was after step {seen[state]}"
            return
        seen[state] = number


def _line(counterexample: Counterexample, number: int, scheduled: ScheduledStep) -> str:
    width = max(len(name) for name in counterexample.nodes)
    return f"{number:4}  {scheduled.node:{width}}  {_said(scheduled)}"


def _said(scheduled: ScheduledStep) -> str:
    """What was done, in a line."""
    text = f"{scheduled.text}: {scheduled.operation}" if scheduled.operation else scheduled.text
    answer = scheduled.answer
    if (
        answer is None
        and scheduled.last is StepKind.REPLY
        and scheduled.operation.startswith("exists ")
    ):
        answer = "there is none"
    if answer is not None:
        error = answer.get("error") if isinstance(answer, dict) else None
        text += f" -> {error or answer}"
    return f"{text}   [{scheduled.fault}]" if scheduled.fault else text


def _data(data: bytes | None) -> str:
    return f" = {data[:MOST_DATA].decode('utf-8', 'replace')!r}" if data else ""


def why_not(system: UserSystem, what: str, end: State) -> str:
    """Why a claim fails in a state, as far as the claim of a user can be explained."""
    if what == IN_VAIN:
        return f"nothing has to come any more, and {' and '.join(system.in_vain(end))} still wait"
    if what in system.claims.at_rest:
        return f"nothing has to come any more, and this does not hold: {what}"
    return f"this does not hold: {what}"
