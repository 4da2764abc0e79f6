"""Brokers as processes that replicate over TCP; verdicts as simulated."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live_zookeeper import lived
from watchkeeper.api.result import Result
from watchkeeper.model.properties.control_plane.replication import CAUGHT_UP, IN_ISR, KEPT
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.reports.facts.control_plane.reassignments import MoveStep, Outcome, moves

pytestmark = pytest.mark.usefixtures("needs_zookeeper")


def scenario(*timeline: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Three brokers with three replicas of one partition, and a load."""
    return {
        "name": "replicated",
        "about": "replicas",
        "variant": "hardened",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1, "tick": "200ms"},
                "brokers": 3,
                "layout": "0.8",
                "leaders": "controller",
                "unclean_leader_election": False,
                "session_timeout": "2s",
                "replication": {"lag_time": "1s", "leader_rebalance": "never"},
                "topics": {"clicks": {"partitions": 1, "replicas": 3}},
            }
        },
        "groups": {},
        "timeline": [
            {"at": "3s", "produce": "clicks", "rate": "20/s", "acks": "all", "for": "6s"},
            *timeline,
        ],
        "settle": "4s",
        **more,
    }


def verdict_on(result: Result, name: str) -> str:
    """Return what a property's verdict is."""
    (found,) = [each for each in result.findings if each.claim.name == name]
    return found.verdict.value


def test_a_leader_dies_and_comes_back() -> None:
    """What was confirmed is in the log of the next leader, and on the disk of the old one."""
    result = lived(
        scenario(
            {"at": "5s", "crash": "broker/0"},
            {"at": "8s", "start": "broker/0"},
        )
    )
    assert result.judgement.violated() == []
    assert [verdict_on(result, each.name) for each in (KEPT, IN_ISR, CAUGHT_UP)] == ["holds"] * 3
    opened = {
        event.node: event.detail for event in result.trace.of_kind(EventKind.REPLICA_OPENED)
    }
    assert opened["broker/0"]["end"] > 20


@pytest.mark.slow
def test_brokers_fetch_as_in_0_8() -> None:
    """What was confirmed is on every broker. A change of leaders shows a defect of `kafka_08`."""
    fetching = scenario()
    fetching["variant"] = "kafka_08"
    fetching["clusters"]["main"]["replication"]["fetches"] = "as in 0.8"
    result = lived(fetching)
    assert result.judgement.violated() == []
    assert [verdict_on(result, each.name) for each in (KEPT, IN_ISR)] == ["holds"] * 2


def test_a_lost_host_has_lost_its_pagecache() -> None:
    """Nothing of it was written back yet, and it fetches all of it again."""
    result = lived(
        scenario({"at": "6s", "crash_host": "broker/2"}, {"at": "9s", "start": "broker/2"})
    )
    assert result.judgement.violated() == []
    assert result.effects[1].counts["bytes cut back to the last fsync"] > 0
    (opened,) = result.trace.of_kind(EventKind.REPLICA_OPENED)
    assert (opened.node, opened.detail["end"]) == ("broker/2", 0)
    assert verdict_on(result, CAUGHT_UP.name) == "holds"


@pytest.mark.slow
def test_a_partition_moves_and_a_topic_is_deleted() -> None:
    """The requests of an administrator are carried out by processes too."""
    moved = '{"version":1,"partitions":[{"topic":"clicks","partition":0,"replicas":[2]}]}'
    result = lived(
        scenario(
            {"at": "4s", "write_znode": "/admin/reassign_partitions", "data": moved},
            {"at": "9s", "write_znode": "/admin/delete_topics/clicks", "data": ""},
        )
    )
    assert result.judgement.violated() == []
    assert verdict_on(result, "requests are carried out") == "holds"
    [move] = moves(result.trace)
    assert (move.targets, move.outcome) == ((2,), Outcome.COMPLETE)
    taken = {step for step in MoveStep if move.has(step)}
    beginning = {MoveStep.REQUESTED, MoveStep.LED, MoveStep.LEFT}
    assert taken == {*beginning, MoveStep.DELETED, MoveStep.SHRUNK, MoveStep.REMOVED}
    assert move.until_us < 9_000_000
