"""Runs scenarios and judges them: the function behind the command line and users' tests."""

from __future__ import annotations

import platform
from os import PathLike
from typing import Any

from model.program import Program
from model.properties import judge
from model.trace import Event, Trace
from scenarios import Scenario
from sim.profile import DEFAULT, Profile
from sim.world import Interrupted, Simulated, Tell
from sim.world import simulate as simulate_plan
from watchkeeper.arguments import Source, check_choices, checked_profile, scenario_of
from watchkeeper.profiles import NamedProfile
from watchkeeper.result import Result


def versions() -> dict[str, str]:
    """What a trace's header says of the software that made it."""
    from watchkeeper import __version__

    return {"watchkeeper": __version__, "python": platform.python_version()}


def simulate(
    source: Source,
    *,
    seed: int = 0,
    variant: str | None = None,
    consumer: Program | None = None,
    tell: Tell | None = None,
    profile: str | PathLike[str] | NamedProfile | None = None,
) -> Result:
    """Run a scenario in simulation and judge it.

    `source` is the name of a shipped scenario, the path of a file, a mapping of its
    fields, or a scenario that has been read. `consumer` is a program of your own, run in
    place of every consumer; its `me` is filled in. `tell` hears how far a long run has come.
    `profile` is the path of a profile file, whose latencies are simulated.

    Raises TypeError or ValueError where an argument is nothing of the kind, ScenarioError
    where the scenario or the profile is wrong, whatever the program raises, with notes that
    say where in which run it did, and `sim.world.Interrupted` when the user has had enough.
    """
    check_choices(seed, variant, consumer)
    scenario = scenario_of(source)
    plan = scenario.plan(variant, program=consumer)
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
    return judged(scenario, plan, seed, done, named)


def latencies_of(profile: NamedProfile | None) -> Profile:
    """What is simulated: the latencies of a profile, or those that come along."""
    return DEFAULT if profile is None else profile.latencies


def judged(
    scenario: Scenario,
    plan: Any,
    seed: int,
    done: Simulated,
    profile: NamedProfile | None = None,
) -> Result:
    """Judge what a run has left."""
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
    """The first events that differ between two traces; None where there are none.

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
