"""The way to a state: which process did what, from one state to the next."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from explore.circle import Circle
from explore.moves import Step
from explore.processes import Processes, State
from explore.search import Search, Violation
from explore.system import FREE


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that was taken."""

    actor: int
    step: Step
    before: State
    after: State


def way_to(system: Processes, search: Search, violation: Violation) -> list[Taken]:
    """The steps to what violates a property, the move that does so included."""
    states = [search.state(number) for number in search.path(violation.state)]
    taken = [_between(system, one, other) for one, other in itertools.pairwise(states)]
    if violation.actor >= 0:
        taken.append(_breaking(system, search, states[-1], violation))
    return taken


def successors(system: Processes, state: State) -> list[Taken]:
    """Everything that can be done in a state."""
    found = []
    for actor in range(len(system.members)):
        for step in system.steps(actor, state[0], state[1 + actor]):
            account = system.account_after(actor, step, state[-1])
            if account >= 0:
                found.append(
                    Taken(actor, step, state, _after(system, state, actor, step, account))
                )
    return found


def _after(system: Processes, state: State, actor: int, step: Step, account: int) -> State:
    cast = system.number_of(step.cast)
    locals_ = [
        system.members[other].locals.of(step.local)
        if other == actor
        else system.hear(other, state[1 + other], cast)
        for other in range(len(system.members))
    ]
    return (step.tree, *locals_, account)


def _between(system: Processes, before: State, after: State) -> Taken:
    return next(taken for taken in successors(system, before) if taken.after == after)


def free_step(system: Processes, before: State, after: State, actor: int = -1) -> Taken:
    """A step that has to come, from one state to the next; of this actor, if one is given."""
    return next(
        taken
        for taken in successors(system, before)
        if taken.after == after
        and actor in (-1, taken.actor)
        and system.kind_of(system.members[taken.actor], taken.step) == FREE
    )


def way_round(
    system: Processes, search: Search, circle: Circle
) -> tuple[list[Taken], list[Taken]]:
    """The steps into a circle, and once round it."""
    states = [search.state(number) for number in circle.way_in]
    way_in = [free_step(system, one, other) for one, other in itertools.pairwise(states)]
    hops, before = list[Taken](), states[-1]
    for hop in circle.round:
        hops.append(free_step(system, before, search.state(hop.after), hop.actor))
        before = hops[-1].after
    return way_in, hops


def _breaking(system: Processes, search: Search, state: State, violation: Violation) -> Taken:
    """The move that violates a property by itself."""
    return next(
        taken
        for taken in successors(system, state)
        if taken.actor == violation.actor
        and system.broken_by(taken.actor, state, taken.step) == violation.what
    )
