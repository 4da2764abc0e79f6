"""What is expected of a run, and whether it came so."""

from __future__ import annotations

from dataclasses import dataclass

from model.properties import Judgement
from model.verdicts import Verdict

STEADFAST = frozenset({"sometimes", "end"})
"""Kinds of claim that, while unknown, leave it open whether an expectation is met."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Which properties are expected to be violated; none where all is expected to hold."""

    violated: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    """Those that may be violated as well, by chance."""

    def met_by(self, judgement: Judgement) -> bool | None:
        """Whether a run came as expected; None where that cannot be said."""
        open_questions = [
            one
            for one in judgement.findings
            if one.counts and one.verdict is Verdict.UNKNOWN and one.claim.kind in STEADFAST
        ]
        if open_questions or judgement.verdict is Verdict.UNKNOWN:
            return None
        found = set(judgement.violated())
        return set(self.violated) <= found <= {*self.violated, *self.may}
