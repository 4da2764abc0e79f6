"""New groups: the znodes above their claims do not exist yet, and no attempt fails for that."""

from __future__ import annotations

from typing import Any

import pytest

from watchkeeper import Result, simulate
from watchkeeper.model.trace.kinds import EventKind

SHOWN_FIRST = ("steady-join", "consumer-crash", "two-groups", "session-expiry")
"""Scenarios whose pictures show a new group."""


def joining(layout: str, **wants: Any) -> dict[str, Any]:
    """Two members join a new group of three topics, one after the other."""
    topics = ("clicks", "orders", "views")
    return {
        "name": "new-group",
        "about": "a new group",
        "clusters": {
            "main": {
                "layout": layout,
                "brokers": 2,
                "topics": {
                    name: {"partitions": 4} if layout == "0.8" else {"partitions_per_broker": 2}
                    for name in topics
                },
            }
        },
        "groups": {"billing": {"consumers": 2, "apart": "2s", **wants}},
        "timeline": [],
        "settle": "8s",
    }


def failed(result: Result) -> list[str]:
    """Why attempts failed."""
    return [event.detail["why"] for event in result.trace.of_kind(EventKind.REBALANCE_FAILED)]


@pytest.mark.parametrize("layout", ["0.7", "0.8"])
@pytest.mark.parametrize(
    "wants",
    [{"streams": {"clicks": 1, "orders": 1, "views": 1}}, {"filter": {"white_list": ".*"}}],
    ids=["streams", "filter"],
)
def test_the_first_rebalance_of_a_new_group_succeeds(layout: str, wants: dict[str, Any]) -> None:
    """At the first attempt, and the second member's too."""
    for seed in range(10):
        result = simulate(joining(layout, **wants), seed=seed)
        assert result.holds, result
        assert not failed(result)
        completed = result.trace.of_kind(EventKind.REBALANCE_COMPLETED)
        assert next(iter(completed)).detail["attempt"] == 1


@pytest.mark.parametrize("name", SHOWN_FIRST)
def test_no_picture_begins_with_a_failed_rebalance(name: str) -> None:
    for seed in range(5):
        assert not failed(simulate(name, seed=seed))


def test_members_of_a_new_group_that_start_together_share_it() -> None:
    """Whichever of them creates the znodes above the claims."""
    for seed in range(20):
        scenario = joining("0.7", streams={"clicks": 1, "orders": 1, "views": 1})
        scenario["groups"]["billing"] |= {"consumers": 5, "apart": "0s"}
        result = simulate(scenario, seed=seed)
        assert result.holds, result
        assert not [why for why in failed(result) if "quicker" not in why]


def test_a_claim_in_a_new_group_costs_few_requests() -> None:
    """One look for the missing znodes, and one creation for each; nothing is read again."""
    result = simulate(joining("0.7", streams={"clicks": 1, "orders": 1, "views": 1}))
    first = [event for event in result.trace if event.node == "billing/0"]
    ends = next(
        at for at, event in enumerate(first) if event.kind == EventKind.REBALANCE_COMPLETED
    )
    requests = [
        (event.detail["op"], event.detail["purpose"])
        for event in first[:ends]
        if event.kind == EventKind.REQUEST
    ]
    assert requests.count(("pipelined", "read members")) == 2
    assert requests.count(("multi", "claim")) == 2
    assert requests.count(("pipelined", "claim")) == 1
    # Of three topics, and of the znode above them, which the first creation finds missing.
    assert requests.count(("create", "claim")) == 5
