"""The transitions of one actor, cached for every pair (shared, local) met so far, as arrays."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.checker.state_space.system import FREE, IDLE, Move, System
from watchkeeper.checker.state_space.visited import Visited

Array = NDArray[Any]
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class Extent(IntEnum):
    """Which moves of a pair have been computed: each extent has those of the ones before it."""

    NOTHING = 0
    WITHOUT_FAULTS = 1
    ALL = 2


class Growing:
    """An array that grows at its end."""

    def __init__(self, kind: Any) -> None:
        self._held: Array = np.empty(1024, kind)
        self._size = 0

    @property
    def values(self) -> Array:
        """The elements so far."""
        return self._held[: self._size]

    def extend(self, more: Array | list[Any]) -> None:
        """Append."""
        need = self._size + len(more)
        if need > len(self._held):
            held = np.empty(max(need, 2 * len(self._held)), self._held.dtype)
            held[: self._size] = self.values
            self._held = held
        self._held[self._size : need] = more
        self._size = need


class Memo:
    """A function of small numbers, computed once for each of them."""

    def __init__(self, effect: Callable[[int], int]) -> None:
        self.compute = effect
        self.held = Growing(np.uint64)

    def of(self, numbers: Array) -> Array:
        """Return its value for each of these numbers."""
        first, highest = len(self.held.values), int(numbers.max(initial=0))
        if highest >= first:
            more = [self.compute(number) for number in range(first, highest + 1)]
            self.held.extend(np.array(more, np.uint64))
        values: Array = self.held.values[numbers]
        return values


class TransitionTable:
    """The moves of one actor. A *row* is a pair (shared, local)."""

    def __init__(self, system: System, actor: int) -> None:
        self.system = system
        self.actor = actor
        self.pairs = Visited(1)
        self.first = Growing(np.int64)
        """Row -> where its moves begin."""
        self.count = Growing(np.int64)
        self.left = Growing(np.int64)
        """How many of them, the first ones, are made by late requests and orphaned sessions."""
        self.sole = Growing(np.int64)
        """The only move of the actor's own that is no fault; -1 for none, or several."""
        self.extent = Growing(np.int8)
        """Row -> which of its moves have been computed."""
        self.is_wrong = Growing(np.bool_)
        self.shared = Growing(np.uint32)
        self.local = Growing(np.uint32)
        self.broadcast = Growing(np.uint32)
        self.kind = Growing(np.int8)
        self.exercises = Growing(np.uint8)
        """Move -> the bits of the properties that it exercises."""
        self.step_violation: dict[int, str] = {}
        """Move -> the property that it violates."""
        self.pair_violation: dict[int, str] = {}
        """Row -> the property that every state with this pair violates."""
        self.receptions = Visited(1)
        self.received = Growing(np.uint32)
        self.exclusive = Memo(partial(system.exclusive, actor))
        """Local state -> its exclusive bits."""
        self.reads_from = Memo(partial(system.reads_from, actor))
        """Local state -> the regions that its next moves read; 0 where they do more."""
        self.is_private = Memo(partial(system.is_private, actor))
        """Local state -> whether its moves are independent of the others, and invisible."""
        self.canonical = Memo(partial(system.canonical, actor))
        """Local state -> its representative once no more faults can come."""
        self.leftover_writes = Memo(partial(system.leftover_writes, actor))
        """Local state -> the regions that its late requests and orphaned sessions may write."""
        self.may_write = Memo(partial(system.may_write, actor))
        """Local state -> the regions that it may still write."""

    def rows(self, shared: Array, local: Array, extent: Array | Extent) -> Array:
        """Return the row of each pair; its moves are computed to this extent, or are already."""
        keys = (shared.astype(np.uint64) << _SHIFT) | local
        rows, fresh = self.pairs.insert(keys[:, None])
        if fresh.size:
            self._add(shared[fresh].tolist(), local[fresh].tolist())
        for wanted in (Extent.ALL, Extent.WITHOUT_FAULTS):
            lacking = rows[(extent == wanted) & (self.extent.values[rows] < wanted)]
            if lacking.size:
                self._look_into(np.unique(lacking), wanted)
        return rows

    def _add(self, shared: list[int], local: list[int]) -> None:
        """Add rows without moves."""
        row, count = len(self.extent.values), len(shared)
        for at, pair in enumerate(zip(shared, local, strict=True), start=row):
            pair_violation = self.system.pair_violation(self.actor, *pair)
            if pair_violation:
                self.pair_violation[at] = pair_violation
        for column in (self.first, self.count, self.left):
            column.extend(np.zeros(count, np.int64))
        self.sole.extend(np.full(count, -1))
        self.extent.extend(np.full(count, Extent.NOTHING))
        is_wrong = np.zeros(count, np.bool_)
        is_wrong[[at - row for at in self.pair_violation if at >= row]] = True
        self.is_wrong.extend(is_wrong)

    def _look_into(self, rows: Array, extent: Extent) -> None:
        """Compute the moves of some rows; those of a smaller extent are left behind."""
        first = len(self.shared.values)
        firsts: list[int] = []
        lefts: list[int] = []
        soles: list[int] = []
        found: list[Move] = []
        keys = self.pairs.rows[rows, 0]
        with_faults = extent is Extent.ALL
        pairs = zip((keys >> _SHIFT).tolist(), (keys & _LOW).tolist(), strict=True)
        for shared, local in pairs:
            firsts.append(first + len(found))
            moves = list(self.system.moves(self.actor, shared, local, with_faults=with_faults))
            lefts.append(sum(move.is_leftover for move in moves))
            soles.append(_sole_move(moves, first + len(found)))
            found.extend(moves)
        ends = [*firsts[1:], first + len(found)]
        self.first.values[rows] = firsts
        self.count.values[rows] = np.subtract(ends, firsts)
        self.left.values[rows] = lefts
        self.sole.values[rows] = soles
        self.extent.values[rows] = extent
        self.shared.extend([move.shared for move in found])
        self.local.extend([move.local for move in found])
        self.broadcast.extend([move.broadcast for move in found])
        self.kind.extend([move.kind for move in found])
        self.exercises.extend([move.exercises for move in found])
        for at, move in enumerate(found):
            if move.step_violation:
                self.step_violation[first + at] = move.step_violation

    def after_broadcast(self, broadcast: Array, local: Array) -> Array:
        """Return the local state of each receiver of a broadcast."""
        keys = (broadcast.astype(np.uint64) << _SHIFT) | local
        rows, fresh = self.receptions.insert(keys[:, None])
        if fresh.size:
            pairs = zip(broadcast[fresh].tolist(), local[fresh].tolist(), strict=True)
            receive = self.system.receive
            self.received.extend([receive(self.actor, mine, events) for events, mine in pairs])
        receptions: Array = self.received.values[rows]
        return receptions

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        parts = (self.first, self.count, self.shared, self.local, self.broadcast, self.kind)
        return (
            self.pairs.nbytes + self.receptions.nbytes + sum(part.values.nbytes for part in parts)
        )


def _sole_move(moves: list[Move], first: int) -> int:
    own = [at for at, move in enumerate(moves) if not move.is_leftover and move.kind <= IDLE]
    return first + own[0] if len(own) == 1 and moves[own[0]].kind == FREE else -1
