"""A cluster whose brokers elect a controller, while brokers come and go."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from watchkeeper import Result, simulate
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.controller import controller
from watchkeeper.model.controller.state_machines import partitions
from watchkeeper.model.controller.state_machines.selectors import Choice
from watchkeeper.model.controller.state_machines.variants import (
    CONTROLLERS,
    HARDENED,
    VanishedTopics,
)
from watchkeeper.model.controller.state_machines.writes import StateWrite, elected
from watchkeeper.model.properties.control_plane.controllers import (
    ACTING,
    CONTROL_PLANE,
    DEPOSED,
    EPOCHS,
    IN_SYNC,
    LED,
    ONE_CONTROLLER,
)
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.replication.registry import Leadership
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import ScenarioError

VARIANTS = ("kafka_08", "hardened")


def cluster(
    *timeline: dict[str, Any],
    brokers: Any = 3,
    partitions: int = 2,
    replicas: int = 2,
    settle: str = "8s",
    **more: Any,
) -> dict[str, Any]:
    """Return a scenario: brokers 0, 1, ... that start one after the other, and one topic."""
    listed = [{"id": number, "starts": f"{200 * number}ms"} for number in range(brokers)]
    return {
        "name": "control",
        "about": "a controller",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1},
                "brokers": listed,
                "layout": "0.8",
                "leaders": "controller",
                "session_timeout": "1s",
                "topics": {"clicks": {"partitions": partitions, "replicas": replicas}},
                **more,
            }
        },
        "groups": {},
        "timeline": list(timeline),
        "settle": settle,
    }


def states(result: Result, partition: str = "clicks/0") -> list[dict[str, Any]]:
    """Return the states that were written of a partition, in order."""
    topic, _, index = partition.partition("/")
    path = f"/brokers/topics/{topic}/partitions/{index}/state"
    return [
        json.loads(change[3])
        for event in result.trace.of_kind(EventKind.APPLIED)
        for change in event.detail["did"]
        if change[1] == path and change[3]
    ]


def last(result: Result, partition: str = "clicks/0") -> tuple[int, list[int], int, int]:
    """Return leader, ISR, leader epoch and controller epoch as they were written last."""
    state = states(result, partition)[-1]
    return state["leader"], state["isr"], state["leader_epoch"], state["controller_epoch"]


def violated(result: Result) -> list[str]:
    return result.judgement.violated()


def verdict(result: Result, name: str) -> Verdict:
    return result.judgement.finding(name).verdict


# --- brokers die and come back ---------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_new_topic_has_its_preferred_leaders(variant: str) -> None:
    result = simulate(cluster(), variant=variant)
    assert last(result, "clicks/0") == (0, [0, 1], 0, 1)
    assert last(result, "clicks/1") == (1, [1, 2], 0, 1)
    assert violated(result) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_leader_dies(variant: str) -> None:
    """The next replica leads, the dead one leaves the ISR, and no other partition changes."""
    result = simulate(cluster({"at": "3s", "crash": "broker/1"}), variant=variant)
    assert last(result, "clicks/1") == (2, [2], 1, 1)
    assert last(result, "clicks/0") == (0, [0], 1, 1)
    assert violated(result) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_broker_that_comes_back_does_not_join_the_isr(variant: str) -> None:
    """Its leader would let it in when it has caught up; that is no matter of the controller."""
    timeline = ({"at": "3s", "crash": "broker/1"}, {"at": "6s", "restart": "broker/1"})
    result = simulate(cluster(*timeline), variant=variant)
    assert last(result, "clicks/1") == (2, [2], 1, 1)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("unclean", [True, False])
def test_the_last_replica_in_sync_dies(variant: str, unclean: bool) -> None:
    """Another one leads by an unclean election, or none until it is back."""
    timeline = (
        {"at": "3s", "crash": "broker/1"},
        {"at": "6s", "restart": "broker/1"},
        {"at": "8s", "crash": "broker/2"},
    )
    fields = cluster(*timeline, unclean_leader_election=unclean)
    died = simulate(fields, variant=variant)
    assert last(died, "clicks/1")[:2] == ((1, [1]) if unclean else (-1, [2]))
    lost = [
        (event.topic, event.detail["partition"], event.detail["leader"])
        for event in died.trace.of_kind(EventKind.UNCLEAN_ELECTION)
    ]
    assert lost == ([("clicks", "1", 1)] if unclean else [])

    fields["timeline"].append({"at": "12s", "restart": "broker/2"})
    back = simulate(fields, variant=variant)
    assert last(back, "clicks/1")[:2] == ((1, [1]) if unclean else (2, [2]))
    assert violated(back) == []


# --- the controller dies ---------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_controller_dies(variant: str) -> None:
    """Another broker is elected, raises the epoch, and moves what the dead one led."""
    result = simulate(cluster({"at": "3s", "crash": "controller"}), variant=variant)
    assert result.effects[0].target == "broker/0"
    elected = [
        (event.node, event.detail["epoch"])
        for event in result.trace.of_kind(EventKind.CONTROLLER_ELECTED)
    ]
    assert elected[0] == ("broker/0", 1)
    assert [epoch for _, epoch in elected] == [1, 2]
    assert last(result, "clicks/0") == (1, [1], 1, 2)
    assert violated(result) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_brokers_and_controller_die_together(variant: str) -> None:
    """The next controller finds the dead leader; `hardened` clears the ISR of others too."""
    timeline = ({"at": "3s", "crash": "broker/0"}, {"at": "3s", "crash": "broker/2"})
    result = simulate(cluster(*timeline), variant=variant)
    assert last(result, "clicks/0") == (1, [1], 1, 2)
    follower_left = last(result, "clicks/1") == (1, [1], 1, 2)
    assert follower_left == (variant == "hardened")
    assert violated(result) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_session_of_the_controller_expires(variant: str) -> None:
    """Some broker is the controller afterwards, in a later epoch."""
    for seed in range(8):
        result = simulate(
            cluster({"at": "3s", "expire": "controller"}), variant=variant, seed=seed
        )
        resigned = [event.node for event in result.trace.of_kind(EventKind.CONTROLLER_RESIGNED)]
        assert resigned[0] == "broker/0"
        assert verdict(result, ACTING.name) is Verdict.HOLDS
        assert last(result, "clicks/0")[3] >= 1
        assert set(violated(result)) <= ({IN_SYNC.name} if variant == "kafka_08" else set())


def test_a_controller_that_leaves_resigns() -> None:
    result = simulate(cluster({"at": "3s", "leave": "controller"}), variant="hardened")
    [resigned] = result.trace.of_kind(EventKind.CONTROLLER_RESIGNED)
    assert resigned.detail["why"] == "the broker leaves"
    assert violated(result) == []


def test_no_broker_is_the_controller_between_two_reigns() -> None:
    """An action on the role then finds no target."""
    timeline = (
        {"at": "3s", "crash": "controller"},
        {"at": "3.5s", "pause": "controller", "for": "1s"},
    )
    result = simulate(cluster(*timeline), variant="hardened")
    assert result.effects[1].missed == "broker/0 does not run"


# --- topics ----------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_topics_and_partitions_are_added(variant: str) -> None:
    timeline = (
        {"at": "3s", "create_topic": "views", "partitions": 2},
        {"at": "4s", "add_partitions": "clicks", "partitions": 3},
    )
    result = simulate(cluster(*timeline), variant=variant)
    assert last(result, "views/0")[0] in (0, 1, 2)
    assert last(result, "views/1")[3] == 1
    assert last(result, "clicks/2")[3] == 1
    assert violated(result) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_topic_that_is_deleted_by_hand_and_created_again(variant: str) -> None:
    """As shipped, the controller remembers its states, and the new topic gets no leaders."""
    timeline = (
        {"at": "3s", "delete_topic": "clicks"},
        {"at": "6s", "create_topic": "clicks", "partitions": 2},
    )
    result = simulate(cluster(*timeline), variant=variant)
    assert violated(result) == ([] if variant == "hardened" else [LED.name])


def test_a_topic_that_is_deleted_and_created_at_once() -> None:
    """`hardened` sees that its states are gone, though the list of topics is the same."""
    for seed in range(10):
        timeline = (
            {"at": "3s", "delete_topic": "clicks"},
            {"at": "3s", "create_topic": "clicks", "partitions": 2},
        )
        result = simulate(cluster(*timeline), variant="hardened", seed=seed)
        assert violated(result) == [], seed


# --- the fence -------------------------------------------------------------------------

LATE = (
    {"at": "3s", "crash": "broker/1"},
    {
        "on": {"node": "broker/0", "purpose": "write state", "when": "before"},
        "lose": "request",
        "lands_after": "3s",
    },
    {
        "on": {"node": "broker/0", "purpose": "write state", "when": "before"},
        "partition": "broker/0",
        "from": "zookeeper",
        "for": "600ms",
    },
    {"at": "4.1s", "restart": "broker/1"},
)
"""A write is late by seconds. When its controller has a connection again, it has to write
nothing: the broker whose partitions it was to move is back."""


@pytest.mark.parametrize("fenced", [True, False])
def test_the_check_of_the_epoch_refuses_late_writes(
    fenced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONTROLLERS, "hardened", replace(HARDENED, fenced=fenced))
    result = simulate(cluster(*LATE), variant="hardened")
    assert all(effect.is_real for effect in result.effects)
    assert violated(result) == ([] if fenced else [DEPOSED.name])
    refused = [
        event.detail["error"]
        for event in result.trace.of_kind(EventKind.REFUSED)
        if event.detail["purpose"] == "write state"
    ]
    assert refused == (["BadVersion"] if fenced else [])


# --- each property is violated by a run ------------------------------------------------


def _of_epoch_reply_lost(patch: pytest.MonkeyPatch) -> Result:
    return simulate("controller-epoch-reply-lost", variant="kafka_08", seed=1)


def _of_a_pause(patch: pytest.MonkeyPatch) -> Result:
    return simulate("controller-paused", variant="kafka_08", seed=1)


def _with_the_same_leader_epoch(patch: pytest.MonkeyPatch) -> Result:
    def unraised(
        partition: Partition, before: Leadership, choice: Choice, epoch: int
    ) -> StateWrite:
        write = elected(partition, before, choice, epoch)
        kept = replace(write.state, leader_epoch=before.state.leader_epoch)
        return replace(write, state=kept)

    patch.setattr(partitions, "elected", unraised)
    return simulate(cluster({"at": "3s", "crash": "broker/1"}), variant="hardened")


def _of_the_last_in_sync(patch: pytest.MonkeyPatch) -> Result:
    fields = cluster({"at": "3s", "crash": "broker/1"}, replicas=1)
    return simulate(fields, variant="kafka_08")


def _of_a_name_that_is_only_noted(patch: pytest.MonkeyPatch) -> Result:
    patch.setattr(controller, "_is_settled", lambda me, state, present: True)
    timeline = (
        {"at": "3s", "crash": "broker/0"},
        {"on": {"node": "broker/1", "purpose": "raise epoch"}, "lose": "reply"},
    )
    return simulate(cluster(*timeline, brokers=2), variant="hardened")


def _of_states_that_are_kept(patch: pytest.MonkeyPatch) -> Result:
    changed = replace(HARDENED, vanished_topics=VanishedTopics.ASSIGNMENT)
    patch.setitem(CONTROLLERS, "hardened", changed)
    timeline = (
        {"at": "3s", "delete_topic": "clicks"},
        {"at": "6s", "create_topic": "clicks", "partitions": 2},
    )
    return simulate(cluster(*timeline), variant="hardened")


VIOLATIONS = {
    ONE_CONTROLLER.name: _of_epoch_reply_lost,
    EPOCHS.name: _with_the_same_leader_epoch,
    DEPOSED.name: _of_a_pause,
    IN_SYNC.name: _of_the_last_in_sync,
    ACTING.name: _of_a_name_that_is_only_noted,
    LED.name: _of_states_that_are_kept,
}


@pytest.mark.parametrize("name", [claim.name for claim in CONTROL_PLANE])
def test_each_property_can_be_violated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in violated(VIOLATIONS[name](monkeypatch))


def test_a_run_that_exercises_nothing_is_unknown() -> None:
    """No broker, no controller, no state."""
    fields = cluster(settle="3s")
    for broker in fields["clusters"]["main"]["brokers"]:
        broker["starts"] = "never"
    result = simulate(fields, variant="hardened")
    assert {verdict(result, claim.name) for claim in CONTROL_PLANE} == {Verdict.UNKNOWN}
    assert result.verdict is Verdict.UNKNOWN


# --- what a scenario may say -----------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "variant", "why"),
    [
        ({"layout": "0.7"}, "hardened", "needs the 0.8 layout"),
        (
            {},
            "documented_ceil",
            "the variant documented_ceil has no controller; expected documented or kafka_08 or",
        ),
        (
            {"leaders": "administrator", "unclean_leader_election": False},
            "hardened",
            "has no effect without `leaders: controller`",
        ),
    ],
)
def test_a_controller_that_cannot_be_is_refused(
    change: dict[str, Any], variant: str, why: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        simulate(cluster(**change), variant=variant)
    assert why in str(refused.value)


def test_the_administrator_moves_no_leaders() -> None:
    entry = {"at": "3s", "move_leader": "clicks/0", "to": "broker/1"}
    with pytest.raises(ScenarioError, match="where a controller elects them"):
        simulate(cluster(entry), variant="hardened")
