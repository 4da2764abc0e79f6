"""The outcome of one drawn run: what is wrong with it, and whether it shows its subject."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from watchkeeper.scenarios import ScenarioError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one seed of a class came to."""

    wrong: tuple[str, ...] = ()
    """Sentences; none if everything is as the class states."""
    exercised: int = 0
    """How often the run did what the class is about."""
    refusal: str = ""
    """The sentence that refused what was drawn, where the class permits that."""
    kinds: tuple[str, ...] = ()
    """The kinds of failure, or of run, that it shows; a class may bound their number."""


MOST_DRAWS = 20
Draw = Callable[[Random], Outcome]
"""Draws a scenario, runs it and checks it."""


@dataclass(frozen=True, slots=True)
class RegressionClass:
    """A family of scenarios that showed a fault once, and what has to be true of each run."""

    name: str
    about: str
    draw: Draw
    most_kinds: int | None = None
    """How many kinds of failure all seeds together may show; None for any number."""

    def outcome(self, seed: int) -> Outcome:
        """Draw and check one seed; an error of the program is wrong, too.

        A scenario that is refused is drawn again: two drawn faults may exclude each other.
        """
        refused = ""
        for draw in range(MOST_DRAWS):
            try:
                return self.draw(Random(f"{self.name}/{seed}/{draw}"))
            except ScenarioError as error:
                refused = str(error)
            except Exception as error:
                return Outcome((f"{type(error).__name__}: {error}",))
        return Outcome((f"{MOST_DRAWS} scenarios were refused, the last one: {refused}",))
