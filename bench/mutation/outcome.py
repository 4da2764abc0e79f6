"""What a killer comes to, and when two outcomes differ.

A mutant is killed by a run, a search or a test whose *judgement* differs from the one without
the mutant: a user would see another result. That the trace or the number of states differs is
no kill; it is counted apart.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What may kill a mutant."""

    SIMULATION = "simulation"
    SEARCH = "search"
    TESTS = "tests"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run or a search comes to."""

    judgement: str
    """The result that a user sees: as expected or not, the violated properties, an error."""
    digest: str
    """The hash of the trace; the numbers of states, transitions and states at rest."""
    cpu_s: float
    states: int = 0
    """The states of a search; it stops at a multiple of those without the mutant."""


@dataclass(frozen=True, slots=True)
class Base:
    """A killer without a mutant: what it comes to, and which code it executes."""

    kind: Kind
    killer: str
    outcome: Outcome
    lines: dict[str, frozenset[int]]
    """Module -> the lines that it executes after the import."""

    @property
    def is_large(self) -> bool:
        """Whether it takes so long that it judges only what nothing else kills."""
        return self.outcome.states > LARGE


LARGE = 2_500
"""A search with more states judges only what nothing else kills."""


@dataclass(frozen=True, slots=True)
class Kill:
    """A difference from the judgement without the mutant."""

    killer: str
    judgement: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a mutant."""

    mutant: str
    line: int
    text: str
    replacement: str
    kills: dict[Kind, Kill]
    executed_by: int
    """The number of runs and searches that execute its line."""
    differs_in: tuple[str, ...] = ()
    """Runs and searches that judge it as before, and whose trace or states differ."""
    cpu_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the value that is written to a file."""
        kills = {kind.value: asdict(kill) for kind, kill in self.kills.items()}
        return {**asdict(self), "kills": kills, "differs_in": list(self.differs_in)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Verdict:
        """Read what `to_json` has written."""
        kills = {Kind(kind): Kill(**kill) for kind, kill in value["kills"].items()}
        differs_in = tuple(value["differs_in"])
        return cls(**{**value, "kills": kills, "differs_in": differs_in})

    def with_kills_of(self, other: Verdict) -> Verdict:
        """Add the kills of an earlier verdict on the same mutant."""
        assert self.mutant == other.mutant, "both are about one mutant"
        return replace(
            self,
            kills={**other.kills, **self.kills},
            executed_by=max(self.executed_by, other.executed_by),
            differs_in=tuple(dict.fromkeys((*other.differs_in, *self.differs_in))),
            cpu_s=round(self.cpu_s + other.cpu_s, 2),
        )

    @property
    def survives(self) -> bool:
        """Whether neither a simulation nor a search kills it."""
        return not self.kills.keys() & {Kind.SIMULATION, Kind.SEARCH}
