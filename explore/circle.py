"""How things may go on for ever: a way into a circle, and once round it.

Round a circle nobody is passed over: whoever could make a move all the time makes one. So
the way round takes in, for each of them, a move of his or a state in which he has none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Hop(NamedTuple):
    """A move in a circle: whose it is, and the state that it leads to."""

    actor: int
    after: int


@dataclass(frozen=True, slots=True)
class Circle:
    """A circle of moves that have to come, and a way to it along such moves."""

    way_in: tuple[int, ...]
    """States, from the one it is asked of to the first of the circle; maybe they are one."""
    round: tuple[Hop, ...]
    """The last leads back to where the first began."""


Moves = Mapping[int, Iterable[Hop]]
"""State -> the moves from there that stay in a part in which all states reach each other."""


def once_round(begin: int, moves: Moves, waits: Mapping[int, frozenset[int]]) -> tuple[Hop, ...]:
    """A way from a state back to it on which nobody is passed over; a shortest, if that does.

    `waits` says of each actor in which states he has no move. For everybody there has to be
    such a state, or a move of his.
    """
    taken = _way(begin, moves, frozenset([begin]))
    if not _passed_over(begin, taken, waits):
        return tuple(taken)
    taken, at = [], begin
    for actor, idle in waits.items():
        if actor in _passed_over(begin, taken, waits):
            taken += _way(at, moves, idle, actor)
            at = taken[-1].after
    if at != begin:
        taken += _way(at, moves, frozenset([begin]))
    return tuple(taken)


def _passed_over(
    begin: int, taken: Sequence[Hop], waits: Mapping[int, frozenset[int]]
) -> list[int]:
    """Those who make no move on a way, and could make one all along it."""
    movers = {hop.actor for hop in taken}
    seen = {begin, *(hop.after for hop in taken)}
    return [
        actor for actor, idle in waits.items() if actor not in movers and seen.isdisjoint(idle)
    ]


def _way(begin: int, moves: Moves, ends: frozenset[int], actor: int = -1) -> list[Hop]:
    """A shortest way, of one move at least, to one of these states or over a move of an actor."""
    came: dict[int, tuple[int, Hop]] = {}
    waiting = deque([begin])
    while waiting:
        state = waiting.popleft()
        for hop in moves[state]:
            if hop.actor == actor or hop.after in ends:
                return [*_back(begin, state, came), hop]
            if hop.after not in came:
                came[hop.after] = (state, hop)
                waiting.append(hop.after)
    raise AssertionError("in such a part every state is reached from every other")


def _back(begin: int, state: int, came: Mapping[int, tuple[int, Hop]]) -> list[Hop]:
    """The way by which a state was reached."""
    way: list[Hop] = []
    while state != begin:
        state, hop = came[state]
        way.append(hop)
    return way[::-1]
