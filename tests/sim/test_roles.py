"""Targets by role: resolved when an action strikes, named in the trace, or reported as missed."""

from __future__ import annotations

from typing import Any

import pytest

from watchkeeper import Result, simulate
from watchkeeper.model.plan.faults import VERBS, FaultEffect
from watchkeeper.model.plan.roles import ROLES
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.reports.facts import timeline
from watchkeeper.scenarios import ScenarioError, json_schema

LEADER, FOLLOWER = "zookeeper/leader", "zookeeper/follower"
CONTROLLER = "controller"
PARTITION_LEADER = "leader of"


def scenario(*entries: dict[str, Any], servers: int = 3) -> dict[str, Any]:
    """A small group, and these entries."""
    return {
        "name": "roles",
        "about": "targets by role",
        "clusters": {
            "main": {
                "brokers": 1,
                "zookeeper": {"servers": servers},
                "topics": {"clicks": {"partitions": 2}},
            }
        },
        "groups": {"billing": {"consumers": 2, "streams": {"clicks": 1}}},
        "timeline": [{"at": "0s", "produce": "clicks", "rate": "20/s"}, *entries],
        "settle": "14s",
    }


def leaders(result: Result) -> list[tuple[int, str]]:
    """When which server was elected."""
    elected = result.trace.of_kind(EventKind.LEADER_ELECTED)
    return [(event.t_us, event.node) for event in elected]


def leader_at(result: Result, at_us: int) -> str:
    return [name for elected_us, name in leaders(result) if elected_us <= at_us][-1]


def effect(result: Result, at: int = 1) -> FaultEffect:
    """The effect of the entry `at`."""
    return result.effects[at]


def fault_in(result: Result, at: int = 1) -> dict[str, Any]:
    """What the trace says of the entry `at`: its node, and its detail."""
    [event] = [
        event
        for kind in (EventKind.FAULT, EventKind.CHANGE)
        for event in result.trace.of_kind(kind)
        if event.detail["number"] == at
    ]
    return {"node": event.node, **event.detail}


@pytest.mark.parametrize("verb", ["crash", "pause", "partition"])
def test_the_leader_is_the_one_of_the_moment(verb: str) -> None:
    """Whichever server that is; another leads afterwards."""
    struck = set()
    for seed in range(12):
        options = {} if verb == "crash" else {"for": "5s"}
        result = simulate(scenario({"at": "5s", verb: LEADER, **options}), seed=seed)
        name = leader_at(result, 5_000_000)
        assert effect(result).target == name
        assert effect(result).is_real
        assert (fault_in(result)["node"], fault_in(result)["role"]) == (name, LEADER)
        assert f"{verb} {LEADER} ({name})" in str(result)
        assert leaders(result)[-1][1] != name
        struck.add(name)
    assert len(struck) > 1


def test_each_crash_of_the_leader_strikes_the_next_one() -> None:
    """And a restart the one that was struck last."""
    entries = [{"at": "5s", "crash": LEADER}, {"at": "9s", "restart": LEADER}]
    entries += [{"at": "14s", "crash": LEADER}, {"at": "18s", "restart": LEADER}]
    for seed in range(5):
        result = simulate(scenario(*entries), seed=seed)
        first, again, second, last = (effect(result, at).target for at in range(1, 5))
        assert first == again == leader_at(result, 5_000_000)
        assert second == last == leader_at(result, 14_000_000)
        assert all(effect.is_real for effect in result.effects)


def test_a_follower_falls_behind() -> None:
    for seed in range(8):
        entry = {"at": "2s", "lag": FOLLOWER, "by": "400ms", "for": "6s"}
        result = simulate(scenario(entry), seed=seed)
        assert effect(result).target in {"zookeeper/1", "zookeeper/2", "zookeeper/3"}
        assert effect(result).target != leader_at(result, 2_000_000)


def test_a_member_is_cut_off_from_the_leader_of_the_moment() -> None:
    entry = {"at": "5s", "partition": "billing/0", "from": LEADER, "for": "3s"}
    for seed in range(5):
        result = simulate(scenario(entry), seed=seed)
        assert fault_in(result)["from"] == leader_at(result, 5_000_000)


