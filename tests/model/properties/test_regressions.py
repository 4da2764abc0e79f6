"""Runs that were once judged wrong, or went wrong: each is rare, and each is a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from watchkeeper import simulate
from watchkeeper.model.actor.effects import new_session, sleep
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.actor.program import Program
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind

SEEDS = range(8)


def scenario(layout: str, group: Mapping[str, Any], *timeline: Mapping[str, Any]) -> Any:
    """Two brokers, four partitions of `clicks`, a group, and their faults."""
    return {
        "name": "odd",
        "about": "a run that is rare",
        "clusters": {
            "main": {
                "layout": layout,
                "brokers": 2,
                "topics": {"clicks": {"partitions_per_broker": 2}},
            }
        },
        "groups": {"group": {**group, "config": {"zookeeper.session.timeout.ms": 2000}}},
        "timeline": [{"at": "0s", "produce": "clicks", "rate": "100/s"}, *timeline],
        "settle": "20s",
    }


def test_a_client_that_starts_cut_off_leaves_sessions_behind() -> None:
    """Each of its attempts opens a session when the link heals; it lives by one of them."""
    odd = scenario(
        "0.7",
        {"consumers": 3, "streams": {"clicks": 1}},
        {"at": "500ms", "partition": "group/1", "for": "5s"},
    )

    for seed in SEEDS:
        result = simulate(odd, seed=seed)
        assert result.holds, result
        opened = [
            event
            for event in result.trace.of_kind(EventKind.SESSION_OPENED)
            if event.detail["by"] == "group/1"
        ]
        assert len(opened) > 1


def test_an_order_outlives_the_connection_of_a_member_that_carries_it_out() -> None:
    """An administrator that loses its connection over an order takes it up again."""
    odd = scenario(
        "0.8",
        {"consumers": 2, "filter": {"white_list": ".*"}},
        {"at": "6s", "quorum_loss": "zookeeper", "for": "3s"},
        {"at": "6s", "create_topic": "views", "partitions_per_broker": 2},
    )

    for seed in SEEDS:
        result = simulate(odd, seed=seed)
        assert result.holds, result
        assert any(event.topic == "views" for event in result.trace.of_kind(EventKind.FETCHING))


def test_no_progress_is_owed_while_the_service_is_away() -> None:
    """Two of three servers are gone for good: what would have come of it is not known."""
    odd = scenario(
        "0.7",
        {"consumers": 2, "streams": {"clicks": 1}},
        {"at": "6s", "crash": "zookeeper/1"},
        {"at": "7s", "crash": "zookeeper/2"},
    )

    for seed in SEEDS:
        result = simulate(odd, seed=seed)
        assert result.verdict is Verdict.UNKNOWN
        assert "was not back" in result.judgement.finding("progress").evidence


def test_a_program_of_ones_own_is_not_held_against_what_is_expected_of_a_variant() -> None:
    """Its run says whose it is, how it can be made again, and which of its turns failed."""

    async def turn(zk: ZooKeeper, me: Any, memory: Any) -> Any:
        await new_session()
        await sleep(1000)
        await zk.get("/nowhere")

    result = simulate("consumer-crash", consumer=Program(turn, None, None))

    assert result.expectation is None
    assert "consumer=..." in result.command
    assert set(result.judgement.failed_turns) == {"billing/0", "billing/1", "billing/2"}
    assert "a program of your own" in str(result)
    assert "turns of billing/0" in str(result)
    assert "NoNode at /nowhere" in str(result)
