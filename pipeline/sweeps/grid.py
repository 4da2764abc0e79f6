"""The grid of a sweep: cells, seeds, and the chunks they are cut into.

A *cell* is one choice of parameters and variant; each is run with every seed. Runs are numbered
cell by cell, seed by seed, and a chunk is an interval of these numbers. So a chunk is determined
by its number alone, in any order and on any runner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from watchkeeper.model.judgement.expectations import Expected
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.trace.trace import named_run
from watchkeeper.sim.engine.latency_profile import DEFAULT, Profile
from watchkeeper.sim.world import WORLD

Parameters = tuple[tuple[str, str], ...]
"""Path in the scenario -> the value it was given, as it was written."""

REPEATED_OF = 20
"""One run in so many is run twice."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One choice of parameters and variant."""

    number: int
    parameters: Parameters
    plan: Plan
    expected: Expected | None
    """The expectation of the scenario for the variant; None if it states none."""
    profile: Profile = DEFAULT

    def run_id(self, seed: int) -> str:
        """The name of a run of this cell."""
        digest = "" if self.profile == DEFAULT else self.profile.digest
        return named_run(self.plan.name, self.plan.variant, WORLD, seed, digest)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Runs of one cell: a chunk holds one such interval or more."""

    cell: Cell
    seeds: range
    first: int
    """The number of its first run."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The unit of work, and of commits."""

    number: int
    stretches: tuple[Stretch, ...]

    @property
    def runs(self) -> int:
        """How many runs it holds."""
        return sum(len(seed_range.seeds) for seed_range in self.stretches)


@dataclass(frozen=True, slots=True)
class Grid:
    """All that a sweep runs."""

    cells: tuple[Cell, ...]
    seeds: range

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self.cells) * len(self.seeds)

    def chunk(self, number: int, size: int) -> Chunk:
        """A chunk, given the number of runs in each."""
        first, last = number * size, min((number + 1) * size, self.runs)
        return Chunk(number, tuple(self._stretches(first, last)))

    def _stretches(self, first: int, last: int) -> Iterator[Stretch]:
        each = len(self.seeds)
        for at in range(first // each, -(-last // each)):
            begins, ends = max(first, at * each), min(last, (at + 1) * each)
            seeds = self.seeds[begins - at * each : ends - at * each]
            yield Stretch(self.cells[at], seeds, begins)

    def chunks(self, size: int) -> int:
        """The number of chunks, given the number of runs in each."""
        return -(-self.runs // size)


def draw(run_id: str, purpose: str) -> int:
    """A number that chance has given to a run, the same on every machine."""
    return int.from_bytes(sha256(f"{purpose}/{run_id}".encode()).digest()[:8], "big")


def is_repeated(run_id: str, number: int) -> bool:
    """Whether a run is run twice; the first of a sweep always is."""
    return number == 0 or draw(run_id, "repeated") % REPEATED_OF == 0


def sampled(run_ids: Sequence[str], number: int) -> list[str]:
    """A random sample of these runs."""
    return sorted(run_ids, key=lambda run_id: draw(run_id, "sampled"))[:number]
