"""What was explored is reached in the simulation too, step by step."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from explore.cluster import ClusterSystem
from explore.story import deed_of
from model.answers import Seen
from model.asks import Partition
from model.bounds import Bounds
from model.cues import Cue
from model.operations import Exists
from model.story import Schedule
from model.zoo import PLANTS
from sim.conducting import Conductor
from sim.held import Told
from tests.schedules import EVERY_FAULT, nearest, two_topics
from watchkeeper.cueing import cues_of
from watchkeeper.replaying import replay_sim, walk
from watchkeeper.zoo import catch, plan_of

BROKERS_COME_AND_GO = {
    "broker_crash": 1,
    "broker_restart": 1,
    "broker_expire": 1,
    "broker_disconnect": 2,
    "broker_lost_reply": 1,
    "broker_leave": 1,
    "crash": 1,
}


@pytest.mark.parametrize(
    ("variant", "violates"), [("documented", "truthful registry"), ("kafka_07", "full cover")]
)
def test_a_counterexample_reaches_the_same_violation(variant: str, violates: str) -> None:
    plan, found, deeds = nearest(variant)

    done = replay_sim(plan, Bounds(), Schedule(found, deeds))

    assert found == violates
    assert (done.conforms, done.reached) == (True, True), done.said
    assert done.said.startswith(f"{violates} is violated: at ")


@pytest.mark.parametrize("name", PLANTS)
def test_whatever_is_planted_is_reached_in_the_simulation(name: str) -> None:
    """Safety in the last step, what is judged at rest at rest, the rest going round."""
    plant = PLANTS[name]
    caught = catch(plant)
    assert caught.story is not None
    plan, bounds = plan_of(plant, plant.variant), plant.configuration.bounds

    done = replay_sim(plan, bounds, caught.story.schedule)

    assert (done.conforms, done.reached) == (True, True), done.said


@pytest.mark.parametrize("seed", [1, 2])
def test_it_is_the_schedule_that_decides_and_not_the_seed(seed: int) -> None:
    plan, found, deeds = nearest("documented")

    assert replay_sim(plan, Bounds(), Schedule(found, deeds), seed=seed).reached


def test_without_its_last_step_nothing_is_violated() -> None:
    plan, found, deeds = nearest("documented")

    done = replay_sim(plan, Bounds(), Schedule(found, deeds[:-1]))

    assert (done.conforms, done.reached) == (True, False)
    assert done.said.startswith("truthful registry is not violated in the simulation")


@pytest.mark.parametrize(
    ("variant", "layout", "bounds"),
    [
        ("documented", "0.7", Bounds(EVERY_FAULT)),
        ("kafka_07", "0.7", Bounds(EVERY_FAULT)),
        ("hardened", "0.7", Bounds(EVERY_FAULT)),
        ("hardened", "0.8", Bounds(EVERY_FAULT, messages=2, begin="settled")),
        ("kafka_08", "0.8", Bounds(BROKERS_COME_AND_GO, messages=1)),
        ("kafka_07", "0.7", Bounds(BROKERS_COME_AND_GO, messages=1)),
    ],
)
def test_random_schedules_with_every_fault_can_be_followed(
    variant: str, layout: str, bounds: Bounds
) -> None:
    plan = two_topics(variant, layout=layout)
    system = ClusterSystem(plan, bounds)
    for number in range(4):
        way = walk(system, Random(f"follow/{number}"))
        deeds = tuple(deed_of(system, taken) for taken in way)

        done = replay_sim(plan, bounds, Schedule("", deeds))

        assert done.conforms, f"schedule {number}: {done.said}"


# --- differences ------------------------------------------------------------------------


def followed(change: dict[int, dict[str, Any]]) -> tuple[str, list[Cue]]:
    """What is said of a schedule in which some cues were changed."""
    plan, bounds = two_topics("hardened"), Bounds()
    system = ClusterSystem(plan, bounds)
    way = walk(system, Random(4), most=40)
    cues = list(cues_of(system, way))
    for at, fields in change.items():
        cues[at] = replace(cues[at], **fields)
    told = Told(lambda node, life: 1_600_000_000_000, lambda node, life: "0" * 32)
    return Conductor(plan, told).follow(cues, rests=False).differs, cues


def test_another_answer_is_a_difference() -> None:
    _, cues = followed({})
    at = next(at for at, cue in enumerate(cues) if cue.step and cue.about is not None)

    said, _ = followed({at: {"answer": "something else"}})

    assert said.startswith(f"step {cues[at].step}, {cues[at].node}: ")
    assert said.endswith("; the schedule says something else")


def test_another_question_is_a_difference() -> None:
    _, cues = followed({})
    at = next(at for at, cue in enumerate(cues) if cue.step and cue.about is not None)

    said, _ = followed({at: {"about": Exists("/elsewhere")}})

    assert said.startswith(
        f"step {cues[at].step}: the schedule says that {cues[at].node} is answered exists "
        "/elsewhere; in the simulation it asks for "
    )


def test_what_does_not_run_cannot_be_killed_twice() -> None:
    said, _ = followed({0: {"does": "is killed"}})

    assert said == "before the first step: in the simulation broker/0 does not run"


# --- where the simulation tells more, or less, than a server ----------------------------


def test_whoever_looks_if_a_znode_is_there_is_not_told_its_data() -> None:
    """The simulated service tells it, a server does not; a replay follows the server."""
    plan, bounds = two_topics("hardened"), Bounds(EVERY_FAULT)
    system = ClusterSystem(plan, bounds)
    ways = [walk(system, Random(f"follow/{number}")) for number in range(4)]
    looks = [
        cue.answer
        for way in ways
        for cue in cues_of(system, way)
        if isinstance(cue.about, Exists) and type(cue.answer) is Seen
    ]

    assert looks
    assert all(answer.data is None for answer in looks)


def test_a_place_that_only_a_broker_knows_is_known_at_once() -> None:
    """The exploration has no time between the first fetch and its answer."""
    plan, bounds = two_topics("hardened"), Bounds()
    system = ClusterSystem(plan, bounds)
    local = next(
        local
        for number in range(20)
        for taken in walk(system, Random(f"place/{number}"))
        for local in [system.members[taken.actor].locals[taken.after[1 + taken.actor]]]
        if local.fetching
    )

    assert {one.at for one in local.fetching} == {0}
    assert all(isinstance(one.partition, Partition) for one in local.fetching)
