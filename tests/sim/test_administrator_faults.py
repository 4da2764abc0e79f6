"""The administrator of a 0.8 cluster as a target of faults."""

from __future__ import annotations

from typing import Any

import pytest

from watchkeeper import Result, simulate
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import ScenarioError

STATE = "/brokers/topics/clicks/partitions/0/state"


def scenario(*entries: dict[str, Any], layout: str = "0.8") -> dict[str, Any]:
    """A cluster with one topic, a member, and these entries."""
    partitions = "partitions" if layout == "0.8" else "partitions_per_broker"
    cluster = {
        "layout": layout,
        "zookeeper": {"servers": 1},
        "brokers": 2,
        "topics": {"clicks": {partitions: 1} | ({"replicas": 2} if layout == "0.8" else {})},
    }
    return {
        "name": "administrator",
        "about": "faults of the administrator",
        "clusters": {"main": cluster},
        "groups": {"billing": {"consumers": 1, "streams": {"clicks": 1}}},
        "timeline": list(entries),
        "settle": "5s",
    }


def leader_of(result: Result) -> list[str]:
    """The data that the administrator has written for the state of the partition, in order."""
    return [
        str(event.detail["did"][0][3])
        for event in result.trace.of_kind(EventKind.APPLIED)
        if event.detail.get("path") == STATE
    ]


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("crash", {}),
        ("crash_host", {}),
        ("leave", {}),
        ("pause", {"for": "4s"}),
        ("expire", {}),
        ("expire", {"unknown": "3s"}),
        ("disconnect", {"for": "3s"}),
        ("partition", {"for": "3s"}),
        ("delay", {"by": "50ms", "for": "3s"}),
    ],
)
def test_each_fault_of_the_administrator_has_an_effect(
    verb: str, options: dict[str, str]
) -> None:
    fault = {"at": "3s", verb: "administrator", **options}
    result = simulate(scenario(fault, {"at": "4s", "crash": "broker/1"}))
    assert result.effects[0].is_real
    assert not result.judgement.failed_turns


def test_an_administrator_that_starts_again_replaces_a_leader_that_has_died() -> None:
    result = simulate(
        scenario(
            {"at": "3s", "crash": "administrator"},
            {"at": "4s", "crash": "broker/0"},
            {"at": "9s", "restart": "administrator"},
        )
    )
    *_, before, last = leader_of(result)
    assert '"leader":0' in before
    assert '"leader":1' in last


def test_an_order_to_an_administrator_that_does_not_run_has_no_effect() -> None:
    result = simulate(
        scenario(
            {"at": "3s", "crash": "administrator"},
            {"at": "4s", "create_topic": "views", "partitions": 1},
        )
    )
    assert result.effects[1].missed == "its administrator does not run"
    assert result.verdict is Verdict.UNKNOWN


def test_a_reply_to_the_administrator_can_be_lost() -> None:
    step = {"node": "administrator", "purpose": "administer", "nth": 3}
    result = simulate(scenario({"on": step, "lose": "reply"}))
    assert result.effects[0].is_real
    assert '"leader":0' in leader_of(result)[-1]


def test_a_cluster_of_the_07_layout_has_no_administrator() -> None:
    with pytest.raises(ScenarioError, match="'administrator' is not a consumer or broker"):
        simulate(scenario({"at": "3s", "crash": "administrator"}, layout="0.7"))


def test_an_administrator_reads_no_clock() -> None:
    with pytest.raises(ScenarioError, match="'administrator' is not a consumer or broker"):
        simulate(scenario({"at": "3s", "skew": "administrator", "by": "5s"}))
