"""`@simulated`: a test that prepares a world, run with many seeds.

    @simulated(seeds=300, until_s=60, faults=[faults.lost_reply(), faults.pause()])
    def test_one_at_a_time(world):
        for name in "abc":
            world.process(name, campaign, name)
        ...

The decorated test takes no arguments, so pytest and any other runner call it as it is. It
raises `Violation` for the first seed that fails, made smaller, with the command that replays it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.virtual.schedule.policies import parse_policy
from watchkeeper.virtual.threads.errors import VirtualTimeError
from watchkeeper.virtual.world.campaign import Campaign
from watchkeeper.virtual.world.faults import Fault
from watchkeeper.virtual.world.folder import write_failure
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.report import failure_text
from watchkeeper.virtual.world.run import Case, Test
from watchkeeper.virtual.world.shrink import MOST_RUNS, shrink
from watchkeeper.virtual.world.world import WorldSettings

CAMPAIGN = "watchkeeper_campaign"
"""The attribute of a decorated test that has its campaign."""
FOLDER = Path("runs")


class Violation(AssertionError):
    """A property is violated; the message has the property, the moment and the command."""

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome


def simulated(
    *,
    seeds: int | Sequence[int] = 100,
    until_s: float = 60.0,
    faults: Sequence[Fault] = (),
    servers: int = 1,
    policy: str = "random",
    zookeeper: EnsembleSettings | None = None,
    modules: Sequence[str] = (),
    preempt: Sequence[str] = (),
    allow: Sequence[str] = (),
    out: Path | str = FOLDER,
    shrink_runs: int = MOST_RUNS,
    watchdog_s: float = 5.0,
) -> Callable[[Test], Callable[[], None]]:
    """Run a test in virtual time with many seeds; README and how-to show it.

    `seeds` is a number of seeds from 0 on, or the seeds. `policy` is `random`, `pct:DEPTH` or
    `delay:BOUND`. Raises VirtualTimeError for settings that contradict each other.
    """
    if servers == 1 and (wrong := [fault for fault in faults if fault.needs_servers]):
        raise VirtualTimeError(
            f"a {wrong[0].kind.value} strikes an ensemble of several servers, and there is one; "
            "pass servers=3"
        )
    settings = WorldSettings(
        until_s=until_s,
        servers=servers,
        zookeeper=zookeeper,
        modules=tuple(modules),
        preempt=tuple(preempt),
        allow=tuple(allow),
    )
    choice = parse_policy(policy)

    def decorate(test: Test) -> Callable[[], None]:
        name = f"{test.__module__}.{test.__qualname__}".replace("<locals>.", "")
        case = Case(name, test, settings, tuple(faults), watchdog_s)

        @functools.wraps(test)
        def run() -> None:
            fail_on_violation(Campaign(case, choice), _seeds(seeds), Path(out), shrink_runs)

        # pytest would take `world` for a fixture, seen through the wrapped function.
        del run.__wrapped__
        setattr(run, CAMPAIGN, (case, choice, _seeds(seeds)))
        return run

    return decorate


def fail_on_violation(
    campaign: Campaign, seeds: Sequence[int], out: Path, shrink_runs: int
) -> None:
    """Run the seeds; raises Violation for the first one that fails, made smaller."""
    baseline = campaign.measure()
    if baseline.verdict is Verdict.VIOLATED:
        _raise(campaign, baseline, out, shrink_runs)
    for outcome in campaign.run_all(seeds):
        if outcome.verdict is Verdict.VIOLATED:
            _raise(campaign, outcome, out, shrink_runs)
    if campaign.verdicts and not campaign.verdicts[Verdict.HOLDS]:
        raise Violation(_unknown_text(campaign, outcome), outcome)


def _raise(campaign: Campaign, outcome: Outcome, out: Path, shrink_runs: int) -> None:
    smaller = shrink(campaign.case, outcome, most_runs=shrink_runs)
    folder = write_failure(smaller, campaign.case, out)
    raise Violation(failure_text(smaller, campaign.case, folder), smaller)


def _unknown_text(campaign: Campaign, outcome: Outcome) -> str:
    unknown = [each for each in outcome.findings if each.verdict is Verdict.UNKNOWN]
    return (
        f"no run of {campaign.case.name} says anything: {unknown[0].claim.name} is unknown, "
        f"since {unknown[0].evidence}"
    )


def _seeds(seeds: int | Sequence[int]) -> Sequence[int]:
    if isinstance(seeds, int):
        if seeds < 1:
            raise VirtualTimeError(f"seeds is at least 1, not {seeds}")
        wanted = os.environ.get("WATCHKEEPER_SEEDS")
        return range(int(wanted) if wanted else seeds)
    return tuple(seeds)
