"""Replays of counterexample files, and random schedules of scenarios, on any ZooKeeper."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from explore.beginning import CannotExplore
from explore.promises import BrokenPromise
from model.bounds import Bounds, shrunk
from model.plan import Plan
from model.story import Schedule
from scenarios import Scenario, ScenarioError, load
from watchkeeper.endings import USAGE, Stop
from watchkeeper.exploring import bounds_of
from watchkeeper.reaching import NONE, Credentials

if TYPE_CHECKING:
    from real.access import Access
    from watchkeeper.replaying import Conformed, Replayed

TICK_MS = 2_000
"""Of the embedded ZooKeeper: no session ends by itself while a schedule is followed."""


def replay(file: str | os.PathLike[str], world: str = "sim") -> Replayed:
    """Follow the schedule in a file; `reached` says whether it led to the same violation.

    The file is a `counterexample.yaml`, as `watchkeeper explore` writes it. Raises
    ScenarioError for a file that is not understood, and Stop, with a sentence, for one that
    holds no schedule.
    """
    return _replayed(load(file), world, None, NONE)


def replay_file(
    name: str, world: str, zookeeper: str | None, credentials: Credentials
) -> Replayed:
    """The same for the command line; Stop says what is amiss."""
    if zookeeper is not None and world != "live":
        raise Stop(USAGE, "--zookeeper is for --world live")
    try:
        return _replayed(load(name), world, zookeeper, credentials)
    except ScenarioError as error:
        raise Stop(USAGE, str(error)) from None


def _replayed(
    scenario: Scenario, world: str, zookeeper: str | None, credentials: Credentials
) -> Replayed:
    from watchkeeper import replaying
    from watchkeeper.cueing import NoSuchStep

    plan, bounds, schedule = _scheduled(scenario)
    try:
        if world == "sim":
            return replaying.replay_sim(plan, bounds, schedule)
        with _reached(zookeeper, credentials) as access:
            return replaying.replay_live(plan, bounds, schedule, access)
    except (CannotExplore, BrokenPromise, NoSuchStep) as error:
        raise Stop(USAGE, f"{scenario.document.name}: {error}") from None


def _scheduled(scenario: Scenario) -> tuple[Plan, Bounds, Schedule]:
    schedule = scenario.schedule()
    if schedule is None:
        raise Stop(
            USAGE,
            f"{scenario.document.name} has no `schedule:`; expected a counterexample.yaml, as "
            "`watchkeeper explore` writes it where something is violated",
        )
    plan = scenario.plan()
    bounds, _ = bounds_of(scenario, plan)
    return shrunk(plan, bounds), bounds, schedule


def conform_scenario(
    name: str,
    variant: str | None,
    schedules: int,
    seed: int,
    zookeeper: str | None,
    credentials: Credentials,
) -> Conformed:
    """Follow random schedules of a scenario on a real ZooKeeper; Stop says what is amiss."""
    from watchkeeper import replaying
    from watchkeeper.commands import planned

    scenario, plan = planned(name, variant)
    bounds, _ = bounds_of(scenario, plan)
    plan = replace(shrunk(plan, bounds), timeline=())
    try:
        with _reached(zookeeper, credentials) as access:
            return replaying.conform(plan, bounds, schedules, seed, access)
    except (CannotExplore, BrokenPromise) as error:
        raise Stop(USAGE, str(error)) from None


@contextmanager
def _reached(zookeeper: str | None, credentials: Credentials) -> Iterator[Access]:
    """How to come to a ZooKeeper: one that runs, or one of our own while this lasts."""
    from real.ensemble import Ensemble
    from real.problems import EnvironmentProblem
    from real.settings import Settings

    try:
        if zookeeper is not None:
            yield credentials.access(zookeeper)
            return
        with Ensemble(1, settings=Settings(tick_ms=TICK_MS)) as ensemble:
            yield credentials.access(ensemble.hosts)
    except EnvironmentProblem as problem:
        raise Stop(USAGE, str(problem)) from None


def to_json(done: Replayed) -> dict[str, Any]:
    """What `replay --json` prints."""
    return {
        "conforms": done.conforms,
        "reached": done.reached,
        "said": done.said,
        "limits": done.limits,
    }


def conformed_json(done: Conformed) -> dict[str, Any]:
    """What `conform --json` prints."""
    return {
        "conforms": done.conforms,
        "said": done.said,
        "schedules": done.schedules,
        "operations": done.operations,
        "first_difference": [
            {"node": deed.node, "does": deed.does, "operation": deed.operation}
            for deed in done.deeds
        ],
    }
