"""The summary of a sweep: how many runs failed, where, and with which signatures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

from watchkeeper.model.properties.verdicts import KNOWN_LIMIT, Verdict
from watchkeeper.model.trace.trace import mix_in_words

Z = 1.959963984540054
"""Of the interval that holds the true share in 95 of 100 sweeps."""
PER = 1000
MOST_WARNINGS = 5
"""The most warnings that are shown; `summary.json` has all of them."""
AS_EXPECTED = "as expected"
NOT_AS_EXPECTED, OPEN = "not as expected", "open"
ANSWERS = (AS_EXPECTED, KNOWN_LIMIT, NOT_AS_EXPECTED, OPEN)
"""How a run stands to the expectation of its scenario."""


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

        It is informative for 0 failures as well: an event not seen in 1,000 runs may still happen
        in nearly 4 of 1,000.
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
    """A short label for a changed value: a setting by its own name."""
    if SETTING in path:
        return path.partition(SETTING)[2]
    parts = path.split(".")
    return path if parts[0] == "timeline" else ".".join(parts[-2:])


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A few quantiles of some numbers."""

    number: int
    least: int
    median: int
    p90: int
    most: int


@dataclass(frozen=True, slots=True)
class CellSummary:
    """The summary of one choice of parameters and variant."""

    number: int
    scenario: str
    variant: str
    mix: tuple[str, ...]
    """The variants of the consumers; empty where all of them are of `variant`."""
    parameters: Mapping[str, str]
    limit: str
    """Why no client can avoid the expected violations; empty where another client can."""
    runs: int
    verdicts: Mapping[str, int]
    """Verdict -> in how many runs; `failed` where a run ended in an error."""
    met: Mapping[str, int]
    """One of `ANSWERS` -> number of runs; empty without an expectation."""
    time_to_rest_us: Quantiles | None
    """Of the runs that came to rest for good."""
    reads: Quantiles
    moves: Quantiles

    @property
    def variants(self) -> str:
        """The variants of the consumers in words."""
        return mix_in_words(self.mix, self.variant)

    @property
    def words(self) -> dict[str, int]:
        """The word of a verdict -> in how many runs; a known limit is no violation."""
        return verdict_words(self.verdicts, self.met.get(KNOWN_LIMIT, 0))

    @property
    def violated(self) -> Share:
        """How many runs violated something that is no known limit."""
        return Share(self.words.get(Verdict.VIOLATED.value, 0), self.runs)


def verdict_words(verdicts: Mapping[str, int], limits: int) -> dict[str, int]:
    """Count verdicts by the words of reports: so many violations are known limits."""
    violated = Verdict.VIOLATED.value
    words = {**verdicts, violated: verdicts.get(violated, 0) - limits, KNOWN_LIMIT: limits}
    return {word: number for word, number in words.items() if number}


@dataclass(frozen=True, slots=True)
class Example:
    """A run, by what is needed to reproduce it."""

    cell: int
    seed: int
    run_id: str


@dataclass(frozen=True, slots=True)
class FailureBucket:
    """A failure signature, and the runs that have it."""

    name: str
    """A short name."""
    signature: str
    share: Share
    cells: tuple[int, ...]
    first: Example
    """The first run that shows it."""


@dataclass(frozen=True, slots=True)
class SweepSummary:
    """The summary of a whole sweep."""

    cells: tuple[CellSummary, ...]
    ways: tuple[FailureBucket, ...]
    """In which runs failed, the most frequent first; a run may have failed in several."""
    doubts: tuple[FailureBucket, ...]
    """The signatures of runs whose verdict is unknown."""
    repeated: int
    """How many runs were run twice."""
    differing: tuple[Example, ...]
    """Those that were another the second time."""
    seconds: float
    """CPU seconds of all runs."""

    @property
    def runs(self) -> int:
        """How many there were."""
        return sum(cell.runs for cell in self.cells)

    def shown(self, word: str) -> int:
        """The number of runs whose verdict has this word in reports."""
        return sum(cell.words.get(word, 0) for cell in self.cells)

    def met(self, answer: str) -> int:
        """How many runs have one of `ANSWERS`."""
        return sum(cell.met.get(answer, 0) for cell in self.cells)
