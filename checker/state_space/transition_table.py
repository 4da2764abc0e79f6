"""The moves of an actor for every pair (shared, local) that was met, as flat arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explore.system import FREE, IDLE, Move, System
from explore.visited import Visited

Array = NDArray[Any]
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class Growing:
    """An array that is added to in pieces."""

    def __init__(self, kind: Any) -> None:
        self._held: Array = np.empty(1024, kind)
        self._size = 0

    @property
    def values(self) -> Array:
        """What there is."""
        return self._held[: self._size]

    def extend(self, more: Array | list[Any]) -> None:
        """Add to its end."""
        need = self._size + len(more)
        if need > len(self._held):
            held = np.empty(max(need, 2 * len(self._held)), self._held.dtype)
            held[: self._size] = self.values
            self._held = held
        self._held[self._size : need] = more
        self._size = need


class Known:
    """A function of small numbers, asked for each of them once."""

    def __init__(self, ask: Callable[[int], int]) -> None:
        self.ask = ask
        self.held = Growing(np.uint64)

    def of(self, numbers: Array) -> Array:
        """Its value for each of these."""
        first, highest = len(self.held.values), int(numbers.max(initial=0))
        if highest >= first:
            more = [self.ask(one) for one in range(first, highest + 1)]
            self.held.extend(np.array(more, np.uint64))
        values: Array = self.held.values[numbers]
        return values


class MovesOf:
    """One actor's moves. A *row* is a pair (shared, local)."""

    def __init__(self, system: System, actor: int) -> None:
        self.system = system
        self.actor = actor
        self.pairs = Visited(1)
        self.first = Growing(np.int64)
        """Row -> where its moves begin."""
        self.count = Growing(np.int64)
        self.left = Growing(np.int64)
        """How many of them, the first ones, are of what is left of earlier requests."""
        self.only = Growing(np.int64)
        """The one that it makes of its own while there are no faults; -1 for none, or several."""
        self.is_wrong = Growing(np.bool_)
        self.shared = Growing(np.uint32)
        self.local = Growing(np.uint32)
        self.cast = Growing(np.uint32)
        self.kind = Growing(np.int8)
        self.breaks: dict[int, str] = {}
        """Move -> what is violated by it."""
        self.wrong: dict[int, str] = {}
        """Row -> what is violated while it stands."""
        self.heard = Visited(1)
        self.hears = Growing(np.uint32)
        self.exclusive = Known(partial(system.exclusive, actor))
        """Local value -> its exclusive bits."""
        self.looks_at = Known(partial(system.looks_at, actor))
        """Local value -> the regions it looks at next, where it does no more."""
        self.is_private = Known(partial(system.is_private, actor))
        """Local value -> whether all that it can do, or can befall it, is its own business."""
        self.merged = Known(partial(system.merged, actor))
        """Local value -> the one that stands for it once there are no more faults."""
        self.left_writes = Known(partial(system.left_writes, actor))
        """Local value -> the regions to which what is left of earlier requests may write."""
        self.may_write = Known(partial(system.may_write, actor))
        """Local value -> the regions to which it may come to write."""

    def rows(self, shared: Array, local: Array) -> Array:
        """The row of each pair; those that are new are looked into."""
        keys = (shared.astype(np.uint64) << _SHIFT) | local
        rows, fresh = self.pairs.insert(keys[:, None])
        if fresh.size:
            self._look_into(shared[fresh].tolist(), local[fresh].tolist())
        return rows

    def _look_into(self, shared: list[int], local: list[int]) -> None:
        first = len(self.shared.values)
        row = len(self.first.values)
        firsts: list[int] = []
        wrongs: list[bool] = []
        lefts: list[int] = []
        onlys: list[int] = []
        found: list[Move] = []
        for one_shared, one_local in zip(shared, local, strict=True):
            firsts.append(first + len(found))
            moves = list(self.system.moves(self.actor, one_shared, one_local))
            lefts.append(sum(move.is_left for move in moves))
            onlys.append(_only(moves, first + len(found)))
            found.extend(moves)
            wrong = self.system.wrong(self.actor, one_shared, one_local)
            wrongs.append(bool(wrong))
            if wrong:
                self.wrong[row + len(firsts) - 1] = wrong
        ends = [*firsts[1:], first + len(found)]
        self.first.extend(firsts)
        self.count.extend([end - begin for begin, end in zip(firsts, ends, strict=True)])
        self.left.extend(lefts)
        self.only.extend(onlys)
        self.is_wrong.extend(wrongs)
        self.shared.extend([move.shared for move in found])
        self.local.extend([move.local for move in found])
        self.cast.extend([move.cast for move in found])
        self.kind.extend([move.kind for move in found])
        for at, move in enumerate(found):
            if move.breaks:
                self.breaks[first + at] = move.breaks

    def after_hearing(self, cast: Array, local: Array) -> Array:
        """What becomes of the local values of those who learn of a move."""
        keys = (cast.astype(np.uint64) << _SHIFT) | local
        rows, fresh = self.heard.insert(keys[:, None])
        if fresh.size:
            pairs = zip(cast[fresh].tolist(), local[fresh].tolist(), strict=True)
            hear = self.system.hear
            self.hears.extend([hear(self.actor, mine, told) for told, mine in pairs])
        heard: Array = self.hears.values[rows]
        return heard

    @property
    def nbytes(self) -> int:
        """What it takes of the memory."""
        parts = (self.first, self.count, self.shared, self.local, self.cast, self.kind)
        return self.pairs.nbytes + self.heard.nbytes + sum(one.values.nbytes for one in parts)


def _only(moves: list[Move], first: int) -> int:
    own = [at for at, move in enumerate(moves) if not move.is_left and move.kind <= IDLE]
    return first + own[0] if len(own) == 1 and moves[own[0]].kind == FREE else -1
