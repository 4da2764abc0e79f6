"""A contest: ours and others do the same, in turns, and each pair of runs gives a ratio."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from bench.support.report import Report, number, spread

Measure = Callable[[], float]
OURS = "ours"


@dataclass(slots=True)
class Contest:
    """What was measured of ours and of others, run by run."""

    name: str
    unit: str
    more_is_better: bool
    values: dict[str, list[float]] = field(default_factory=dict)
    """Who -> a value a round; ours first."""
    missing: dict[str, str] = field(default_factory=dict)
    """Who was left out, and why."""

    def times_better(self, who: str) -> float:
        """How many times as good ours is: the median over the rounds, each a pair of runs."""
        pairs = zip(self.values[OURS], self.values[who], strict=True)
        return statistics.median(
            ours / theirs if self.more_is_better else theirs / ours for ours, theirs in pairs
        )

    def rows(self) -> Iterator[list[str]]:
        """A row a participant."""
        for who, values in self.values.items():
            measured = spread(values, higher_is_better=self.more_is_better)
            ratio = "" if who == OURS else f"{self.times_better(who):.2f}"
            yield [
                self.name,
                who,
                *(number(measured.best), number(measured.median), self.unit, ratio),
            ]


def in_turns(contest: Contest, runs: Mapping[str, Measure], rounds: int) -> Contest:
    """Measure each participant once a round, another one first each time."""
    names = list(runs)
    contest.values = {name: [] for name in names}
    for turn in range(rounds):
        at = turn % len(names)
        for name in [*names[at:], *names[:at]]:
            contest.values[name].append(runs[name]())
    return contest


def report_of(contests: list[Contest]) -> Report:
    """All contests as one table; who was left out stands below it, with the reason."""
    report = Report(
        "Ours beside others, in one run",
        ("what", "who", "best", "median", "", "ours is times as good"),
    )
    for contest in contests:
        report.rows.extend(contest.rows())
        report.notes += [
            f"{contest.name}, {who}: left out: {why}" for who, why in contest.missing.items()
        ]
        report.data[contest.name] = {
            "unit": contest.unit,
            "more_is_better": contest.more_is_better,
            "values": contest.values,
            "times_better": {
                who: contest.times_better(who) for who in contest.values if who != OURS
            },
            "missing": contest.missing,
        }
    return report
