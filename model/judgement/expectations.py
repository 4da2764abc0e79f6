"""The expected verdict of a run, and whether the run met it."""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.model.judgement.judge import Judgement
from watchkeeper.model.properties.verdicts import Verdict

STEADFAST = frozenset({"sometimes", "end"})
"""Kinds of claim that leave the expectation open while they are unknown."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The properties that are expected to be violated; empty if all are expected to hold."""

    violated: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    """Those that may be violated as well, by chance."""
    limit: str = ""
    """Why no client can avoid these violations; empty where another client can."""

    def met_by(self, judgement: Judgement) -> bool | None:
        """Whether a run met the expectation; None if that is unknown."""
        open_questions = [
            finding
            for finding in judgement.findings
            if finding.counts
            and finding.verdict is Verdict.UNKNOWN
            and finding.claim.kind in STEADFAST
        ]
        if open_questions or judgement.verdict is Verdict.UNKNOWN:
            return None
        found = set(judgement.violated())
        return set(self.violated) <= found <= self.allowed

    @property
    def allowed(self) -> set[str]:
        """The properties that must or may be violated."""
        return {*self.violated, *self.may}

    def limit_of(self, judgement: Judgement) -> str:
        """Why no client can avoid what a run violates; empty if it is no known limit."""
        return self.limit if judgement.violated() and self.met_by(judgement) else ""
