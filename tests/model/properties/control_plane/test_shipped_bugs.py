"""Bugs that Kafka 0.8.2.2 has: each violates a property in its scenario, and only as shipped."""

from __future__ import annotations

from functools import cache

import pytest

from tests.model.properties.control_plane.test_work import DETAIL, KIND, Row, finding
from watchkeeper import Result, simulate
from watchkeeper.model.properties.control_plane.halts import GO_ON
from watchkeeper.model.properties.control_plane.isrs import KNOWN_ISRS
from watchkeeper.model.properties.control_plane.spread import SPREAD
from watchkeeper.model.properties.verdicts import Property, Verdict
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind

SESSION = 3

SHOWN = {
    "follower-longer-than-leader": "brokers go on",
    "isr-in-metadata": "ISRs are known",
    "partition-added-after-reign": "one controller an epoch",
    "controller-expires-while-it-balances": "leaders lead",
    "broker-back-after-topic-deleted-by-hand": "replicas catch up",
    "deletion-switched-off": "metadata agrees",
    "partitions-added-by-id": "added partitions are spread",
    "topic-created-twice": "no lost updates",
}
"""Scenario -> a property that 0.8.2.2 violates in it."""


@cache
def run(name: str, variant: str) -> Result:
    """Return the run of a scenario, which several tests look at."""
    return simulate(name, variant=variant, seed=1)


@pytest.mark.parametrize("name", SHOWN)
def test_only_the_shipped_version_violates_it(name: str) -> None:
    assert SHOWN[name] in run(name, "kafka_08").judgement.violated()
    assert SHOWN[name] not in run(name, "hardened").judgement.violated()


def _kinds(result: Result, *kinds: EventKind) -> list[str]:
    return [event.detail["why"] for event in result.trace.of_kind(*kinds)]


def test_a_batch_that_an_error_has_ended_ends_the_next_one() -> None:
    """The broker restarts twice, and gets no request either time."""
    result = run("broker-back-after-topic-deleted-by-hand", "kafka_08")
    assert _kinds(result, EventKind.CALLBACK_FAILED) == [
        "no replicas of views/0 are known",
        "the batch of the controller is not empty, since an error ended it",
    ]


def test_a_broker_that_waits_for_its_own_thread_never_registers_again() -> None:
    result = run("controller-expires-while-it-balances", "kafka_08")
    [blocked] = result.trace.of_kind(EventKind.CONTROLLER_BLOCKED)
    created = [
        event
        for event in result.trace.of_kind(EventKind.APPLIED)
        for change in event.detail["did"]
        if change[:2] == ["created", paths.broker(0)] and event.t_us > blocked.t_us
    ]
    assert created == []


def test_what_late_callbacks_do_is_not_sent() -> None:
    """The old controller creates a state; no broker learns of it from that controller."""
    result = run("partition-added-after-reign", "kafka_08")
    [first, *_] = result.trace.of_kind(EventKind.CALLBACK_LATE)
    sent = [
        event
        for event in result.trace.of_kind(EventKind.CONTROL_SENT)
        if event.node == first.node and event.t_us > first.t_us
    ]
    assert sent == []


def test_hardened_removes_the_request_to_delete_where_deletion_is_off() -> None:
    result = run("deletion-switched-off", "hardened")
    [refused] = result.trace.of_kind(EventKind.DELETION_REFUSED)
    assert refused.topic == "clicks"


# --- the properties --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "claim", "kinds"),
    [
        ("follower-longer-than-leader", GO_ON, {EventKind.BECAME_FOLLOWER}),
        ("isr-in-metadata", KNOWN_ISRS, {EventKind.METADATA_UPDATED}),
        ("partitions-added-by-id", SPREAD, {EventKind.APPLIED}),
    ],
)
def test_a_run_that_never_exercises_a_property_leaves_it_unknown(
    name: str, claim: Property, kinds: set[EventKind]
) -> None:
    result = run(name, "hardened")
    rows: list[Row] = [row for row in result.trace.rows if row[KIND] not in kinds]
    assert finding(result, claim, rows).verdict is Verdict.UNKNOWN


def test_an_isr_of_a_moment_ago_need_not_be_known() -> None:
    """Without what brokers learn at the end, they know an older ISR than the registry has."""
    result = run("isr-in-metadata", "hardened")
    last_us = max(event.t_us for event in result.trace.of_kind(EventKind.ISR_CHANGED))
    rows = [
        row
        for row in result.trace.rows
        if row[KIND] != EventKind.METADATA_UPDATED or row[0] < last_us
    ]
    assert finding(result, KNOWN_ISRS, rows).verdict is Verdict.VIOLATED
    soon = [row for row in rows if row[0] < last_us + 2_000_000]
    assert finding(result, KNOWN_ISRS, soon).verdict is not Verdict.VIOLATED


def test_other_writers_than_tools_may_place_partitions_as_they_like() -> None:
    """A topic that another process has written is not judged any more."""
    result = run("partitions-added-by-id", "kafka_08")
    path = paths.topic("clicks")
    broker = next(
        event.session
        for event in result.trace.of_kind(EventKind.APPLIED)
        if any(change[1] == paths.broker(10) for change in event.detail["did"])
    )
    rows = [
        (*row[:SESSION], broker, *row[SESSION + 1 :])
        if row[KIND] == EventKind.APPLIED
        and any(change[1] == path for change in row[DETAIL]["did"])
        else row
        for row in result.trace.rows
    ]
    assert finding(result, SPREAD, rows).verdict is Verdict.UNKNOWN
