"""The search: every state that can be reached, the nearest first.

Theory of operation
  Breadth first, level by level, and within a level in blocks of states that fit into the
  processor's caches. A block is expanded by one actor at a time: each state's pair (shared,
  local) names a row of moves, the rows are laid out behind one another, and the successors
  are made, told to the other actors and looked up in one sweep. No work is done for each
  state in Python; that is left to pairs that nobody has seen before.

  With two jobs one thread expands while another looks up what was expanded before: most of
  the work of both is done by NumPy, which lets the other run meanwhile. Blocks are expanded
  in the same order and looked up in the same order, so states get the same numbers.

  Not every state is kept: `alone` says who may go first, and which states stand for others.

  What is violated is noticed when the state that shows it is expanded. States are expanded
  in order of their distance, so the first one found is one of the nearest; a look that a
  large search takes together with the step before it does not count.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explore.ahead import done
from explore.alone import Alone, NotSettled
from explore.edges import Edges
from explore.expanding import Block, Expanded, Expander, Violation
from explore.moves_table import Growing, MovesOf
from explore.system import System
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
        jobs: int = 1,
    ) -> None:
        self.system = system
        self.reduces = reduces
        self.limits = limits or Limits()
        self.tell = tell
        self.goes_on = goes_on
        """Whether it goes on after the first violation, to find the first of each property."""
        self.jobs = jobs
        self.keeps_all = keeps_all
        """How many states there may be before those between two looks are not kept."""
        self._keeps_edges = keeps_edges
        self._begin(looks_first=True)
        self._begun = time.monotonic()

    def _begin(self, *, looks_first: bool) -> None:
        actors = range(len(self.system.actors))
        self.tables = [MovesOf(self.system, actor) for actor in actors]
        self.width = len(actors) + 2
        self.visited = Visited((self.width + 1) // 2)
        self.alone = Alone(self.system, self.tables, looks_first=looks_first)
        self.expander = Expander(self.system, self.tables, self.alone, reduces=self.reduces)
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
            for block in done(self.expander.expand, self._blocks(begin, end), self.jobs):
                self._take(block)
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

    def _blocks(self, begin: int, end: int) -> Iterator[Block]:
        """The states of a level, in blocks."""
        keeps_all = len(self.visited) < self.keeps_all
        for first in range(begin, end, BLOCK):
            rows = self.visited.rows[first : min(first + BLOCK, end)].copy().view(np.uint32)
            yield Block(first, rows, keeps_all)

    def _take(self, block: Expanded) -> None:
        """Number the successors that are new, and keep what was found."""
        for one in block.violations:
            before = self.found.get(one.what)
            if before is None or one.state < before.state:
                self.found[one.what] = one
        for made in block.successors:
            numbers = self._add(made.rows, made.source + block.first)
            self.progress.transitions += len(made.rows)
            if self.edges is not None:
                free = made.is_free
                self.edges.add(made.actor, block.first, made.source[free], numbers[free])
        self.rests += block.rests
        self.good.extend(block.good)

    def _add(self, made: Array, parents: Array) -> Array:
        numbers, fresh = self.visited.insert(made.view(np.uint64))
        self.parents.extend(parents[fresh])
        return numbers

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
