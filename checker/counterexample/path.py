"""The path to a state of the search: each step, with the states before and after it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from watchkeeper.checker.actors.actors import Actors, State
from watchkeeper.checker.actors.transitions import Step
from watchkeeper.checker.reduction.reduction import NO_ACTOR
from watchkeeper.checker.search.lasso import Lasso
from watchkeeper.checker.search.search import Search
from watchkeeper.checker.search.successors import Violation
from watchkeeper.checker.state_space.system import FREE


@dataclass(frozen=True, slots=True)
class Taken:
    """A step of a path."""

    actor: int
    step: Step
    before: State
    after: State


def path_to(system: Actors, search: Search, violation: Violation) -> list[Taken]:
    """Return the steps to a violation, including the move that violates the property."""
    first, *others = (search.state(number) for number in search.path(violation.state))
    taken: list[Taken] = []
    state = first
    for kept in others:
        taken += _steps_between(system, search, state, kept)
        state = taken[-1].after
    if violation.actor >= 0:
        taken.append(_violating(system, state, violation))
    return taken


def successors(system: Actors, state: State) -> list[Taken]:
    """Return every step that is enabled in a state."""
    found = []
    for actor in range(len(system.members)):
        for step in system.steps(actor, state[0], state[1 + actor]):
            account = system.account_after(actor, step, state[-1])
            if account >= 0:
                found.append(
                    Taken(actor, step, state, _after(system, state, actor, step, account))
                )
    return found


def _after(system: Actors, state: State, actor: int, step: Step, account: int) -> State:
    broadcast = system.broadcast_number(step.broadcast)
    local_states = [
        system.members[other].local_states.of(step.state)
        if other == actor
        else system.receive(other, state[1 + other], broadcast)
        for other in range(len(system.members))
    ]
    return (step.tree, *local_states, account)


def _steps_between(
    system: Actors,
    search: Search,
    before: State,
    kept: State,
    fits: Callable[[Taken], bool] = lambda taken: True,
) -> list[Taken]:
    """Return the step from one stored state to the next, and the reads skipped after it."""
    for step in filter(fits, successors(system, before)):
        hop = _canonical(search, step)
        if hop.after == kept:
            return [hop]
        if (
            search.options.reduces
            and search.reduction.representative_of(hop.after, keeps_all=False) == kept
        ):
            return [hop, *_skipped_reads(system, search, hop.after)]
    raise AssertionError("no step leads from a state to the one that was found after it")


def lasso_steps(system: Actors, search: Search, lasso: Lasso) -> tuple[list[Taken], list[Taken]]:
    """The steps into a circle, and once round it."""
    stem: list[Taken] = []
    for before, after in itertools.pairwise(lasso.stem):
        stem += _free_steps(system, search, before, after)
    hops, at = list[Taken](), lasso.stem[-1]
    for hop in lasso.cycle:
        hops += _free_steps(system, search, at, hop.after, hop.actor)
        at = hop.after
    return stem, hops


def _free_steps(
    system: Actors, search: Search, before: int, after: int, actor: int = -1
) -> list[Taken]:
    """Return the free steps from one stored state to the next, by `actor` if it is given."""

    def fits(taken: Taken) -> bool:
        kind = system.kind_of(system.members[taken.actor], taken.step)
        return kind == FREE and actor in (-1, taken.actor)

    return _steps_between(system, search, search.state(before), search.state(after), fits)


def _canonical(search: Search, taken: Taken) -> Taken:
    """Return a step with its canonical end state."""
    if not search.options.reduces:
        return taken
    return replace(taken, after=search.reduction.representative_of(taken.after, keeps_all=True))


def _skipped_reads(system: Actors, search: Search, state: State) -> Iterator[Taken]:
    """Yield the skipped reads from a state to the one that the search has stored."""
    while (actor := search.reduction.next_reader(state)) != NO_ACTOR:
        [look] = [
            successor for successor in successors(system, state) if _is_own(successor, actor)
        ]
        kept = _canonical(search, look)
        yield kept
        state = kept.after


def _is_own(taken: Taken, actor: int) -> bool:
    step = taken.step
    return taken.actor == actor and not (step.fault or step.is_idle or step.is_leftover)


def _violating(system: Actors, state: State, violation: Violation) -> Taken:
    """Return the step that itself violates a property."""
    return next(
        taken
        for taken in successors(system, state)
        if taken.actor == violation.actor
        and system.broken_by(taken.actor, state, taken.step) == violation.what
    )
