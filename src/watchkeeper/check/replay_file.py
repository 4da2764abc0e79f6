"""Replays of counterexample files, and random schedules of scenarios, on any ZooKeeper."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from watchkeeper.check.check import bounds_of
from watchkeeper.check.folder import SCHEDULE
from watchkeeper.checker.cluster.initial import CannotExplore
from watchkeeper.checker.contracts.contracts import BrokenContract
from watchkeeper.console.credentials import NONE, Credentials
from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.console.zookeeper import (
    hosts_in,
    implementation_of,
    in_words,
    measured_implementation,
)
from watchkeeper.model.counterexample.counterexample import Schedule
from watchkeeper.model.plan.bounds import Bounds, shrunk
from watchkeeper.model.plan.plan import Plan
from watchkeeper.scenarios import Scenario, ScenarioError, load

if TYPE_CHECKING:
    from watchkeeper.check.replay import Conformed, Replayed
    from watchkeeper.real.access import Access
    from watchkeeper.real.zookeepers.implementation import Implementation

TICK_MS = 2_000
"""Of the embedded ZooKeeper: long enough that no session expires during a replay."""


def replay(file: str | os.PathLike[str], world: str = "sim") -> Replayed:
    """Replay the schedule in a file; `reached` says whether it led to the same violation.

    file    a `counterexample.yaml`, as `watchkeeper explore` writes it, or its folder
    world   "sim", or "live" with a ZooKeeper that is started for it

    Raises ScenarioError for an invalid file, and Stop for a file without a schedule.
    """
    return _replayed(load(_in_folder(file)), world, None, NONE)


def replay_file(
    name: str, world: str, zookeeper: str | None, credentials: Credentials
) -> Replayed:
    """Replay the schedule in a file; raise Stop for an invalid one."""
    if zookeeper is not None and world != "live":
        raise Stop(USAGE, "--zookeeper is for --world live")
    try:
        return _replayed(load(_in_folder(name)), world, zookeeper, credentials)
    except ScenarioError as error:
        raise Stop(USAGE, str(error)) from None


def _in_folder(place: str | os.PathLike[str]) -> str:
    """The counterexample of a search, where the folder of the search is given."""
    name = os.fspath(place)
    return os.path.join(name, SCHEDULE) if os.path.isdir(name) else name


def _replayed(
    scenario: Scenario, world: str, zookeeper: str | None, credentials: Credentials
) -> Replayed:
    from watchkeeper.check import replay as replays
    from watchkeeper.checker.counterexample.replay_steps import NoSuchStep

    plan, bounds, schedule = _scheduled(scenario)
    try:
        if world == "sim":
            limit = _limit(scenario, plan, schedule)
            return replays.replay_sim(plan, bounds, schedule, limit=limit)
        started = hosts_in(zookeeper) or implementation_of(zookeeper)
        with _reached(started, credentials) as access:
            done = replays.replay_live(plan, bounds, schedule, access)
        return replace(done, zookeeper=in_words(started))
    except (CannotExplore, BrokenContract, NoSuchStep) as error:
        raise Stop(USAGE, f"{scenario.document.name}: {error}") from None


def _limit(scenario: Scenario, plan: Plan, schedule: Schedule) -> str:
    """Why no client can avoid what a schedule violates; empty where a client can."""
    expected = scenario.expected_of(plan.variant)
    if expected is None or schedule.violates not in expected.allowed:
        return ""
    return expected.limit


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
    """Replay random schedules of a scenario on a real ZooKeeper; raise Stop if it cannot run."""
    from watchkeeper.check import replay as replays
    from watchkeeper.run.run import planned

    scenario, plan = planned(name, variant)
    bounds, _ = bounds_of(scenario, plan)
    plan = replace(shrunk(plan, bounds), timeline=())
    try:
        started = hosts_in(zookeeper) or measured_implementation(zookeeper)
        with _reached(started, credentials) as access:
            done = replays.conform(plan, bounds, schedules, seed, access)
        return replace(done, zookeeper=in_words(started))
    except (CannotExplore, BrokenContract) as error:
        raise Stop(USAGE, str(error)) from None


@contextmanager
def _reached(zookeeper: Implementation | str, credentials: Credentials) -> Iterator[Access]:
    """Yield the address of a ZooKeeper: an existing one, or a temporary one that is started."""
    from watchkeeper.real.errors import EnvironmentProblem
    from watchkeeper.real.zookeeper.settings import Settings
    from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

    try:
        if not isinstance(zookeeper, Implementation):
            yield credentials.access(zookeeper)
            return
        with ensemble_of(zookeeper, settings=Settings(tick_ms=TICK_MS)) as ensemble:
            yield credentials.access(ensemble.hosts)
    except EnvironmentProblem as problem:
        raise Stop(USAGE, str(problem)) from None


def to_json(done: Replayed) -> dict[str, Any]:
    """Return the value that `replay --json` prints."""
    return {
        "conforms": done.conforms,
        "reached": done.reached,
        "text": done.text,
        "limits": done.limits,
        "known_limit": done.known_limit or None,
        "zookeeper": done.zookeeper or None,
    }


def conformed_json(done: Conformed) -> dict[str, Any]:
    """Return the value that `conform --json` prints."""
    return {
        "conforms": done.conforms,
        "text": done.text,
        "schedules": done.schedules,
        "operations": done.operations,
        "zookeeper": done.zookeeper,
        "first_difference": [
            {"node": scheduled.node, "does": scheduled.text, "operation": scheduled.operation}
            for scheduled in done.steps
        ],
    }
