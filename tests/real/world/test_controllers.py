"""Brokers as processes that elect a controller on a real ZooKeeper; verdicts as simulated."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live_zookeeper import lived
from watchkeeper.api.result import Result
from watchkeeper.model.properties.control_plane.controllers import DEPOSED, ONE_CONTROLLER
from watchkeeper.model.trace.kinds import EventKind

pytestmark = pytest.mark.usefixtures("needs_zookeeper")


def scenario(variant: str, *timeline: dict[str, Any]) -> dict[str, Any]:
    """Two brokers, of which broker/0 is the first controller and dies."""
    return {
        "name": "control",
        "about": "a controller",
        "variant": variant,
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1, "tick": "200ms"},
                "brokers": [{"id": 0}, {"id": 1, "starts": "3s"}],
                "layout": "0.8",
                "leaders": "controller",
                "session_timeout": "4s",
                "topics": {"clicks": {"partitions": 2, "replicas": 2}},
            }
        },
        "groups": {},
        "timeline": [{"at": "8s", "crash": "controller"}, *timeline],
        "settle": "8s",
    }


def elected(result: Result) -> list[tuple[str, int, bool]]:
    """Which brokers have become the controller, in which epoch, and whether they raised it."""
    return [
        (event.node, event.detail["epoch"], event.detail["raised"])
        for event in result.trace.of_kind(EventKind.CONTROLLER_ELECTED)
    ]


@pytest.mark.parametrize(
    "variant", [pytest.param("kafka_08", marks=pytest.mark.slow), "hardened"]
)
def test_another_broker_becomes_the_controller(variant: str) -> None:
    """The role names the process that dies."""
    result = lived(scenario(variant))
    assert result.effects[0].target == "broker/0"
    assert elected(result) == [("broker/0", 1, True), ("broker/1", 2, True)]
    assert result.judgement.violated() == []


def test_kafka_08_takes_over_with_an_old_epoch() -> None:
    """The reply to the write of the new epoch is lost."""
    lost = {"on": {"node": "broker/1", "purpose": "raise epoch"}, "lose": "reply"}
    result = lived(scenario("kafka_08", lost))
    assert elected(result) == [("broker/0", 1, True), ("broker/1", 1, False)]
    assert result.judgement.violated() == [ONE_CONTROLLER.name, DEPOSED.name]
