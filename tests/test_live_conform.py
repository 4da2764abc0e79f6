"""What was explored happens on a real ZooKeeper too, answer by answer and event by event."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from explore.cluster import ClusterSystem
from explore.story import deed_of
from model.bounds import Bounds
from model.cues import Cue
from model.operations import Create, GetChildren
from model.story import Schedule
from real.access import Access
from real.conducting import Follower
from real.ensemble import Ensemble
from tests.schedules import EVERY_FAULT, nearest, two_topics
from watchkeeper.cueing import NoSuchStep, cues_of, kept_at
from watchkeeper.replaying import conform, replay_live, walk


@pytest.mark.parametrize("variant", ["documented", "kafka_07", "hardened"])
def test_random_schedules_with_every_fault_conform(zookeeper: Ensemble, variant: str) -> None:
    done = conform(two_topics(variant), Bounds(EVERY_FAULT), 12, 7, Access(zookeeper.hosts))

    assert done.conforms, done.said
    assert done.operations > 500


def test_schedules_of_the_later_layout_that_commit_conform(zookeeper: Ensemble) -> None:
    bounds = Bounds(EVERY_FAULT, messages=2, begin="settled")

    done = conform(two_topics("hardened", layout="0.8"), bounds, 8, 3, Access(zookeeper.hosts))

    assert done.conforms, done.said


def test_schedules_in_which_brokers_come_and_go_conform(zookeeper: Ensemble) -> None:
    """Brokers are clients of Java: connected again, they leave their watches again."""
    faults = {"broker_crash": 1, "broker_restart": 1, "broker_expire": 1, "broker_disconnect": 2}

    done = conform(two_topics("hardened"), Bounds(faults), 8, 5, Access(zookeeper.hosts))

    assert done.conforms, done.said


def test_a_counterexample_conforms_live(zookeeper: Ensemble) -> None:
    plan, found, deeds = nearest("documented")

    done = replay_live(plan, Bounds(), Schedule(found, deeds), Access(zookeeper.hosts))

    assert done.conforms, done.said
    assert done.said.startswith(f"conforms: {len(deeds)} steps")
    assert "time does not pass" in done.limits


def test_a_schedule_that_cannot_be_taken_is_refused_with_the_step(zookeeper: Ensemble) -> None:
    plan, bounds = two_topics("documented"), Bounds()
    way = walk(ClusterSystem(plan, bounds), Random(1), most=5)
    first = deed_of(ClusterSystem(plan, bounds), way[0])
    second = replace(first, node="billing/0", does="is killed", operation="")

    with pytest.raises(NoSuchStep, match="step 2: billing/0 is killed cannot be done there"):
        replay_live(plan, bounds, Schedule("", (first, second)), Access(zookeeper.hosts))


# --- a difference is found --------------------------------------------------------------


def cues(most: int = 30) -> tuple[list[Cue], ClusterSystem, tuple[int, ...]]:
    """A schedule without a fault."""
    system = ClusterSystem(two_topics("hardened"), Bounds())
    way = walk(system, Random(2), most=most)
    return list(cues_of(system, way)), system, way[-1].after


def test_another_answer_is_a_difference(zookeeper: Ensemble) -> None:
    told, _, _ = cues()
    at = next(at for at, cue in enumerate(told) if cue.step and type(cue.about) is Create)
    told[at] = replace(told[at], answer="/elsewhere")

    with Follower(Access(zookeeper.hosts)) as follower:
        said = follower.follow(told, ())

    assert said.startswith(f"step {told[at].step}, {told[at].node}: create {told[at].about.path}")
    assert said.endswith("the schedule says /elsewhere")


def test_children_in_another_order_are_none(zookeeper: Ensemble) -> None:
    told, system, end = cues()
    told = [
        replace(cue, answer=tuple(reversed(cue.answer)))
        if type(cue.about) is GetChildren and type(cue.answer) is tuple
        else cue
        for cue in told
    ]

    with Follower(Access(zookeeper.hosts)) as follower:
        assert follower.follow(told, kept_at(system, end)) == ""


def test_an_event_too_few_is_a_difference(zookeeper: Ensemble) -> None:
    told, _, _ = cues(150)
    at = next(at for at, cue in enumerate(told) if any(cue.heard.values()))
    told[at] = replace(told[at], heard=dict.fromkeys(told[at].heard, ()))

    with Follower(Access(zookeeper.hosts)) as follower:
        said = follower.follow(told, ())

    assert said.endswith("the schedule says nothing")


def test_a_znode_too_many_is_a_difference(zookeeper: Ensemble) -> None:
    told, system, end = cues()

    with Follower(Access(zookeeper.hosts)) as follower:
        said = follower.follow(told, kept_at(system, end)[:-1])

    assert said == f"in the end there is {kept_at(system, end)[-1].path}; the schedule says no"
