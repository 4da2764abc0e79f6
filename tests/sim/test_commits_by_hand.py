"""Applications that commit by hand: whatever ends a commit, they go on, and as they promise."""

from __future__ import annotations

from typing import Any

import pytest

from watchkeeper import Result, simulate

WHATS = ("reply", "request")


def scenario(commits: str, *faults: dict[str, Any]) -> dict[str, Any]:
    """Two members that commit by hand, under these faults."""
    return {
        "name": "by-hand",
        "about": "commits by hand",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1},
                "brokers": 1,
                "storage": {"config": {"log.flush.interval": 50}},
                "topics": {"orders": {"partitions_per_broker": 2}},
            }
        },
        "groups": {
            "billing": {
                "consumers": 2,
                "streams": {"orders": 1},
                "guarantee": "at least once" if commits == "after" else "at most once",
                "handling": {"each": "2ms", "commits": commits},
                "config": {
                    "auto.commit.enable": False,
                    "refresh.leader.backoff.ms": 100,
                    "auto.offset.reset": "smallest" if commits == "after" else "largest",
                    "zookeeper.session.timeout.ms": 4000,
                },
            }
        },
        "timeline": [
            {"at": "2s", "produce": "orders", "rate": "100/s", "size": "200B", "for": "20s"},
            *faults,
        ],
        "settle": "15s",
    }


def committing(nth: int) -> dict[str, Any]:
    """The moment before the nth commit of a member."""
    return {"node": "billing/1", "purpose": "commit", "nth": nth, "when": "before"}


def violated(result: Result) -> list[str]:
    """What is violated, where every fault had an effect."""
    assert all(effect.is_real for effect in result.effects)
    return list(result.violated)


def handed_on(result: Result) -> str:
    return next(
        finding.evidence
        for finding in result.findings
        if finding.claim.name == "delivery to billing"
    )


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("commits", ["after", "before"])
def test_a_commit_whose_connection_breaks_stops_no_application(what: str, commits: str) -> None:
    """At ten moments: each message is handed on, or passed by as the group promises."""
    for nth in range(1, 41, 4):
        fault = {"on": committing(nth), "lose": what}
        result = simulate(scenario(commits, fault), seed=nth)
        assert not violated(result)
        assert "not yet read" not in handed_on(result)


def test_a_commit_whose_session_ends_stops_no_application() -> None:
    """Nor if the client learns of it later."""
    for nth in range(1, 41, 4):
        fault = {"on": committing(nth), "expire": "billing/1", "unknown": "500ms"}
        result = simulate(scenario("after", fault), seed=nth)
        assert not violated(result)
        assert "not yet read" not in handed_on(result)


def test_what_may_be_handed_on_again_is_not_handled_at_most_once() -> None:
    """The commit failed, or another member had the partition by then."""
    for seed in range(20):
        faults = [
            {"on": committing(1 + seed), "lose": WHATS[seed % 2]},
            {"at": "9s", "expire": "billing/0", "unknown": "1s"},
            {"at": "12s", "pause": "billing/1", "for": "9s"},
        ]
        assert not violated(simulate(scenario("before", *faults), seed=seed))


def test_the_shipped_scenario_holds() -> None:
    """With some seeds; no member waits for a result that does not come."""
    for seed in range(4):
        result = simulate("connection-loss-mid-commit", seed=seed)
        assert result.met, result
        assert not violated(result)
