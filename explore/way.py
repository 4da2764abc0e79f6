"""The way to a state: which process did what, from one state to the next."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from explore.alone import NOBODY
from explore.circle import Circle
from explore.expanding import Violation
from explore.moves import Step
from explore.processes import Processes, State
from explore.search import Search
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
    first, *others = (search.state(number) for number in search.path(violation.state))
    taken: list[Taken] = []
    state = first
    for kept in others:
        taken += _between(system, search, state, kept)
        state = taken[-1].after
    if violation.actor >= 0:
        taken.append(_breaking(system, state, violation))
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


def _between(
    system: Processes,
    search: Search,
    before: State,
    kept: State,
    fits: Callable[[Taken], bool] = lambda taken: True,
) -> list[Taken]:
    """The step that led to a state which is kept, or to one that it stands for."""
    for step in filter(fits, successors(system, before)):
        one = _as_kept(search, step)
        if one.after == kept:
            return [one]
        if search.reduces and search.alone.stands_for(one.after, keeps_all=False) == kept:
            return [one, *_looks(system, search, one.after)]
    raise AssertionError("no step leads from a state to the one that was found after it")


def way_round(
    system: Processes, search: Search, circle: Circle
) -> tuple[list[Taken], list[Taken]]:
    """The steps into a circle, and once round it."""
    way_in: list[Taken] = []
    for before, after in itertools.pairwise(circle.way_in):
        way_in += _free_steps(system, search, before, after)
    hops, at = list[Taken](), circle.way_in[-1]
    for hop in circle.round:
        hops += _free_steps(system, search, at, hop.after, hop.actor)
        at = hop.after
    return way_in, hops


def _free_steps(
    system: Processes, search: Search, before: int, after: int, actor: int = -1
) -> list[Taken]:
    """What has to come from one state to the next; begun by this actor, if one is given."""

    def fits(taken: Taken) -> bool:
        kind = system.kind_of(system.members[taken.actor], taken.step)
        return kind == FREE and actor in (-1, taken.actor)

    return _between(system, search, search.state(before), search.state(after), fits)


def _as_kept(search: Search, taken: Taken) -> Taken:
    """A step to the state that stands for those which do the same as the one it leads to."""
    if not search.reduces:
        return taken
    return replace(taken, after=search.alone.stands_for(taken.after, keeps_all=True))


def _looks(system: Processes, search: Search, state: State) -> Iterator[Taken]:
    """The steps from a state that is not kept to the one that is kept in its place."""
    while (actor := search.alone.looker(state)) != NOBODY:
        [look] = [one for one in successors(system, state) if _is_own(one, actor)]
        kept = _as_kept(search, look)
        yield kept
        state = kept.after


def _is_own(taken: Taken, actor: int) -> bool:
    step = taken.step
    return taken.actor == actor and not (step.fault or step.is_idle or step.is_left)


def _breaking(system: Processes, state: State, violation: Violation) -> Taken:
    """The move that violates a property by itself."""
    return next(
        taken
        for taken in successors(system, state)
        if taken.actor == violation.actor
        and system.broken_by(taken.actor, state, taken.step) == violation.what
    )
