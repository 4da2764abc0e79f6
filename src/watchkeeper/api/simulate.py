"""Runs scenarios and judges them: the function behind the command line and tests of users."""

from __future__ import annotations

import platform
from collections.abc import Collection
from dataclasses import replace
from importlib.metadata import version
from os import PathLike
from typing import Any

from watchkeeper.api.arguments import Source, check_choices, checked_profile, scenario_of
from watchkeeper.api.named_profile import NamedProfile
from watchkeeper.api.result import Result
from watchkeeper.model.actor.program import Program
from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.scenarios import Scenario
from watchkeeper.sim.engine.latency_profile import DEFAULT, Profile
from watchkeeper.sim.world import Interrupted, Simulated, Tell
from watchkeeper.sim.world import simulate as simulate_plan


def versions() -> dict[str, str]:
    """Return the versions of the software, for the header of a trace."""
    return {"watchkeeper": version("watchkeeper"), "python": platform.python_version()}


def simulate(
    source: Source,
    *,
    seed: int = 0,
    variant: str | None = None,
    consumer: Program | None = None,
    tell: Tell | None = None,
    profile: str | PathLike[str] | NamedProfile | None = None,
    check_determinism: bool = False,
    allow: Collection[str] = (),
) -> Result:
    """Run a scenario in simulation and judge it.

    source     the name of a shipped scenario, the path of a file, a mapping of its fields, or
               a loaded scenario
    seed       the random seed; one seed gives one trace, on every machine
    variant    the version of the protocol; that of the scenario by default
    consumer   a program of your own, run in place of every consumer; its `me` is filled in
    tell       called with the virtual time and the end of the run, both in microseconds
    profile    the path of a profile file, whose latencies are simulated
    check_determinism   run it a second time, and raise NotDeterministic where the two differ
    allow      functions that `consumer` may call though no world can reproduce what they
               return, such as "time.time" or "open"; it is stopped at any other one

    Raises TypeError or ValueError for an argument of the wrong kind, ScenarioError for a wrong
    scenario or profile, every exception of the program, with notes that name the run and the
    place, and `watchkeeper.sim.world.Interrupted` after Ctrl-C.
    """
    check_choices(seed, variant, consumer)
    fenced = None if consumer is None else _fenced(consumer, allow)
    scenario = scenario_of(source)
    plan = scenario.plan(variant, program=fenced)
    named = checked_profile(profile)
    try:
        done = simulate_plan(
            plan, seed, versions=versions(), tell=tell, profile=latencies_of(named)
        )
    except Interrupted:
        raise
    except Exception as error:
        error.add_note(f"of {plan.name}, {plan.variant}, seed {seed}")
        raise
    result = judged(scenario, plan, seed, done, named)
    return _repeated(result, fenced) if check_determinism else result


def _fenced(consumer: Program, allow: Collection[str]) -> Program:
    from watchkeeper.api.fence import check_allowed, fence  # only for programs of users

    return fence(consumer, check_allowed(allow))


class NotDeterministic(AssertionError):
    """Two runs of one seed differ: the program depends on more than the seed."""


def _repeated(result: Result, consumer: Program | None) -> Result:
    """Run it again, and return the result as one that was repeated."""
    plan = result.scenario.plan(result.plan.variant, program=consumer)
    took = latencies_of(result.profile)
    again = simulate_plan(plan, result.seed, versions=versions(), profile=took).trace
    difference = first_difference(result.trace, again)
    if difference is not None:
        first, second = (event or "its end" for event in difference)
        raise NotDeterministic(
            "the two runs of one seed differ, so the program depends on more than the seed "
            f"(the order of a set, a clock, a global): {first}; in the second run {second}"
        )
    return replace(result, is_repeated=True)


def latencies_of(profile: NamedProfile | None) -> Profile:
    """Return the latencies of a profile, or the default ones."""
    return DEFAULT if profile is None else profile.latencies


def judged(
    scenario: Scenario,
    plan: Any,
    seed: int,
    done: Simulated,
    profile: NamedProfile | None = None,
) -> Result:
    """Judge a finished run."""
    judgement = judge(plan, done.trace, done.effects)
    return Result(
        scenario,
        plan,
        seed,
        done.trace,
        done.effects,
        judgement,
        done.operations,
        profile=profile,
    )


def first_difference(one: Trace, other: Trace) -> tuple[Event | None, Event | None] | None:
    """Return the first events that differ between two traces; None where there are none.

    Where one trace ends before the other, its event is None.
    """
    for seq, (left, right) in enumerate(zip(one.rows, other.rows, strict=False)):
        if left != right:
            return one[seq], other[seq]
    if len(one) == len(other):
        return None
    shorter = min(len(one), len(other))
    return (
        one[shorter] if len(one) > shorter else None,
        other[shorter] if len(other) > shorter else None,
    )
