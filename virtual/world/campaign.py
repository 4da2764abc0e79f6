"""Runs a test with many seeds, until one fails.

The first run has no faults and the default schedule: it says how many requests a run has, from
which the moments of faults are drawn, and how many steps, which some policies need. A test that
fails there fails without any help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.schedule.policies import PolicyChoice
from watchkeeper.virtual.world.faults import Strike, draw_plan
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.run import Case, run_once

FEWEST_REQUESTS = 4
PLAN_SALT = 0x9E3779B97F4A7C15
"""Plans draw from another stream than schedules and worlds."""


@dataclass(slots=True)
class Campaign:
    """A test, run with one seed after the other."""

    case: Case
    policy: PolicyChoice
    baseline: Outcome | None = None
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)
    """What the faults of all runs have struck."""
    drawn: Counter[str] = field(default_factory=Counter)
    """Kind of fault -> how often it was drawn."""
    struck: Counter[str] = field(default_factory=Counter)
    """Kind of fault -> how often it had an effect."""

    def measure(self) -> Outcome:
        """The run without faults, with the default schedule."""
        if self.baseline is None:
            self.baseline = run_once(self.case, FirstInFirstOut(), "fifo", seed=0)
        return self.baseline

    def run(self, seed: int) -> Outcome:
        """Run it with one seed."""
        measured = self.measure()
        policy = self.policy.make(seed, steps=measured.steps)
        outcome = run_once(
            self.case, policy, self.policy.name, seed=seed, plan=self.plan_of(seed)
        )
        self._count(outcome)
        return outcome

    def plan_of(self, seed: int) -> tuple[Strike, ...]:
        """The faults of a seed."""
        requests = max(self.measure().requests, FEWEST_REQUESTS)
        return draw_plan(self.case.faults, Random(seed ^ PLAN_SALT), requests)

    def _count(self, outcome: Outcome) -> None:
        self.verdicts[outcome.verdict] += 1
        for each in outcome.struck:
            kind = each.strike.fault.kind.value
            self.drawn[kind] += 1
            self.struck[kind] += bool(each.effects)
            self.effects.update(each.effects)

    def run_all(
        self, seeds: Iterable[int], progress: Callable[[int], object] = lambda seed: None
    ) -> Iterator[Outcome]:
        """The outcomes of seeds, one after the other."""
        for seed in seeds:
            progress(seed)
            yield self.run(seed)
