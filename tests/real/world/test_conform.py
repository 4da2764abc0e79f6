"""Schedules of the checker happen on a live ZooKeeper, with the same answers and events."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.support.checker.schedules import EVERY_FAULT, nearest, two_topics
from watchkeeper.check.replay import conform, replay_live, walk
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.explanation import scheduled_step_of
from watchkeeper.checker.counterexample.replay_steps import (
    NoSuchStep,
    expected_znodes,
    replay_steps_of,
)
from watchkeeper.model.actor.operations import Create, GetChildren
from watchkeeper.model.counterexample.counterexample import Schedule
from watchkeeper.model.counterexample.replay_steps import ReplayStep
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.real.access import Access
from watchkeeper.real.replay.replayer import Follower
from watchkeeper.real.zookeepers.ensemble import Ensemble


@pytest.fixture(scope="module", name="zookeeper")
def fixture_zookeeper(either_zookeeper: Ensemble) -> Ensemble:
    """Tests here compare the whole tree."""
    return either_zookeeper


@pytest.mark.parametrize(
    "variant", ["documented", pytest.param("kafka_07", marks=pytest.mark.slow), "hardened"]
)
def test_random_schedules_with_every_fault_conform(zookeeper: Ensemble, variant: str) -> None:
    done = conform(two_topics(variant), Bounds(EVERY_FAULT), 12, 7, Access(zookeeper.hosts))

    assert done.conforms, done.text
    assert done.operations > 500


def test_schedules_of_the_later_layout_that_commit_conform(zookeeper: Ensemble) -> None:
    bounds = Bounds(EVERY_FAULT, messages=2, begin="settled")

    done = conform(two_topics("hardened", layout="0.8"), bounds, 8, 3, Access(zookeeper.hosts))

    assert done.conforms, done.text


def test_schedules_in_which_brokers_come_and_go_conform(zookeeper: Ensemble) -> None:
    """Brokers use the Java client, which sets its watches again after a reconnection."""
    faults = dict.fromkeys(("broker_crash", "broker_restart", "broker_expire", "broker_join"), 1)
    faults["broker_disconnect"] = 2

    done = conform(two_topics("hardened"), Bounds(faults), 8, 5, Access(zookeeper.hosts))

    assert done.conforms, done.text


def test_schedules_in_which_sessions_outlive_their_programs_conform(
    zookeeper: Ensemble,
) -> None:
    """Such a session keeps its znodes, until its process ends or the session expires."""
    bounds = Bounds({"abandon": 1, "crash": 1, "expire": 1, "restart": 1}, begin="settled")
    plan, seed, number = two_topics("hardened"), 5, 6
    system = ClusterSystem(plan, bounds)
    ways = [walk(system, Random(f"{seed}/{each}")) for each in range(number)]
    kinds = [[step.step.does for step in way] for way in ways]
    assert sum(StepKind.ABANDON in way for way in kinds) >= number - 1
    assert any(
        StepKind.OLD_SESSION_EXPIRED in way[way.index(StepKind.ABANDON) :]
        for way in kinds
        if StepKind.ABANDON in way
    )

    done = conform(plan, bounds, number, seed, Access(zookeeper.hosts))

    assert done.conforms, done.text


def test_a_counterexample_conforms_live(zookeeper: Ensemble) -> None:
    plan, found, steps = nearest("documented")

    done = replay_live(plan, Bounds(), Schedule(found, steps), Access(zookeeper.hosts))

    assert done.conforms, done.text
    assert done.text.startswith(f"conforms: {len(steps)} steps")
    assert "time does not pass" in done.limits


def test_a_schedule_that_cannot_be_taken_is_refused_with_the_step(zookeeper: Ensemble) -> None:
    plan, bounds = two_topics("documented"), Bounds()
    way = walk(ClusterSystem(plan, bounds), Random(1), most=5)
    first = scheduled_step_of(ClusterSystem(plan, bounds), way[0])
    second = replace(first, node="billing/0", does=StepKind.CRASH, operation="")

    with pytest.raises(NoSuchStep, match="step 2: billing/0 is killed cannot be done there"):
        replay_live(plan, bounds, Schedule("", (first, second)), Access(zookeeper.hosts))


# --- a difference is found --------------------------------------------------------------


def actions(most: int = 30) -> tuple[list[ReplayStep], ClusterSystem, tuple[int, ...]]:
    """A schedule without a fault."""
    system = ClusterSystem(two_topics("hardened"), Bounds())
    way = walk(system, Random(2), most=most)
    return list(replay_steps_of(system, way)), system, way[-1].after


def test_another_answer_is_a_difference(zookeeper: Ensemble) -> None:
    scripted, _, _ = actions()
    at = next(at for at, step in enumerate(scripted) if step.step and type(step.about) is Create)
    scripted[at] = replace(scripted[at], answer="/elsewhere")

    with Follower(Access(zookeeper.hosts)) as follower:
        difference = follower.follow(scripted, ())

    assert difference.startswith(
        f"step {scripted[at].step}, {scripted[at].node}: create {scripted[at].about.path}"
    )
    assert difference.endswith("the schedule says /elsewhere")


def test_children_in_another_order_are_none(zookeeper: Ensemble) -> None:
    scripted, system, end = actions()
    scripted = [
        replace(action, answer=tuple(reversed(action.answer)))
        if type(action.about) is GetChildren and type(action.answer) is tuple
        else action
        for action in scripted
    ]

    with Follower(Access(zookeeper.hosts)) as follower:
        assert follower.follow(scripted, expected_znodes(system, end)) == ""


def test_an_event_too_few_is_a_difference(zookeeper: Ensemble) -> None:
    scripted, _, _ = actions(150)
    at = next(at for at, action in enumerate(scripted) if any(action.events.values()))
    scripted[at] = replace(scripted[at], events=dict.fromkeys(scripted[at].events, ()))

    with Follower(Access(zookeeper.hosts)) as follower:
        difference = follower.follow(scripted, ())

    assert difference.endswith("the schedule says nothing")


def test_a_znode_too_many_is_a_difference(zookeeper: Ensemble) -> None:
    scripted, system, end = actions()

    with Follower(Access(zookeeper.hosts)) as follower:
        difference = follower.follow(scripted, expected_znodes(system, end)[:-1])

    assert (
        difference
        == f"in the end there is {expected_znodes(system, end)[-1].path}; the schedule says no"
    )
