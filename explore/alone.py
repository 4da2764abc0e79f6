"""Who goes alone, and which states stand for others: how a search passes over states.

Theory of operation
  Nothing is passed over but what comes again elsewhere. Three things are made use of.

  private   All that an actor can do, and all that can befall it, changes nothing but its own
            value, depends on nothing else, and is noticed by nobody: it is about to find out
            that its session is dead. Then its moves go first. Take any way from here. If the
            actor moves on it, its first move there could as well have come first, since
            nothing before it made a difference to it nor it to them; the way is as long and
            ends in the same state. If it never moves, its own way out can be put in front:
            what the others do is the same, and so is whatever they violate. That cannot be
            put off for ever, since it leads to a new session in at most three steps.

  settled   Once all faults are spent, an actor that is about to look where nobody else will
            write any more, nor a request that it left behind, does so first and does nothing
            else. The same argument holds, and its way out is the look: the answer is the
            same whenever it comes. What was sent to an actor before an answer is heard
            before it; so the look that ends a batch, and a note that is taken, go first only
            where nobody will write what the actor watches. If there is but one such move, a
            large search does not keep the state: its successor is kept, at once.
            It holds all that was held before and is fetched, so what it violates is seen.
            That nobody does write there, and that who may write where only becomes less, is
            checked at every move. A flawed program may not keep to it; then the search
            begins again and takes no look first.

  merged    Once all faults are spent, some differences between values make no difference to
            what follows. A system names one value that stands for all such.

  Moves that stop fetching, write, or tell others something never go first. At rest nothing
  goes first, so the states at rest are the same; a way that never ends stays one that never
  ends, since nobody goes alone for ever. Round a circle nobody makes moves that are not kept
  alone: who has looked at all that is settled has to be told something to look again, leaves
  the watch that tells it anew, and that look, where others write, is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explore.moves_table import Known, MovesOf
from explore.system import System

Array = NDArray[Any]

NOBODY = -1
MOST_LOOKS = 1_000
"""That are taken in a row; beyond that somebody looks for ever, and others never move."""


class NotSettled(Exception):
    """Somebody writes, or may write, where nobody should: no look may be taken first."""


class Alone:
    """Decides who goes alone in many states at a time."""

    def __init__(
        self, system: System, tables: Sequence[MovesOf], *, looks_first: bool = True
    ) -> None:
        self.looks_first = looks_first
        """Whether those who look at what is settled go first."""
        self.tables = tables
        self.is_spent = system.budget.is_spent
        self.account = len(tables) + 1
        """The column of the account."""
        self._writes = Known(system.writes)
        """Cast -> the regions that are written to."""

    def who(self, columns: Array) -> tuple[Array, Array, Array]:
        """The actor that moves alone, or NOBODY; whether it is private; what is written to."""
        alone, written = self.who_looks(columns)
        is_private = np.zeros(columns.shape[1], np.bool_)
        for actor, table in enumerate(self.tables):
            has_own = table.is_private.of(columns[1 + actor]) != 0
            alone[has_own] = actor
            is_private |= has_own
        return alone, is_private, written

    def who_looks(self, columns: Array) -> tuple[Array, Array]:
        """The actor that is about to look at what is settled; and the regions still written to.

        Of states in which there may be more faults all is written to.
        """
        alone = np.full(columns.shape[1], NOBODY)
        written = np.full(columns.shape[1], ~np.uint64(0))
        spent = np.flatnonzero(self.is_spent[columns[self.account]])
        if not self.looks_first or not spent.size:
            return alone, written
        locals_ = [columns[1 + actor, spent] for actor in range(len(self.tables))]
        looks = [table.looks_at.of(one) for table, one in zip(self.tables, locals_, strict=True)]
        writes = [
            table.may_write.of(one) for table, one in zip(self.tables, locals_, strict=True)
        ]
        written[spent] = np.bitwise_or.reduce(writes)
        for actor in reversed(range(len(self.tables))):
            if not looks[actor].any():
                continue
            others = self.tables[actor].left_writes.of(locals_[actor])
            for other, one in enumerate(writes):
                if other != actor:
                    others = others | one
            alone[spent[(looks[actor] != 0) & ((looks[actor] & others) == 0)]] = actor
        return alone, written

    def reduce(self, made: Array, *, keeps_all: bool) -> None:
        """Replace states by those that stand for them, and take looks that go alone."""
        self._merge(made)
        self._take_looks(made.copy() if keeps_all else made)

    def _take_looks(self, made: Array) -> None:
        open_ = np.arange(len(made))
        for _ in range(MOST_LOOKS):
            open_ = open_[self._look(made, open_)]
            if not open_.size:
                return
        raise NotSettled("somebody looks at one thing after the other for ever")

    def _merge(self, made: Array) -> None:
        spent = np.flatnonzero(self.is_spent[made[:, self.account]])
        if spent.size:
            for actor, table in enumerate(self.tables):
                made[spent, 1 + actor] = table.merged.of(made[spent, 1 + actor])

    def _look(self, made: Array, open_: Array) -> Array:
        """Take one look in each of these states in which somebody goes alone; which they are."""
        rows = made[open_]
        alone, _ = self.who_looks(np.ascontiguousarray(rows.T))
        has_looked = np.zeros(len(open_), np.bool_)
        for actor, table in enumerate(self.tables):
            at = np.flatnonzero(alone == actor)
            if not at.size:
                continue
            pairs = table.rows(rows[at, 0], rows[at, 1 + actor])
            moves = table.only.values[pairs]
            at, moves = at[moves >= 0], moves[moves >= 0]
            assert (table.shared.values[moves] == rows[at, 0]).all(), "who looks writes nothing"
            merged = table.merged.of(table.local.values[moves])
            made[open_[at], 1 + actor] = merged
            has_looked[at] = True
        return has_looked

    # --- one state at a time -----------------------------------------------------------

    def stands_for(self, state: tuple[int, ...], *, keeps_all: bool) -> tuple[int, ...]:
        """The state that is kept in place of this one."""
        row = np.array([state], np.uint32)
        self.reduce(row, keeps_all=keeps_all)
        return tuple(row[0].tolist())

    def looker(self, state: tuple[int, ...]) -> int:
        """The actor whose look comes next in a state that is not kept; NOBODY in one that is."""
        row = np.array([state], np.uint32)
        self._merge(row)
        actor = int(self.who_looks(row.T)[0][0])
        if actor == NOBODY:
            return NOBODY
        table = self.tables[actor]
        [pair] = table.rows(row[:, 0], row[:, 1 + actor])
        return actor if table.only.values[pair] >= 0 else NOBODY

    # --- whether it was right to ------------------------------------------------------------

    def check(self, actor: int, before: Array, casts: Array, made: Array, written: Array) -> None:
        """Nobody writes where nobody should, and who may write where only becomes less."""
        is_last = written != ~np.uint64(0)
        told = np.flatnonzero((casts != 0) & is_last)
        if told.size:
            writes = self._writes.of(casts[told])
            if (writes & ~written[told]).any():
                raise NotSettled("a region is written to that was settled")
        if is_last.any():
            table = self.tables[actor]
            now = table.may_write.of(made[is_last, 1 + actor])
            if (now & ~table.may_write.of(before[is_last])).any():
                raise NotSettled("somebody may write where it would not any more")
