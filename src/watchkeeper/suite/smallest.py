"""A smaller scenario in which a run fails in the same way, found within a budget of time."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import yaml

from watchkeeper.api.simulate import simulate
from watchkeeper.model.judgement.signature import signatures_of
from watchkeeper.scenarios import ScenarioError, from_text
from watchkeeper.scenarios.shrink_steps import Fields, bare, smaller

if TYPE_CHECKING:
    from watchkeeper.api.result import Result


def smallest(result: Result, seconds: float) -> str | None:
    """Return the text of a smaller scenario; None if none was found in that time.

    Of the failures the first one is kept. A program of the user's own is not in a scenario, and a
    run that violates nothing has no failure to keep.
    """
    signatures = signatures_of(result.findings)
    if not signatures or result.plan.has_own_program or seconds <= 0:
        return None
    search = _Search(result, signatures[0], monotonic() + seconds)
    return search.go()


class _Search:
    """Takes one thing away after the other, as long as what is left fails with the same seed."""

    def __init__(self, result: Result, signature: str, until_s: float) -> None:
        self.result = result
        self.signature = signature
        self.until_s = until_s
        self.found: str | None = None

    def go(self) -> str | None:
        """Go on until nothing can be taken away, or the time is over."""
        fields: Fields | None = bare(dict(self.result.scenario.document.data))
        while fields is not None:
            fields = self._smaller(fields)
        return self.found

    def _smaller(self, fields: Fields) -> Fields | None:
        for candidate in smaller(fields):
            if monotonic() >= self.until_s:
                return None
            text = yaml.safe_dump(candidate, sort_keys=False, allow_unicode=True, width=100)
            if self._fails(text):
                self.found = text
                return candidate
        return None

    def _fails(self, text: str) -> bool:
        result = self.result
        try:
            scenario = from_text("smallest.yaml", text)
            again = simulate(
                scenario, seed=result.seed, variant=result.plan.variant, profile=result.profile
            )
        except ScenarioError:  # what was left makes no sense
            return False
        return self.signature in signatures_of(again.findings)