def test_an_action_without_a_target_says_why() -> None:
    """In the report, in the trace, and in the verdict; nothing else is done."""
    entries = (
        {"at": "5s", "quorum_loss": "zookeeper", "for": "4s"},
        {"at": "6s", "pause": LEADER, "for": "1s"},
        {"at": "7s", "restart": FOLLOWER},
        {"at": "20s", "crash": "billing/1"},
        {"on": {"node": "billing/0", "purpose": "claim", "nth": 1}, "crash": "billing/1"},
    )
    result = simulate(scenario(*entries))
    why = "no server is the leader: zookeeper/1 is down, zookeeper/2 is down, zookeeper/3"
    assert effect(result, 2).missed.startswith(why)
    assert fault_in(result, 2)["missed"].startswith(why)
    assert fault_in(result, 2)["node"] == LEADER
    assert effect(result, 3).missed == f"no earlier action has struck a {FOLLOWER}"
    assert [effect(result, at).missed for at in (4, 5)].count("billing/1 does not run") == 1
    assert result.verdict.value == "unknown"
    shown = " ".join(str(result).split())
    assert f"none: {why}" in shown
    assert f"pause {LEADER} ({why}" in shown
    [reported] = [fault for fault in result.to_json()["faults"] if fault["target"] == LEADER]
    assert reported["missed"].startswith(why)


@pytest.mark.parametrize("name", ROLES)
def test_each_cluster_has_roles_of_its_own(name: str) -> None:
    """By the prefix of its processes."""
    is_leader = name == PARTITION_LEADER
    target = f"{name} clicks/0" if is_leader else name
    fields = scenario({"at": "5s", "crash": f"east:{target}"})
    main = {**fields["clusters"].pop("main"), "layout": "0.8", "leaders": "controller"}
    fields["clusters"] = {
        "east": main,
        "west": {"brokers": 1, "topics": {"views": {"partitions": 1}}},
    }
    fields["groups"]["billing"]["cluster"] = "east"
    result = simulate(fields)
    prefix = "east:broker/" if is_leader or name == CONTROLLER else "east:zookeeper/"
    assert effect(result).target.startswith(prefix)


REFUSED = [
    ({"crash": "controller"}, "no program here is a controller"),
    ({"pause": "controller", "for": "1s"}, "no program here is a controller"),
    ({"lag": LEADER, "by": "1s", "for": "1s"}, "a leader cannot fall behind; name a follower"),
    ({"expire": LEADER}, "is not a consumer or broker"),
    ({"crash": "zookeeper/leeder"}, "zookeeper/leader"),
]


@pytest.mark.parametrize(("entry", "why"), REFUSED)
def test_a_role_that_cannot_be_meant_is_refused(entry: dict[str, Any], why: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        simulate(scenario({"at": "5s", **entry}))
    assert why in str(refused.value)


def test_a_single_server_leads_and_has_no_follower() -> None:
    result = simulate(scenario({"at": "5s", "pause": LEADER, "for": "1s"}, servers=1))
    assert effect(result).target == "zookeeper/1"
    with pytest.raises(ScenarioError, match="a single server has no follower"):
        simulate(scenario({"at": "5s", "pause": FOLLOWER, "for": "1s"}, servers=1))


def test_the_schema_names_the_roles() -> None:
    """At every verb that takes a server."""
    entry = json_schema()["$defs"]["Entry"]["properties"]
    for verb in VERBS.values():
        if "server" in verb.targets:
            about = entry[verb.name]["description"]
            assert "zookeeper/follower" in about
            assert ("zookeeper/leader" in about) == (verb.name != "lag")


def test_a_picture_says_that_an_action_had_no_target() -> None:
    """It would otherwise show a fault that did not happen."""
    entries = (
        {"at": "5s", "crash": "billing/1"},
        {"at": "9s", "restart": FOLLOWER},
    )
    labels = [entry.label for entry in timeline.entries(simulate(scenario(*entries)).trace)]
    assert f"restart {FOLLOWER}: no target" in labels
    assert "crash billing/1" in labels
