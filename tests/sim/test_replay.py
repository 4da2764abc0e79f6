"""What was explored is reached in the simulation too, step by step."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from bench.support.mutant_search import catch, plan_of

from tests.support.checker.schedules import EVERY_FAULT, nearest, two_topics
from watchkeeper.check.replay import replay_sim, walk
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.explanation import scheduled_step_of
from watchkeeper.checker.counterexample.replay_steps import replay_steps_of
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import Exists
from watchkeeper.model.counterexample.counterexample import Schedule
from watchkeeper.model.counterexample.replay_steps import ReplayStep
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.mutants.catalogue import MUTANTS
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.sim.replay.replayer import Replayer
from watchkeeper.sim.replay.stepped_process import ScheduledValues

BROKERS_COME_AND_GO = {
    "broker_crash": 1,
    "broker_restart": 1,
    "broker_expire": 1,
    "broker_disconnect": 2,
    "broker_lost_reply": 1,
    "broker_leave": 1,
    "broker_join": 1,
    "crash": 1,
}


@pytest.mark.parametrize(
    ("variant", "violates"), [("documented", "truthful registry"), ("kafka_07", "full cover")]
)
def test_a_counterexample_reaches_the_same_violation(variant: str, violates: str) -> None:
    plan, found, steps = nearest(variant)

    done = replay_sim(plan, Bounds(), Schedule(found, steps))

    assert found == violates
    assert (done.conforms, done.reached) == (True, True), done.text
    assert done.text.startswith(f"{violates} is violated: at ")


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_caught_in_the_simulation_too(name: str) -> None:
    """Safety in the last step, what is judged at rest at rest, the rest going round."""
    mutant = MUTANTS[name]
    caught = catch(mutant)
    assert caught.counterexample is not None
    plan, bounds = plan_of(mutant, mutant.variant), mutant.configuration.bounds

    done = replay_sim(plan, bounds, caught.counterexample.schedule)

    assert (done.conforms, done.reached) == (True, True), done.text


@pytest.mark.parametrize("seed", [1, 2])
def test_it_is_the_schedule_that_decides_and_not_the_seed(seed: int) -> None:
    plan, found, steps = nearest("documented")

    assert replay_sim(plan, Bounds(), Schedule(found, steps), seed=seed).reached


def test_without_its_last_step_nothing_is_violated() -> None:
    plan, found, steps = nearest("documented")

    done = replay_sim(plan, Bounds(), Schedule(found, steps[:-1]))

    assert (done.conforms, done.reached) == (True, False)
    assert done.text.startswith("truthful registry is not violated in the simulation")


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
        steps = tuple(scheduled_step_of(system, taken) for taken in way)

        done = replay_sim(plan, bounds, Schedule("", steps))

        assert done.conforms, f"schedule {number}: {done.text}"


# --- differences ------------------------------------------------------------------------


def followed(change: dict[int, dict[str, Any]]) -> tuple[str, list[ReplayStep]]:
    """What is said of a schedule in which some replay steps were changed."""
    plan, bounds = two_topics("hardened"), Bounds()
    system = ClusterSystem(plan, bounds)
    way = walk(system, Random(4), most=40)
    actions = list(replay_steps_of(system, way))
    for at, fields in change.items():
        actions[at] = replace(actions[at], **fields)
    values = ScheduledValues(lambda node, life: 1_600_000_000_000, lambda node, life: "0" * 32)
    return Replayer(plan, values).follow(actions, rests=False).differs, actions


def test_another_answer_is_a_difference() -> None:
    _, actions = followed({})
    at = next(at for at, action in enumerate(actions) if action.step and action.about is not None)

    difference, _ = followed({at: {"answer": "something else"}})

    assert difference.startswith(f"step {actions[at].step}, {actions[at].node}: ")
    assert difference.endswith("; the schedule says something else")


def test_another_question_is_a_difference() -> None:
    _, actions = followed({})
    at = next(at for at, action in enumerate(actions) if action.step and action.about is not None)

    difference, _ = followed({at: {"about": Exists("/elsewhere")}})

    assert difference.startswith(
        f"step {actions[at].step}: the schedule says that {actions[at].node} is answered exists "
        "/elsewhere; in the simulation it requests "
    )


def test_what_does_not_run_cannot_be_killed_twice() -> None:
    difference, _ = followed({0: {"does": StepKind.CRASH}})

    assert difference == "before the first step: in the simulation broker/0 does not run"


# --- where the simulation tells more, or less, than a server ----------------------------


def test_a_process_that_looks_if_a_znode_is_there_is_not_told_its_data() -> None:
    """The simulated service returns it, a server does not; a replay follows the server."""
    plan, bounds = two_topics("hardened"), Bounds(EVERY_FAULT)
    system = ClusterSystem(plan, bounds)
    ways = [walk(system, Random(f"follow/{number}")) for number in range(4)]
    looks = [
        action.answer
        for way in ways
        for action in replay_steps_of(system, way)
        if isinstance(action.about, Exists) and type(action.answer) is ZnodeView
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
        for local in [system.members[taken.actor].local_states[taken.after[1 + taken.actor]]]
        if local.fetching
    )

    assert {interval.at for interval in local.fetching} == {0}
    assert all(isinstance(place.partition, Partition) for place in local.fetching)
