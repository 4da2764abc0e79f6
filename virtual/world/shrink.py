"""Makes a failing run smaller: fewer faults, fewer decisions of the schedule, an earlier end.

A smaller run counts if it violates the same property. Each attempt is a run of its own, so what
is left fails by itself, and is replayed from its plan and its schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from watchkeeper.virtual.schedule.recorded import Recorded
from watchkeeper.virtual.threads.task import Schedule
from watchkeeper.virtual.world.faults import Strike
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.run import Case, run_once

T = TypeVar("T")

MOST_RUNS = 150
"""How many runs shrinking takes at most."""
GOES_ON_S = 1.0
"""How long a run goes on after the violation, so that its consequences are seen."""


@dataclass(slots=True)
class Shrinking:
    """One failing run on its way to a smaller one."""

    case: Case
    best: Outcome
    most_runs: int = MOST_RUNS
    runs: int = 0
    wanted: str = field(init=False)

    def __post_init__(self) -> None:
        self.wanted = self.best.violated[0].claim.name

    def attempt(self, plan: tuple[Strike, ...], schedule: Schedule) -> bool:
        """Run it, and keep it if it violates the property."""
        if self.runs >= self.most_runs:
            return False
        self.runs += 1
        outcome = run_once(
            self.case,
            Recorded(schedule),
            self.best.policy,
            seed=self.best.seed,
            plan=plan,
        )
        if self.wanted not in [finding.claim.name for finding in outcome.violated]:
            return False
        self.best = outcome
        return True

    def end_early(self) -> None:
        """Let the run end soon after the violation, if it is one of a moment.

        What is judged at the end of a run, as elements that are lost, may seem to be violated
        by what is still under way.
        """
        (first, *_) = (each for each in self.best.violated if each.claim.name == self.wanted)
        if first.claim.kind == "always" and first.at_us is not None:
            until_s = round(first.at_us / 1e6 + GOES_ON_S, 6)
            if until_s < self.case.settings.until_s:
                whole, self.case = self.case, self.case.until(until_s)
                if not self.attempt(self.best.plan, self.best.schedule):
                    self.case = whole

    def leave_out_faults(self) -> None:
        """Drop strikes one by one, those without an effect first."""
        useless = {id(each.strike) for each in self.best.struck if not each.effects}
        if useless:
            kept = tuple(strike for strike in self.best.plan if id(strike) not in useless)
            self.attempt(kept, self.best.schedule)
        for strike in list(self.best.plan):
            if strike in self.best.plan:
                plan = list(self.best.plan)
                plan.remove(strike)
                self.attempt(tuple(plan), self.best.schedule)

    def leave_out_decisions(self) -> None:
        """Drop decisions of the schedule: all, then halves, quarters and so on."""
        if self.attempt(self.best.plan, Schedule()):
            return
        size = len(self.best.schedule)
        while size >= 1 and self.runs < self.most_runs:
            decisions = list(_decisions(self.best.schedule))
            for first in reversed(range(0, len(decisions), size)):
                left = decisions[:first] + decisions[first + size :]
                if len(left) < len(decisions) and self.attempt(self.best.plan, _schedule(left)):
                    decisions = list(_decisions(self.best.schedule))
            size //= 2

    def shorten_faults(self) -> None:
        """Let each strike last half as long, as long as that suffices."""
        for index in range(len(self.best.plan)):
            for _ in range(4):
                plan = list(self.best.plan)
                shorter = max(plan[index].lasts_s / 2, plan[index].fault.shortest_s)
                if shorter == plan[index].lasts_s:
                    break
                plan[index] = replace(plan[index], lasts_s=round(shorter, 6))
                if not self.attempt(tuple(plan), self.best.schedule):
                    break


def shrink(case: Case, outcome: Outcome, *, most_runs: int = MOST_RUNS) -> Outcome:
    """The smallest run found that violates what a run violates; that run if none is smaller."""
    shrinking = Shrinking(case, outcome, most_runs)
    steps: Iterable[Callable[[], None]] = (
        shrinking.end_early,
        shrinking.leave_out_faults,
        shrinking.leave_out_decisions,
        shrinking.shorten_faults,
        shrinking.end_early,
    )
    for step in steps:
        step()
    return shrinking.best


def _decisions(schedule: Schedule) -> Iterator[tuple[int, str, int]]:
    found = [
        *((step, "choice", value) for step, value in schedule.choices.items()),
        *((step, "preemption", 1) for step in schedule.preemptions),
        *((step, "stall", value) for step, value in schedule.stalls_ns.items()),
    ]
    yield from sorted(found)


def _schedule(decisions: list[tuple[int, str, int]]) -> Schedule:
    return Schedule(
        choices={step: value for step, kind, value in decisions if kind == "choice"},
        preemptions=[step for step, kind, _ in decisions if kind == "preemption"],
        stalls_ns={step: value for step, kind, value in decisions if kind == "stall"},
    )
