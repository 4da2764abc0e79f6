"""Partial-order reduction: which states a search may skip without changing its verdict.

Theory of operation
  Two steps are independent if they lead to the same state in either order. Where one actor's
  steps are independent of everything the others can still do, the search explores only that
  actor: its steps are an ample set. Three rules are used.

  private   The actor is about to learn that its session is dead. Its steps change only its own
            state, depend on nothing else, and no other actor observes them. On any path from
            here, its first step can be moved to the front: the path keeps its length and its
            last state. If the actor never moves on a path, its step can be prepended: the
            others do the same, and violate the same. This cannot be deferred for ever, since
            it leads to a new session in at most three steps.

  reads     Once all faults are used up, an actor whose next step reads a region that no other
            actor will write, nor a late request of its own, takes that step alone. The answer
            is the same whenever it comes. Events that were sent before an answer are taken
            before it; so the read that ends a batch, and the step that takes a notification,
            are ample only where no actor will write what this one watches. If the read is the
            only step of the actor, a large search does not even store the state: it stores
            the successor. The actor owns and fetches the same in both, so no violation of
            safety is lost.

  canonical Once all faults are used up, some differences between actor states have no effect
            on what follows. The system maps such states to one of them (state abstraction).

  Condition on the footprints: no actor writes a region that the rule takes for read-only, and
  the set of regions an actor may write only shrinks. `check` tests this at every step. A
  mutated program may violate it; then the search starts again without the rule `reads`.

  Visibility: steps that stop fetching, write, or broadcast a change are never ample.
  Terminal states have no ample set, so the terminal states are the same.

  Cycle proviso: no cycle consists of reduced steps only. An actor that has read every
  read-only region reads again only after a notification, and the read that sets that watch
  again is never reduced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.checker.state_space.system import System
from watchkeeper.checker.state_space.transition_table import Extent, Memo, TransitionTable

Array = NDArray[Any]

NO_ACTOR = -1
MOST_READS = 1_000
"""The most reads to skip in a row; beyond that an actor reads for ever and starves the others."""


class UnsoundReduction(Exception):
    """An actor writes, or may write, a region that was taken for read-only."""


class Reduction:
    """Computes the ample actor of many states at a time."""

    def __init__(
        self, system: System, tables: Sequence[TransitionTable], *, reads_first: bool = True
    ) -> None:
        self.reads_first = reads_first
        """Whether the rule `reads` applies."""
        self.tables = tables
        self.is_spent = system.budget.is_spent
        self.account = len(tables) + 1
        """The column of the fault account."""
        self._writes = Memo(system.written_regions)
        """Broadcast -> the regions that it writes."""

    def ample_actors(self, columns: Array) -> tuple[Array, Array, Array]:
        """Return per state the ample actor or NO_ACTOR, whether it is private, and `written`.

        `columns` has a row for each component of the state and a column for each state.
        """
        ample, written = self.ample_readers(columns)
        is_private = np.zeros(columns.shape[1], np.bool_)
        for actor, table in enumerate(self.tables):
            has_own = table.is_private.of(columns[1 + actor]) != 0
            ample[has_own] = actor
            is_private |= has_own
        return ample, is_private, written

    def ample_readers(self, columns: Array) -> tuple[Array, Array]:
        """Return per state the actor with an ample read, and the regions that may be written.

        While faults are left in the account, every region counts as written.
        """
        ample = np.full(columns.shape[1], NO_ACTOR)
        written = np.full(columns.shape[1], ~np.uint64(0))
        spent = np.flatnonzero(self.is_spent[columns[self.account]])
        if not self.reads_first or not spent.size:
            return ample, written
        local_states = [columns[1 + actor, spent] for actor in range(len(self.tables))]
        reads = [
            table.reads_from.of(local_state)
            for table, local_state in zip(self.tables, local_states, strict=True)
        ]
        written_regions = [
            table.may_write.of(local_state)
            for table, local_state in zip(self.tables, local_states, strict=True)
        ]
        written[spent] = np.bitwise_or.reduce(written_regions)
        # Backwards, so that the first actor with an ample read wins.
        for actor in reversed(range(len(self.tables))):
            if not reads[actor].any():
                continue
            # Late requests of an actor itself are not in its own control: they count as others'.
            others = self.tables[actor].leftover_writes.of(local_states[actor])
            for other, region in enumerate(written_regions):
                if other != actor:
                    others = others | region
            ample[spent[(reads[actor] != 0) & ((reads[actor] & others) == 0)]] = actor
        return ample, written

    def reduce(self, made: Array, *, keeps_all: bool) -> None:
        """Replace each row by its canonical state, and that by what its ample reads lead to."""
        self._canonicalise(made)
        # With `keeps_all` the reads are only tried: an endless chain of them has to be noticed.
        self._skip_reads(made.copy() if keeps_all else made)

    def _skip_reads(self, made: Array) -> None:
        pending = np.arange(len(made))
        for _ in range(MOST_READS):
            pending = pending[self._read_once(made, pending)]
            if not pending.size:
                return
        raise UnsoundReduction("an actor reads without end while the others wait")

    def _canonicalise(self, made: Array) -> None:
        spent = np.flatnonzero(self.is_spent[made[:, self.account]])
        if spent.size:
            for actor, table in enumerate(self.tables):
                made[spent, 1 + actor] = table.canonical.of(made[spent, 1 + actor])

    def _read_once(self, made: Array, pending: Array) -> Array:
        """Take the ample read of each pending state; return a flag for each that had one."""
        rows = made[pending]
        ample, _ = self.ample_readers(np.ascontiguousarray(rows.T))
        has_read = np.zeros(len(pending), np.bool_)
        for actor, table in enumerate(self.tables):
            at = np.flatnonzero(ample == actor)
            if not at.size:
                continue
            pairs = table.rows(rows[at, 0], rows[at, 1 + actor], Extent.WITHOUT_FAULTS)
            moves = table.sole.values[pairs]
            at, moves = at[moves >= 0], moves[moves >= 0]
            assert (table.shared.values[moves] == rows[at, 0]).all(), "a read writes nothing"
            canonical = table.canonical.of(table.local.values[moves])
            made[pending[at], 1 + actor] = canonical
            has_read[at] = True
        return has_read

    # --- one state at a time -----------------------------------------------------------

    def representative_of(self, state: tuple[int, ...], *, keeps_all: bool) -> tuple[int, ...]:
        """Return the state that the search stores in place of this one."""
        row = np.array([state], np.uint32)
        self.reduce(row, keeps_all=keeps_all)
        return tuple(row[0].tolist())

    def next_reader(self, state: tuple[int, ...]) -> int:
        """Return the actor whose read is skipped; NO_ACTOR for a state that is stored."""
        row = np.array([state], np.uint32)
        self._canonicalise(row)
        actor = int(self.ample_readers(row.T)[0][0])
        if actor == NO_ACTOR:
            return NO_ACTOR
        table = self.tables[actor]
        [pair] = table.rows(row[:, 0], row[:, 1 + actor], Extent.WITHOUT_FAULTS)
        return actor if table.sole.values[pair] >= 0 else NO_ACTOR

    # --- soundness -------------------------------------------------------------------------

    def check(
        self, actor: int, before: Array, broadcasts: Array, made: Array, written: Array
    ) -> None:
        """Raise UnsoundReduction where a step violates the condition on the footprints."""
        is_last = written != ~np.uint64(0)
        broadcasting = np.flatnonzero((broadcasts != 0) & is_last)
        if broadcasting.size:
            written_regions = self._writes.of(broadcasts[broadcasting])
            if (written_regions & ~written[broadcasting]).any():
                raise UnsoundReduction("a step writes a region that was taken for read-only")
        if is_last.any():
            table = self.tables[actor]
            now = table.may_write.of(made[is_last, 1 + actor])
            if (now & ~table.may_write.of(before[is_last])).any():
                raise UnsoundReduction("a step adds to the regions that an actor may write")
