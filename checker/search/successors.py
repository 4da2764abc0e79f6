"""The expansion of one block of states: their successors and their violations.

It needs no knowledge of the visited states. So one thread can expand the next blocks while
another finds out which successors of the last one are new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.checker.reduction.reduction import NO_ACTOR, Reduction
from watchkeeper.checker.state_space.system import FREE, System
from watchkeeper.checker.state_space.transition_table import Extent, TransitionTable

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Violation:
    """A state that violates a property, or a move from it that does."""

    what: str
    state: int
    """Its number."""
    actor: int = -1
    move: int = -1
    """The move that violates it, counted among those of the actor; -1 where the state does."""


@dataclass(frozen=True, slots=True)
class Block:
    """States that are expanded together."""

    first: int
    """The number of the first one."""
    rows: Array
    keeps_all: bool
    """Whether no read is skipped."""


@dataclass(frozen=True, slots=True)
class Successors:
    """The successors of a block by the moves of one actor."""

    actor: int
    source: Array
    """The state of the block that each successor comes from."""
    rows: Array
    is_free: Array
    """Whether the move is free: it has to come."""


@dataclass(slots=True)
class Exercised:
    """How often a search has exercised properties: a property that never was holds of nothing."""

    exclusion: int = 0
    """States in which an actor holds something exclusively."""
    at_rest: int = 0
    """Terminal states by which properties at rest can be judged."""
    by_moves: Counter[str] = field(default_factory=Counter)
    """Property -> transitions that exercise it."""

    def add(self, other: Exercised) -> None:
        """Add what another part of the search has exercised."""
        self.exclusion += other.exclusion
        self.at_rest += other.at_rest
        self.by_moves.update(other.by_moves)


@dataclass(slots=True)
class Expanded:
    """The result of expanding a block."""

    first: int
    successors: list[Successors] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    terminal_states: int = 0
    exercised: Exercised = field(default_factory=Exercised)
    good: Array = field(default_factory=lambda: np.zeros(0, np.bool_))
    """State -> whether it is terminal and violates nothing."""

    def violated(self, what: str, at: int, actor: int = -1, move: int = -1) -> None:
        """Record that a state of the block, or a move from it, violates a property."""
        self.violations.append(Violation(what, self.first + at, actor, move))


class Expander:
    """Expands the blocks of a search, one after the other."""

    def __init__(
        self,
        system: System,
        tables: Sequence[TransitionTable],
        reduction: Reduction,
        *,
        reduces: bool,
    ) -> None:
        self.system = system
        self.tables = tables
        self.reduction = reduction
        self.reduces = reduces
        self.account = len(tables) + 1
        """The column of the account."""
        self._state_violation: Callable[[tuple[int, ...]], str] | None = getattr(
            system, "state_violation", None
        )
        """The property that a whole state violates, for systems that judge whole states."""

    def expand(self, block: Block) -> Expanded:
        """Return the successors and violations of a block; raises UnsoundReduction."""
        made = Expanded(block.first)
        columns = np.ascontiguousarray(block.rows.T)
        self._check_exclusion(made, block.rows, columns)
        if self._state_violation is not None:
            self._check_states(made, block.rows, self._state_violation)
        ample = self._ample(columns)
        is_spent = self.system.budget.is_spent[columns[self.account]]
        extents = np.where(is_spent, Extent.WITHOUT_FAULTS, Extent.ALL)
        free_moves = np.zeros(len(block.rows), np.int64)
        for actor, table in enumerate(self.tables):
            successors = self._of_actor(made, actor, table, block, columns, ample, extents)
            made.successors.append(successors)
            free = successors.source[successors.is_free]
            free_moves += np.bincount(free, minlength=len(block.rows))
        self._check_terminal(made, block.rows, free_moves == 0)
        return made

    def _ample(self, columns: Array) -> tuple[Array, Array, Array]:
        if self.reduces:
            return self.reduction.ample_actors(columns)
        count = columns.shape[1]
        return np.full(count, NO_ACTOR), np.zeros(count, np.bool_), np.zeros(count, np.uint64)

    def _of_actor(
        self,
        made: Expanded,
        actor: int,
        table: TransitionTable,
        block: Block,
        columns: Array,
        ample: tuple[Array, Array, Array],
        extents: Array,
    ) -> Successors:
        """Return the successors by the moves of one actor."""
        reduction, is_private, written = ample
        may_move = (reduction == NO_ACTOR) | (reduction == actor)
        # Most states have spent their faults, and many have another actor that moves alone: what
        # they need of a pair is a fraction of all its moves.
        pairs = table.rows(
            columns[0], columns[1 + actor], np.where(may_move, extents, Extent.NOTHING)
        )
        pair_violation = table.is_wrong.values[pairs]
        if pair_violation.any():
            at = int(np.argmax(pair_violation))
            made.violated(table.pair_violation[int(pairs[at])], at)
        # An ample read excludes the actor's own late requests and orphaned sessions. They come
        # first in each row of moves, so skipping them is an offset.
        left = table.left.values[pairs] * ((reduction == actor) & ~is_private)
        counts = (table.count.values[pairs] - left) * may_move
        source, moves = laid_out(counts, table.first.values[pairs] + left)
        kinds = table.kind.values[moves]
        accounts = self.system.budget.after[columns[self.account][source], kinds]
        if accounts.min(initial=0) < 0:
            can = accounts >= 0
            source, moves, kinds, accounts = source[can], moves[can], kinds[can], accounts[can]
        self._note_exercised(made, table.exercises.values[moves])
        if table.step_violation:
            _check_steps(made, actor, table, source, moves)
        rows = block.rows[source]
        rows[:, 0] = table.shared.values[moves]
        rows[:, 1 + actor] = table.local.values[moves]
        rows[:, self.account] = accounts
        broadcasts = table.broadcast.values[moves]
        self._broadcast(actor, broadcasts, rows)
        if self.reduces:
            self.reduction.check(
                actor, columns[1 + actor][source], broadcasts, rows, written[source]
            )
            self.reduction.reduce(rows, keeps_all=block.keeps_all)
        return Successors(actor, source, rows, kinds == FREE)

    def _broadcast(self, actor: int, broadcasts: Array, rows: Array) -> None:
        receiving = np.flatnonzero(broadcasts)
        if not receiving.size:
            return
        received = broadcasts[receiving]
        for other, table in enumerate(self.tables):
            if other != actor:
                rows[receiving, 1 + other] = table.after_broadcast(
                    received, rows[receiving, 1 + other]
                )

    def _note_exercised(self, made: Expanded, exercises: Array) -> None:
        """Count the moves that exercise a property; few of them do."""
        some = exercises[exercises > 0]
        if some.size:
            for place, name in enumerate(self.system.exercised_by_moves):
                made.exercised.by_moves[name] += int(np.count_nonzero(some & (1 << place)))

    # --- violations --------------------------------------------------------------------

    def _check_exclusion(self, made: Expanded, rows: Array, columns: Array) -> None:
        claimed = np.zeros(len(rows), np.uint64)
        clash = np.zeros(len(rows), np.uint64)
        for actor, table in enumerate(self.tables):
            bits = table.exclusive.of(columns[1 + actor])
            clash |= claimed & bits
            claimed |= bits
        made.exercised.exclusion = int(np.count_nonzero(claimed))
        if clash.any():
            at = int(np.argmax(clash != 0))
            state = rows[at, : self.account + 1].tolist()
            made.violated(self.system.exclusion_violation(tuple(state)), at)

    def _check_states(
        self, made: Expanded, rows: Array, state_violation: Callable[[tuple[int, ...]], str]
    ) -> None:
        for at, state in enumerate(rows[:, : self.account].tolist()):
            pair_violation = state_violation(tuple(state))
            if pair_violation:
                made.violated(pair_violation, at)

    def _check_terminal(self, made: Expanded, rows: Array, is_terminal: Array) -> None:
        made.good = np.zeros(len(rows), np.bool_)
        for at in np.flatnonzero(is_terminal).tolist():
            made.terminal_states += 1
            state = tuple(rows[at, : self.account].tolist())
            pair_violation = self.system.terminal_violation(state)
            made.exercised.at_rest += self.system.is_exercised_at_rest(state)
            if pair_violation:
                made.violated(pair_violation, at)
            else:
                made.good[at] = True


def _check_steps(
    made: Expanded, actor: int, table: TransitionTable, source: Array, moves: Array
) -> None:
    breaking = np.isin(moves, np.fromiter(table.step_violation, np.int64))
    for at in np.flatnonzero(breaking)[:1]:
        move = int(moves[at])
        made.violated(table.step_violation[move], int(source[at]), actor, move)


def laid_out(counts: Array, firsts: Array) -> tuple[Array, Array]:
    """Concatenate ranges, given by their lengths and first items.

    Returns for each item the index of its range, and the item.
    """
    source = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    items = np.arange(len(source)) + np.repeat(firsts - begins, counts)
    return source, items
