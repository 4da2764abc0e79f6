"""The search: every reachable state, breadth first.

Theory of operation
  The search goes level by level, and within a level in blocks of states that fit into the
  processor's caches. A block is expanded by one actor at a time: each state's pair (shared,
  local) names a row of moves, the rows are concatenated, and the successors are built,
  broadcast to the other actors and looked up in the visited set, all in array operations. No
  Python code runs per state; it runs only for pairs that were not met before. It looks into a
  pair only as far as some state needs it: not where another actor moves alone in all of them,
  and into its faults only where the account of one of them has some left.

  With two jobs one thread expands blocks while another looks up the successors of earlier
  ones: NumPy releases the interpreter lock for most of the work of both. Blocks are expanded
  and looked up in the same order, so states get the same numbers.

  The reduction says which actors may be expanded alone, and which states stand for others.

  A violation is found when the state that shows it is expanded. States are expanded in order
  of their distance, so the first violation is one of the nearest. In a large search, reads
  that the reduction skips do not count as distance.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.checker.reduction.reduction import Reduction, UnsoundReduction
from watchkeeper.checker.search.successors import Block, Exercised, Expanded, Expander, Violation
from watchkeeper.checker.state_space.edges import Edges
from watchkeeper.checker.state_space.prefetch import prefetched
from watchkeeper.checker.state_space.system import System
from watchkeeper.checker.state_space.transition_table import Growing, TransitionTable
from watchkeeper.checker.state_space.visited import Visited

BLOCK = 1 << 16
NOWHERE = 0xFFFFFFFF
KEPT_ALL = 1 << 18
"""Up to this many states no read is skipped: every step counts, and the first violation found
is the nearest. Most violations are found within them."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits at which a search stops."""

    states: int | None = None
    seconds: float | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of a search."""

    limits: Limits = Limits()
    finds_all: bool = False
    """Whether it goes on after the first violation and finds the first of each property."""
    reduces: bool = True
    """Whether it uses partial-order reduction."""
    jobs: int = 1
    """With 2, one thread expands states while another looks up new ones."""
    keeps_edges: bool = True
    """Whether it keeps what progress is judged by."""
    keeps_all: int = KEPT_ALL
    """Up to how many states no read is skipped."""


DEFAULT_OPTIONS = SearchOptions()


@dataclass(slots=True)
class Progress:
    """The progress of a search."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    """Levels that are complete."""
    frontier: int = 0
    seconds: float = 0.0
    nbytes: int = 0


Tell = Callable[[Progress], None]
"""Receives the progress of a search; it may raise SearchEnded."""


class SearchEnded(Exception):
    """Ends a search between two blocks; what was seen so far is its result.

    The text says why, as in "it was interrupted".
    """


@dataclass(slots=True)
class Searched:
    """The result of a search."""

    progress: Progress
    violations: list[Violation] = field(default_factory=list)
    """The first violation of each property."""
    stopped: str = ""
    """Why it stopped early; empty where it is complete."""
    terminal_states: int = 0
    """How many states have no free move."""
    exercised: Exercised = field(default_factory=Exercised)
    """How often properties were exercised."""

    @property
    def is_complete(self) -> bool:
        """Whether every state was expanded."""
        return not self.stopped


class Search:
    """A search of one system."""

    def __init__(
        self,
        system: System,
        options: SearchOptions = DEFAULT_OPTIONS,
        *,
        tell: Tell | None = None,
    ) -> None:
        self.system = system
        self.options = options
        self.tell = tell
        self._ended = ""
        self._reset(reads_first=True)
        self._begun = time.monotonic()

    def _reset(self, *, reads_first: bool) -> None:
        actors = range(len(self.system.actors))
        self.tables = [TransitionTable(self.system, actor) for actor in actors]
        self.width = len(actors) + 2
        self.visited = Visited((self.width + 1) // 2)
        self.reduction = Reduction(self.system, self.tables, reads_first=reads_first)
        self.expander = Expander(
            self.system, self.tables, self.reduction, reduces=self.options.reduces
        )
        self.parents = Growing(np.uint32)
        self.edges = Edges() if self.options.keeps_edges else None
        self.good = Growing(np.bool_)
        """State -> whether it is terminal and violates nothing."""
        self.progress = Progress()
        self.found: dict[str, Violation] = {}
        self.terminal_states = 0
        self.exercised = Exercised(
            by_moves=Counter(dict.fromkeys(self.system.exercised_by_moves, 0))
        )

    def run(self) -> Searched:
        """Search until all states are expanded, a property is violated, or a limit is met."""
        try:
            return self._run()
        except UnsoundReduction:  # a mutated program writes what was taken for read-only
            self._reset(reads_first=False)
            return self._run()

    def _run(self) -> Searched:
        row = np.zeros((1, 2 * self.visited.words), np.uint32)
        row[0, : self.width - 1] = self.system.initial()
        self._add(row, np.array([NOWHERE]))
        begin, stopped = 0, ""
        while begin < len(self.visited) and not stopped:
            end = len(self.visited)
            for block in prefetched(
                self.expander.expand, self._blocks(begin, end), self.options.jobs
            ):
                self._merge(block)
                self._report(len(self.visited) - end)
                stopped = self._stopped()
                if stopped or (self.found and not self.options.finds_all):
                    break
            else:
                self.progress.depth += 1
                begin = end
                self._report(len(self.visited) - end)
                continue
            break
        self._report(len(self.visited) - begin)
        self.progress.nbytes = self.nbytes
        found = sorted(
            self.found.values(), key=lambda violation: (violation.state, violation.what)
        )
        if found and not self.options.finds_all:
            stopped = "a violation was found"
        return Searched(self.progress, found, stopped, self.terminal_states, self.exercised)

    def _report(self, frontier: int) -> None:
        self.progress.states = len(self.visited)
        self.progress.frontier = frontier
        self.progress.seconds = time.monotonic() - self._begun
        if self.tell is not None and not self._ended:
            try:
                self.tell(self.progress)
            except SearchEnded as ended:
                self._ended = str(ended)

    @property
    def nbytes(self) -> int:
        """The size of states and edges in bytes."""
        edges = self.edges.nbytes if self.edges is not None else 0
        return self.visited.nbytes + self.parents.values.nbytes + edges

    def _stopped(self) -> str:
        limits = self.options.limits
        if self._ended:
            return self._ended
        if limits.states is not None and len(self.visited) >= limits.states:
            return f"{limits.states:,} states were seen"
        if limits.seconds is not None and time.monotonic() - self._begun >= limits.seconds:
            return f"{limits.seconds:g} s were over"
        if limits.bytes is not None and resident_bytes() >= limits.bytes:
            return f"{limits.bytes / 2**30:.1f} GiB of memory were used"
        return ""

    # --- one block ---------------------------------------------------------------------

    def _blocks(self, begin: int, end: int) -> Iterator[Block]:
        """Yield the states of a level in blocks."""
        keeps_all = len(self.visited) < self.options.keeps_all
        for first in range(begin, end, BLOCK):
            rows = self.visited.rows[first : min(first + BLOCK, end)].copy().view(np.uint32)
            yield Block(first, rows, keeps_all)

    def _merge(self, block: Expanded) -> None:
        """Number the new successors of a block, and collect what it has found."""
        for violation in block.violations:
            before = self.found.get(violation.what)
            if before is None or violation.state < before.state:
                self.found[violation.what] = violation
        for made in block.successors:
            numbers = self._add(made.rows, made.source + block.first)
            self.progress.transitions += len(made.rows)
            if self.edges is not None:
                free = made.is_free
                self.edges.add(made.actor, block.first, made.source[free], numbers[free])
        self.terminal_states += block.terminal_states
        self.exercised.add(block.exercised)
        self.good.extend(block.good)

    def _add(self, made: Array, parents: Array) -> Array:
        numbers, fresh = self.visited.insert(made.view(np.uint64))
        self.parents.extend(parents[fresh])
        return numbers

    @property
    def rows(self) -> Array:
        """Every state that was seen: the shared value, the local states, the fault account."""
        return self.visited.rows.view(np.uint32)

    # --- paths -------------------------------------------------------------------------

    def state(self, number: int) -> tuple[int, ...]:
        """Return a state: the shared value, the local states, the fault account."""
        row = self.visited.rows[number].view(np.uint32)
        return tuple(row[: self.width].tolist())

    def path(self, number: int) -> list[int]:
        """Return the numbers of the states on a shortest path from the first to this one."""
        parents = self.parents.values
        states = [number]
        while parents[states[-1]] != NOWHERE:
            states.append(int(parents[states[-1]]))
        return states[::-1]


def resident_bytes() -> int:
    """Return the resident memory of this process; where the system hides it, its peak."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
