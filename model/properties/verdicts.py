"""Verdicts, and the evidence for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from watchkeeper.model.actor.effects import Partition  # tables of verdicts need no effects


class Verdict(Enum):
    """The verdict on a claim."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


KNOWN_LIMIT = "known limit"
"""The word for a violation that no client can avoid, as the scenario explains."""


def verdict_word(verdict: Verdict, limit: str | bool = "") -> str:
    """Return the word that reports and pages show for a verdict.

    `limit` says that a violation is a known limit, or why.
    """
    return KNOWN_LIMIT if limit and verdict is Verdict.VIOLATED else verdict.value


def violation_phrase(limit: str | bool = "") -> str:
    """Return what to say of a violated property: `is violated`, or `is a known limit`."""
    word = verdict_word(Verdict.VIOLATED, limit)
    return f"is a {word}" if limit else f"is {word}"


PropertyKind = Literal["always", "at rest", "eventually", "end", "sometimes"]


@dataclass(frozen=True, slots=True)
class Property:
    """A claim about a run."""

    name: str
    kind: PropertyKind
    says: str
    exercise: str = ""
    """What has to occur so that the property can be violated; empty where any run suffices."""
    is_optional: bool = False
    """Whether a run that never exercises the property is judged without it."""
    family: str = ""
    """The property that it is for one group; empty where it is that property itself."""

    @property
    def base(self) -> str:
        """The name without that of a group."""
        return self.family or self.name


@dataclass(frozen=True, slots=True)
class Subject:
    """What a violation is about: where its explanation begins to walk back through the trace."""

    nodes: tuple[str, ...] = ()
    """The processes."""
    group: str = ""
    partitions: tuple[Partition, ...] = ()
    topic: str = ""
    paths: tuple[str, ...] = ()
    """The znodes on which the processes act."""
    offset: int | None = None
    """The offset in the first partition."""


NO_SUBJECT = Subject()


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one property in one run."""

    claim: Property
    verdict: Verdict
    evidence: str
    """The evidence, in one sentence."""
    at_us: int | None = None
    """When it was first violated."""
    counts: bool = True
    """Whether the verdict of the run depends on it."""
    exercised: int | None = None
    """How often the run exercised the property; None where that is not counted."""
    shape: str = ""
    """The kind of violation or doubt: the evidence without names, numbers and moments."""
    is_notable: bool = False
    """Whether the evidence is worth a look though the property holds."""
    about: Subject = NO_SUBJECT
    """What a violation is about."""

    def to_json(self) -> dict[str, Any]:
        """Return the value that commands print for it with `--json`."""
        return {
            "name": self.claim.name,
            "kind": self.claim.kind,
            "verdict": self.verdict.value,
            "evidence": self.evidence,
            "counts": self.counts,
            "exercised": self.exercised,
        }


def unexercised(claim: Property, reason: str = "", *, counts: bool = True) -> Finding:
    """The finding on a property that was never exercised: it is unknown."""
    assert claim.exercise or reason, "any run exercises a property that names no exercise"
    return Finding(
        claim,
        Verdict.UNKNOWN,
        f"not exercised: {reason or f'it takes {claim.exercise}'}",
        counts=counts and not claim.is_optional,
        exercised=0,
    )


def overall(findings: Iterable[Finding]) -> Verdict:
    """The verdict of a run: violated if any finding is, unknown if any is, else holds."""
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
