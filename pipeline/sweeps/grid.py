"""What a sweep runs: cells, seeds, and the chunks they are cut into.

A *cell* is one choice of parameters and variant; each is run with every seed. Runs are
numbered cell by cell, seed by seed, and a chunk is a stretch of these numbers. So a chunk
is known by its number alone, whoever does it and in whichever order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from model.expectations import Expected
from model.plan import Plan
from model.trace import named_run
from sim.profile import DEFAULT, Profile
from sim.world import WORLD

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
    """What the scenario expects of the variant; None where it says nothing."""
    profile: Profile = DEFAULT

    def run_id(self, seed: int) -> str:
        """The name of a run of this cell."""
        digest = "" if self.profile == DEFAULT else self.profile.digest
        return named_run(self.plan.name, self.plan.variant, WORLD, seed, digest)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Runs of one cell: a chunk holds one stretch or more."""

    cell: Cell
    seeds: range
    first: int
    """The number of its first run."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is worked on, and committed, as one."""

    number: int
    stretches: tuple[Stretch, ...]

    @property
    def runs(self) -> int:
        """How many runs it holds."""
        return sum(len(one.seeds) for one in self.stretches)


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
        """A chunk, where each holds so many runs."""
        first, last = number * size, min((number + 1) * size, self.runs)
        return Chunk(number, tuple(self._stretches(first, last)))

    def _stretches(self, first: int, last: int) -> Iterator[Stretch]:
        each = len(self.seeds)
        for at in range(first // each, -(-last // each)):
            begins, ends = max(first, at * each), min(last, (at + 1) * each)
            seeds = self.seeds[begins - at * each : ends - at * each]
            yield Stretch(self.cells[at], seeds, begins)

    def chunks(self, size: int) -> int:
        """How many chunks there are, where each holds so many runs."""
        return -(-self.runs // size)


def draw(run_id: str, purpose: str) -> int:
    """A number that chance has given to a run, the same on every machine."""
    return int.from_bytes(sha256(f"{purpose}/{run_id}".encode()).digest()[:8], "big")


def is_repeated(run_id: str, number: int) -> bool:
    """Whether a run is one of those that are run twice; the first of a sweep always is."""
    return number == 0 or draw(run_id, "repeated") % REPEATED_OF == 0


def sampled(run_ids: Sequence[str], number: int) -> list[str]:
    """So many of these runs, by chance."""
    return sorted(run_ids, key=lambda one: draw(one, "sampled"))[:number]
