"""Shrink steps: the scenarios that are a step smaller than another."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from watchkeeper.scenarios import ScenarioError, from_text, load
from watchkeeper.scenarios.shrink_steps import Fields, bare, smaller
from watchkeeper.sweep.shrink import text_of

SHARED: Fields = {
    "name": "shared",
    "about": "members in one process",
    "clusters": {"main": {"brokers": 2, "topics": {"clicks": {"partitions_per_broker": 1}}}},
    "groups": {
        "billing": {"consumers": 3, "streams": {"clicks": 1}},
        "audit": {"consumers": 1, "streams": {"clicks": 1}},
    },
    "processes": {"app": ["billing/2", "audit/0"]},
    "timeline": [
        {"at": "0s", "produce": "clicks", "rate": "10/s"},
        {"at": "5s", "crash": "app"},
        {"at": "9s", "expire": "billing/1"},
    ],
}
CRASH, EXPIRE = 1, 2
"""Entries of the timeline."""


def with_members(*members: str) -> Fields:
    """The scenario with other members in its process."""
    return {**SHARED, "processes": {"app": list(members)}}


def steps(fields: Fields, **left: Any) -> list[Fields]:
    """The steps from a scenario that leave so many consumers in some groups."""
    return [
        made
        for made in smaller(fields)
        if {name: group["consumers"] for name, group in made["groups"].items()} == left
    ]


def refusal(fields: Fields) -> str:
    """Why a scenario is not valid; empty if it is."""
    try:
        from_text("smaller.yaml", text_of(fields)).plan("hardened")
    except ScenarioError as error:
        return str(error)
    return ""


def test_a_member_of_a_process_is_renamed_with_the_members_before_it() -> None:
    without_last, *_ = steps(SHARED, billing=2, audit=1)
    without_second, without_first = steps(SHARED, billing=2, audit=1)[1:3]

    for made in (without_second, without_first):
        assert made["processes"] == {"app": ["billing/1", "audit/0"]}
        assert made["timeline"][CRASH]["crash"] == "app"
    assert without_first["timeline"][EXPIRE]["expire"] == "billing/0"
    assert without_last["processes"] == {}


def test_the_entries_of_a_process_of_which_a_member_is_left_name_that_member() -> None:
    made, *_ = steps(SHARED, billing=2, audit=1)

    assert made["timeline"][CRASH]["crash"] == "audit/0"
    assert refusal(made) == ""


def test_the_members_of_a_removed_group_leave_their_processes() -> None:
    (made,) = steps(with_members("billing/0", "billing/1", "audit/0"), billing=3)

    assert made["processes"] == {"app": ["billing/0", "billing/1"]}


def test_a_process_whose_members_are_all_removed_goes_with_its_entries() -> None:
    (made,) = steps(with_members("billing/0", "billing/1"), audit=1)

    assert made["processes"] == {}
    assert [set(entry) for entry in made["timeline"]] == [{"at", "produce", "rate"}]


def test_a_broker_that_is_removed_leaves_its_process() -> None:
    fields = with_members("broker/1", "billing/2", "audit/0")

    without = [made for made in smaller(fields) if made["clusters"]["main"].get("brokers") == 1]

    assert [made["processes"]["app"] for made in without] == [
        ["billing/2", "audit/0"],
        ["broker/0", "billing/2", "audit/0"],
    ]


def test_each_member_of_a_process_may_run_alone() -> None:
    unchanged = SHARED["clusters"], SHARED["groups"]
    divided = [
        made["timeline"][CRASH]["crash"]
        for made in smaller(SHARED)
        if (made["clusters"], made["groups"]) == unchanged and not made["processes"]
    ]

    assert divided == ["audit/0", "billing/2"]


def test_a_cluster_that_is_removed_takes_the_members_of_its_groups_along() -> None:
    cluster = SHARED["clusters"]["main"]
    fields = {
        **with_members("east:broker/0", "billing/0", "audit/0"),
        "clusters": {"east": cluster, "west": {**cluster, "topics": {"views": {}}}},
        "groups": {
            "billing": {**SHARED["groups"]["billing"], "cluster": "west"},
            "audit": {**SHARED["groups"]["audit"], "cluster": "east"},
        },
    }
    (made,) = (made for made in smaller(fields) if list(made["clusters"]) == ["east"])

    assert made["processes"] == {"app": ["broker/0", "audit/0"]}
    assert [entry.get("expire") for entry in made["timeline"]] == [None, None]


@pytest.mark.parametrize("name", ["two-sessions-in-a-process", "session-outlives-member"])
def test_no_step_leaves_a_process_with_members_that_do_not_exist(name: str) -> None:
    fields = bare(dict(load(name).document.data))
    before = copy.deepcopy(fields)

    refused = [why for made in smaller(fields) if "processes" in (why := refusal(made))]
    assert refused == []
    assert fields == before
