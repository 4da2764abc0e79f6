"""A verdict and what speaks for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal


class Verdict(Enum):
    """What can be said of a claim."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


PropertyKind = Literal["always", "at rest", "eventually", "end", "sometimes"]


@dataclass(frozen=True, slots=True)
class Property:
    """A claim about a run."""

    name: str
    kind: PropertyKind
    says: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A property judged in one run."""

    claim: Property
    verdict: Verdict
    evidence: str
    """One sentence."""
    at_us: int | None = None
    """When it was first violated."""
    counts: bool = True
    """Whether the verdict of the run depends on it."""


def overall(findings: Iterable[Finding]) -> Verdict:
    """The verdict of a run: violated if anything is, unknown if anything is, else holds."""
    verdicts = [finding.verdict for finding in findings if finding.counts]
    if Verdict.VIOLATED in verdicts:
        return Verdict.VIOLATED
    return Verdict.UNKNOWN if Verdict.UNKNOWN in verdicts else Verdict.HOLDS


def seconds(at_us: int) -> str:
    """A moment of a run, to be read."""
    return f"{at_us / 1_000_000:.3f} s"


def duration(us: int) -> str:
    """A length of time, to be read."""
    if us < 1_000:
        return f"{us} us"
    return f"{us / 1_000:.1f} ms" if us < 1_000_000 else f"{us / 1_000_000:.2f} s"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: 1 gap, 2 gaps, 1,000 gaps."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
