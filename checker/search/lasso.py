"""Infinite runs: a path (the stem) into a cycle, which then repeats for ever.

The cycle is weakly fair: an actor that could move all along it does move. So it contains, for
each actor, a move of that actor or a state in which the actor has none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class LassoStep(NamedTuple):
    """A move of an actor in a cycle, and the state that it leads to."""

    actor: int
    after: int


@dataclass(frozen=True, slots=True)
class Lasso:
    """A cycle of free moves, and a path of free moves to it."""

    stem: tuple[int, ...]
    """The states from the first one to the first of the cycle; they may be the same."""
    cycle: tuple[LassoStep, ...]
    """The last step leads back to where the first began."""


Moves = Mapping[int, Iterable[LassoStep]]
"""State -> the moves from it that stay in one strongly connected component."""


def fair_cycle(
    begin: int, moves: Moves, disabled: Mapping[int, frozenset[int]]
) -> tuple[LassoStep, ...]:
    """Return a weakly fair path from a state back to it; a shortest one if that is fair.

    `disabled` says of each actor in which states he has no move. For every actor there has to be
    such a state, or a move of his.
    """
    taken = _shortest_path(begin, moves, frozenset([begin]))
    if not _starved(begin, taken, disabled):
        return tuple(taken)
    taken, at = [], begin
    for actor, disabled_in in disabled.items():
        if actor in _starved(begin, taken, disabled):
            taken += _shortest_path(at, moves, disabled_in, actor)
            at = taken[-1].after
    if at != begin:
        taken += _shortest_path(at, moves, frozenset([begin]))
    return tuple(taken)


def _starved(
    begin: int, taken: Sequence[LassoStep], disabled: Mapping[int, frozenset[int]]
) -> list[int]:
    """Return the actors that make no move on a path and could make one all along it."""
    movers = {step.actor for step in taken}
    seen = {begin, *(step.after for step in taken)}
    return [
        actor
        for actor, disabled_in in disabled.items()
        if actor not in movers and seen.isdisjoint(disabled_in)
    ]


def _shortest_path(
    begin: int, moves: Moves, ends: frozenset[int], actor: int = -1
) -> list[LassoStep]:
    """Return a shortest path, not empty, to one of these states or by a move of `actor`."""
    reached_from: dict[int, tuple[int, LassoStep]] = {}
    waiting = deque([begin])
    while waiting:
        state = waiting.popleft()
        for step in moves[state]:
            if step.actor == actor or step.after in ends:
                return [*_path_back(begin, state, reached_from), step]
            if step.after not in reached_from:
                reached_from[step.after] = (state, step)
                waiting.append(step.after)
    raise AssertionError("in a component every state is reachable from every other")


def _path_back(
    begin: int, state: int, reached_from: Mapping[int, tuple[int, LassoStep]]
) -> list[LassoStep]:
    """Return the path by which a state was reached."""
    path: list[LassoStep] = []
    while state != begin:
        state, step = reached_from[state]
        path.append(step)
    return path[::-1]
