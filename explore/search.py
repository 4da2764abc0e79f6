"""The search: every state that can be reached, the nearest first.

Theory of operation
  Breadth first, level by level, and within a level in blocks of states that fit into the
  processor's caches. A block is expanded by one actor at a time: each state's pair (shared,
  local) names a row of moves, the rows are laid out behind one another, and the successors
  are made, told to the other actors and looked up in one sweep. No work is done for each
  state in Python; that is left to pairs that nobody has seen before.

  Not every state is kept: `alone` says who may go first, and which states stand for others.

  What is violated is noticed when the state that shows it is expanded. States are expanded
  in order of their distance, so the first one found is one of the nearest; a look that a
  large search takes together with the step before it does not count.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explore.alone import NOBODY, Alone, NotSettled
from explore.edges import Edges
from explore.moves_table import Growing, MovesOf
from explore.system import FREE, System
from explore.visited import Visited

BLOCK = 1 << 16
NOWHERE = 0xFFFFFFFF
KEPT_ALL = 1 << 18
"""While there are so few states, each step is a level: what is found first is nearest."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """When a search gives up."""

    states: int | None = None
    seconds: float | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """A state that violates something, or a move from it that does."""

    what: str
    state: int
    """Its number."""
    actor: int = -1
    move: int = -1
    """The move that violates it, counted among those of the actor; -1 where the state does."""


@dataclass(slots=True)
class Progress:
    """How far a search has come."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    """Levels that are complete."""
    frontier: int = 0
    seconds: float = 0.0
    nbytes: int = 0


@dataclass(slots=True)
class Searched:
    """What a search has found."""

    progress: Progress
    violations: list[Violation] = field(default_factory=list)
    """The first of each property."""
    stopped: str = ""
    """Why it gave up; empty where it did not."""
    rests: int = 0
    """States in which nothing has to come any more."""

    @property
    def is_complete(self) -> bool:
        """Whether every state was expanded."""
        return not self.stopped


class Search:
    """A search of one system."""

    def __init__(
        self,
        system: System,
        limits: Limits | None = None,
        *,
        tell: Callable[[Progress], None] | None = None,
        keeps_edges: bool = True,
        goes_on: bool = False,
        reduces: bool = True,
        keeps_all: int = KEPT_ALL,
    ) -> None:
        self.system = system
        self.reduces = reduces
        self.limits = limits or Limits()
        self.tell = tell
        self.goes_on = goes_on
        """Whether it goes on after the first violation, to find the first of each property."""
        self.keeps_all = keeps_all
        """How many states there may be before those between two looks are not kept."""
        self._keeps_edges = keeps_edges
        self._begin(looks_first=True)
        self._wrong_state: Callable[[tuple[int, ...]], str] | None = getattr(
            system, "wrong_state", None
        )
        """Says what is violated in a whole state, where a system declares it."""
        self._begun = time.monotonic()

    def _begin(self, *, looks_first: bool) -> None:
        actors = range(len(self.system.actors))
        self.tables = [MovesOf(self.system, actor) for actor in actors]
        self.width = len(actors) + 2
        self.visited = Visited((self.width + 1) // 2)
        self.alone = Alone(self.system, self.tables, looks_first=looks_first)
        self.parents = Growing(np.uint32)
        self.edges = Edges() if self._keeps_edges else None
        self.good = Growing(np.bool_)
        """State -> whether it is at rest and nothing is wrong with it."""
        self.progress = Progress()
        self.found: dict[str, Violation] = {}
        self.rests = 0

    def run(self) -> Searched:
        """Search until everything is seen, something is violated, or a limit is reached."""
        try:
            return self._run()
        except NotSettled:  # a program writes what others took for settled
            self._begin(looks_first=False)
            return self._run()

    def _run(self) -> Searched:
        row = np.zeros((1, 2 * self.visited.words), np.uint32)
        row[0, : self.width - 1] = self.system.initial()
        self._add(row, np.array([NOWHERE]))
        begin, stopped = 0, ""
        while begin < len(self.visited) and not stopped:
            end = len(self.visited)
            for first in range(begin, end, BLOCK):
                self._expand(first, min(first + BLOCK, end))
                self._note(len(self.visited) - end)
                stopped = self._stopped()
                if stopped or (self.found and not self.goes_on):
                    break
            else:
                self.progress.depth += 1
                begin = end
                self._note(len(self.visited) - end)
                continue
            break
        self._note(len(self.visited) - begin)
        self.progress.nbytes = self.nbytes
        found = sorted(self.found.values(), key=lambda one: (one.state, one.what))
        if found and not self.goes_on:
            stopped = "a violation was found"
        return Searched(self.progress, found, stopped, self.rests)

    def _note(self, frontier: int) -> None:
        self.progress.states = len(self.visited)
        self.progress.frontier = frontier
        self.progress.seconds = time.monotonic() - self._begun
        if self.tell is not None:
            self.tell(self.progress)

    @property
    def nbytes(self) -> int:
        """What states and edges take of the memory."""
        edges = self.edges.nbytes if self.edges is not None else 0
        return self.visited.nbytes + self.parents.values.nbytes + edges

    def _stopped(self) -> str:
        limits = self.limits
        if limits.states is not None and len(self.visited) >= limits.states:
            return f"{limits.states:,} states were seen"
        if limits.seconds is not None and time.monotonic() - self._begun >= limits.seconds:
            return f"{limits.seconds:g} s were over"
        if limits.bytes is not None and _resident_bytes() >= limits.bytes:
            return f"{limits.bytes / 2**30:.1f} GiB of memory were used"
        return ""

    # --- one block ---------------------------------------------------------------------

    def _expand(self, first: int, end: int) -> None:
        rows = self.visited.rows[first:end].copy().view(np.uint32)
        columns = np.ascontiguousarray(rows.T)
        self._look_for_two_of_one(first, columns)
        if self._wrong_state is not None:
            self._look_at_states(first, rows, self._wrong_state)
        alone, is_private, written = self._who_goes_alone(columns)
        have_to_come = np.zeros(len(rows), np.int64)
        for actor, table in enumerate(self.tables):
            have_to_come += self._expand_by(
                actor, table, first, rows, columns, alone, is_private, written
            )
        self._look_at_rests(first, rows, have_to_come == 0)

    def _who_goes_alone(self, columns: Array) -> tuple[Array, Array, Array]:
        if self.reduces:
            return self.alone.who(columns)
        count = columns.shape[1]
        return np.full(count, NOBODY), np.zeros(count, np.bool_), np.zeros(count, np.uint64)

    def _expand_by(
        self,
        actor: int,
        table: MovesOf,
        first: int,
        rows: Array,
        columns: Array,
        alone: Array,
        is_private: Array,
        written: Array,
    ) -> Array:
        """Make every move of one actor; how many there are that have to come, by state."""
        pairs = table.rows(columns[0], columns[1 + actor])
        wrong = table.is_wrong.values[pairs]
        if wrong.any():
            at = int(np.argmax(wrong))
            self._violated(table.wrong[int(pairs[at])], first + at)
        may_move = (alone == NOBODY) | (alone == actor)
        left = table.left.values[pairs] * ((alone == actor) & ~is_private)
        counts = (table.count.values[pairs] - left) * may_move
        source, moves = laid_out(counts, table.first.values[pairs] + left)
        kinds = table.kind.values[moves]
        accounts = self.system.budget.after[columns[self.width - 1][source], kinds]
        if accounts.min(initial=0) < 0:
            can = accounts >= 0
            source, moves, kinds, accounts = source[can], moves[can], kinds[can], accounts[can]
        if table.breaks:
            self._look_for_breaks(actor, table, first, source, moves)
        made = rows[source]
        made[:, 0] = table.shared.values[moves]
        made[:, 1 + actor] = table.local.values[moves]
        made[:, self.width - 1] = accounts
        casts = table.cast.values[moves]
        self._tell_others(actor, casts, made)
        if self.reduces:
            self.alone.check(actor, columns[1 + actor][source], casts, made, written[source])
            self.alone.reduce(made, keeps_all=len(self.visited) < self.keeps_all)
        numbers = self._add(made, source + first)
        self.progress.transitions += len(made)
        is_free = kinds == FREE
        if self.edges is not None:
            self.edges.add(actor, first, source[is_free], numbers[is_free])
        return np.bincount(source[is_free], minlength=len(rows))

    def _tell_others(self, actor: int, casts: Array, made: Array) -> None:
        heard = np.flatnonzero(casts)
        if not heard.size:
            return
        told = casts[heard]
        for other, table in enumerate(self.tables):
            if other != actor:
                made[heard, 1 + other] = table.after_hearing(told, made[heard, 1 + other])

    def _add(self, made: Array, parents: Array) -> Array:
        numbers, fresh = self.visited.insert(made.view(np.uint64))
        self.parents.extend(parents[fresh])
        return numbers

    # --- what is wrong -----------------------------------------------------------------

    def _violated(self, what: str, state: int, actor: int = -1, move: int = -1) -> None:
        before = self.found.get(what)
        if before is None or state < before.state:
            self.found[what] = Violation(what, state, actor, move)

    def _look_for_breaks(
        self, actor: int, table: MovesOf, first: int, source: Array, moves: Array
    ) -> None:
        breaking = np.isin(moves, np.fromiter(table.breaks, np.int64))
        for at in np.flatnonzero(breaking)[:1]:
            move = int(moves[at])
            self._violated(table.breaks[move], first + int(source[at]), actor, move)

    def _look_for_two_of_one(self, first: int, columns: Array) -> None:
        seen = np.zeros(columns.shape[1], np.uint64)
        twice = np.zeros(columns.shape[1], np.uint64)
        for actor, table in enumerate(self.tables):
            bits = table.exclusive.of(columns[1 + actor])
            twice |= seen & bits
            seen |= bits
        if twice.any():
            at = first + int(np.argmax(twice != 0))
            self._violated(self.system.shared(self.state(at)), at)

    def _look_at_states(
        self, first: int, rows: Array, wrong_state: Callable[[tuple[int, ...]], str]
    ) -> None:
        for at, state in enumerate(rows[:, : self.width - 1].tolist()):
            wrong = wrong_state(tuple(state))
            if wrong:
                self._violated(wrong, first + at)

    def _look_at_rests(self, first: int, rows: Array, at_rest: Array) -> None:
        good = np.zeros(len(rows), np.bool_)
        for at in np.flatnonzero(at_rest).tolist():
            self.rests += 1
            wrong = self.system.wrong_at_rest(tuple(rows[at, : self.width - 1].tolist()))
            if wrong:
                self._violated(wrong, first + at)
            else:
                good[at] = True
        self.good.extend(good)

    # --- the way there -----------------------------------------------------------------

    def state(self, number: int) -> tuple[int, ...]:
        """A state: the shared value, the local values, the account."""
        row = self.visited.rows[number].view(np.uint32)
        return tuple(row[: self.width].tolist())

    def path(self, number: int) -> list[int]:
        """The states on a shortest way to this one, from the beginning."""
        parents = self.parents.values
        way = [number]
        while parents[way[-1]] != NOWHERE:
            way.append(int(parents[way[-1]]))
        return way[::-1]


def _resident_bytes() -> int:
    """The memory that this process has; where the machine does not say, the most it ever had."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def laid_out(counts: Array, firsts: Array) -> tuple[Array, Array]:
    """For runs of so many from there on: the run each item is in, and the item."""
    source = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    items = np.arange(len(source)) + np.repeat(firsts - begins, counts)
    return source, items
