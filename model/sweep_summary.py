"""What came of a sweep: how many runs failed, where, and in which ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

Z = 1.959963984540054
"""Of the interval that holds the true share in 95 of 100 sweeps."""
PER = 1000


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some runs did something."""

    number: int
    runs: int

    @property
    def density(self) -> float:
        """Per 1,000 runs."""
        return PER * self.number / self.runs if self.runs else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Per 1,000 runs, the 95 % interval of Wilson.

        It says something where the number is 0, too: what was not seen in 1,000 runs may
        still happen in nearly 4 of 1,000.
        """
        if not self.runs:
            return 0.0, float(PER)
        share, weight = self.number / self.runs, Z * Z / self.runs
        middle = share + weight / 2
        reach = Z * sqrt((share * (1 - share) + weight / 4) / self.runs)
        low = 0.0 if self.number == 0 else (middle - reach) / (1 + weight)
        high = 1.0 if self.number == self.runs else (middle + reach) / (1 + weight)
        return PER * low, PER * high


SETTING = ".config."


def short_name(path: str) -> str:
    """What a changed value is called where there is little room: a setting by its own name."""
    if SETTING in path:
        return path.partition(SETTING)[2]
    parts = path.split(".")
    return path if parts[0] == "timeline" else ".".join(parts[-2:])


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Some numbers, told by a few."""

    number: int
    least: int
    median: int
    p90: int
    most: int


@dataclass(frozen=True, slots=True)
class CellSum:
    """What came of one choice of parameters and variant."""

    number: int
    scenario: str
    variant: str
    parameters: Mapping[str, str]
    runs: int
    verdicts: Mapping[str, int]
    """Verdict -> in how many runs; `failed` where a run ended in an error."""
    met: Mapping[str, int]
    """As expected, not as expected, open -> in how many runs; empty where nothing is expected."""
    time_to_rest_us: Quantiles | None
    """Of the runs that came to rest for good."""
    reads: Quantiles
    moves: Quantiles

    @property
    def violated(self) -> Share:
        """How many runs violated something."""
        return Share(self.verdicts.get("violated", 0), self.runs)


@dataclass(frozen=True, slots=True)
class Example:
    """A run, by what it takes to run it again."""

    cell: int
    seed: int
    run_id: str


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which runs failed, or in which they left everything open."""

    name: str
    """A short name."""
    signature: str
    violated: tuple[str, ...]
    """The properties that are violated; none where everything was left open."""
    share: Share
    cells: tuple[int, ...]
    first: Example
    """The first run that shows it."""


@dataclass(frozen=True, slots=True)
class SweepSum:
    """What came of a whole sweep."""

    cells: tuple[CellSum, ...]
    ways: tuple[Way, ...]
    """In which runs failed, the most frequent first."""
    doubts: tuple[Way, ...]
    """In which runs left everything open."""
    repeated: int
    """How many runs were run twice."""
    differing: tuple[Example, ...]
    """Those that were another the second time."""
    seconds: float
    """What all of it took of a core."""

    @property
    def runs(self) -> int:
        """How many there were."""
        return sum(one.runs for one in self.cells)

    def counted(self, verdict: str) -> int:
        """How many runs came to a verdict."""
        return sum(one.verdicts.get(verdict, 0) for one in self.cells)

    def met(self, answer: str) -> int:
        """How many runs were `as expected`, `not as expected` or `open`."""
        return sum(one.met.get(answer, 0) for one in self.cells)
