"""Runs a plan against a real ZooKeeper, or says in a sentence why that cannot be."""

from __future__ import annotations

from collections.abc import Callable

from model.plan import Plan
from sim.world import Simulated
from watchkeeper.endings import USAGE, Stop
from watchkeeper.running import versions


def run_live(plan: Plan, seed: int, tell: Callable[[int, int], None]) -> Simulated:
    """Run a plan live; Stop where this machine, or no machine, can do what it asks for."""
    try:
        from real.capabilities import lacking
        from real.world import live
    except ImportError as error:
        raise Stop(
            USAGE,
            f"a live run needs the package {error.name!r}, which is not installed; install "
            "watchkeeper with its extra: pip install 'watchkeeper[spark]'",
        ) from None
    from real.problems import EnvironmentProblem

    problems = list(lacking(plan))
    if problems:
        raise Stop(USAGE, "\n".join(f"{plan.name}: {one}" for one in problems))
    try:
        done = live(plan, seed, versions=versions(), tell=tell)
    except EnvironmentProblem as problem:
        raise Stop(USAGE, str(problem)) from None
    return Simulated(done.trace, done.effects, done.operations)
