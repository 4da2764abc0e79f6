"""What comes of the states of one block: their successors, and what is wrong with them.

A block is expanded without a look at which states are known: so one thread can expand the
next blocks while another finds out which successors of the last are new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explore.alone import NOBODY, Alone
from explore.moves_table import MovesOf
from explore.system import FREE, System

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Violation:
    """A state that violates something, or a move from it that does."""

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
    """Whether states between two looks are kept."""


@dataclass(frozen=True, slots=True)
class Successors:
    """What one actor makes of the states of a block."""

    actor: int
    source: Array
    """The state that each comes from, counted from the first one."""
    rows: Array
    is_free: Array
    """Whether the move has to come."""


@dataclass(slots=True)
class Expanded:
    """What has come of a block."""

    first: int
    successors: list[Successors] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    rests: int = 0
    good: Array = field(default_factory=lambda: np.zeros(0, np.bool_))
    """State -> whether it is at rest and nothing is wrong with it."""

    def violated(self, what: str, at: int, actor: int = -1, move: int = -1) -> None:
        """A state of the block, or a move from it, violates something."""
        self.violations.append(Violation(what, self.first + at, actor, move))


class Expander:
    """Expands the blocks of a search, one after the other."""

    def __init__(
        self, system: System, tables: Sequence[MovesOf], alone: Alone, *, reduces: bool
    ) -> None:
        self.system = system
        self.tables = tables
        self.alone = alone
        self.reduces = reduces
        self.account = len(tables) + 1
        """The column of the account."""
        self._wrong_state: Callable[[tuple[int, ...]], str] | None = getattr(
            system, "wrong_state", None
        )
        """Says what is violated in a whole state, where a system declares it."""

    def expand(self, block: Block) -> Expanded:
        """All successors of a block, and what is violated in it; NotSettled from `alone`."""
        made = Expanded(block.first)
        columns = np.ascontiguousarray(block.rows.T)
        self._look_for_two_of_one(made, block.rows, columns)
        if self._wrong_state is not None:
            self._look_at_states(made, block.rows, self._wrong_state)
        goes_first = self._who_goes_alone(columns)
        have_to_come = np.zeros(len(block.rows), np.int64)
        for actor, table in enumerate(self.tables):
            successors = self._by(made, actor, table, block, columns, goes_first)
            made.successors.append(successors)
            free = successors.source[successors.is_free]
            have_to_come += np.bincount(free, minlength=len(block.rows))
        self._look_at_rests(made, block.rows, have_to_come == 0)
        return made

    def _who_goes_alone(self, columns: Array) -> tuple[Array, Array, Array]:
        if self.reduces:
            return self.alone.who(columns)
        count = columns.shape[1]
        return np.full(count, NOBODY), np.zeros(count, np.bool_), np.zeros(count, np.uint64)

    def _by(
        self,
        made: Expanded,
        actor: int,
        table: MovesOf,
        block: Block,
        columns: Array,
        goes_first: tuple[Array, Array, Array],
    ) -> Successors:
        """Make every move of one actor."""
        alone, is_private, written = goes_first
        pairs = table.rows(columns[0], columns[1 + actor])
        wrong = table.is_wrong.values[pairs]
        if wrong.any():
            at = int(np.argmax(wrong))
            made.violated(table.wrong[int(pairs[at])], at)
        may_move = (alone == NOBODY) | (alone == actor)
        left = table.left.values[pairs] * ((alone == actor) & ~is_private)
        counts = (table.count.values[pairs] - left) * may_move
        source, moves = laid_out(counts, table.first.values[pairs] + left)
        kinds = table.kind.values[moves]
        accounts = self.system.budget.after[columns[self.account][source], kinds]
        if accounts.min(initial=0) < 0:
            can = accounts >= 0
            source, moves, kinds, accounts = source[can], moves[can], kinds[can], accounts[can]
        if table.breaks:
            _look_for_breaks(made, actor, table, source, moves)
        rows = block.rows[source]
        rows[:, 0] = table.shared.values[moves]
        rows[:, 1 + actor] = table.local.values[moves]
        rows[:, self.account] = accounts
        casts = table.cast.values[moves]
        self._tell_others(actor, casts, rows)
        if self.reduces:
            self.alone.check(actor, columns[1 + actor][source], casts, rows, written[source])
            self.alone.reduce(rows, keeps_all=block.keeps_all)
        return Successors(actor, source, rows, kinds == FREE)

    def _tell_others(self, actor: int, casts: Array, rows: Array) -> None:
        heard = np.flatnonzero(casts)
        if not heard.size:
            return
        told = casts[heard]
        for other, table in enumerate(self.tables):
            if other != actor:
                rows[heard, 1 + other] = table.after_hearing(told, rows[heard, 1 + other])

    # --- what is wrong -----------------------------------------------------------------

    def _look_for_two_of_one(self, made: Expanded, rows: Array, columns: Array) -> None:
        seen = np.zeros(len(rows), np.uint64)
        twice = np.zeros(len(rows), np.uint64)
        for actor, table in enumerate(self.tables):
            bits = table.exclusive.of(columns[1 + actor])
            twice |= seen & bits
            seen |= bits
        if twice.any():
            at = int(np.argmax(twice != 0))
            state = rows[at, : self.account + 1].tolist()
            made.violated(self.system.shared(tuple(state)), at)

    def _look_at_states(
        self, made: Expanded, rows: Array, wrong_state: Callable[[tuple[int, ...]], str]
    ) -> None:
        for at, state in enumerate(rows[:, : self.account].tolist()):
            wrong = wrong_state(tuple(state))
            if wrong:
                made.violated(wrong, at)

    def _look_at_rests(self, made: Expanded, rows: Array, at_rest: Array) -> None:
        made.good = np.zeros(len(rows), np.bool_)
        for at in np.flatnonzero(at_rest).tolist():
            made.rests += 1
            wrong = self.system.wrong_at_rest(tuple(rows[at, : self.account].tolist()))
            if wrong:
                made.violated(wrong, at)
            else:
                made.good[at] = True


def _look_for_breaks(
    made: Expanded, actor: int, table: MovesOf, source: Array, moves: Array
) -> None:
    breaking = np.isin(moves, np.fromiter(table.breaks, np.int64))
    for at in np.flatnonzero(breaking)[:1]:
        move = int(moves[at])
        made.violated(table.breaks[move], int(source[at]), actor, move)


def laid_out(counts: Array, firsts: Array) -> tuple[Array, Array]:
    """For runs of so many from there on: the run each item is in, and the item."""
    source = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    items = np.arange(len(source)) + np.repeat(firsts - begins, counts)
    return source, items
