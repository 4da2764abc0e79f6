"""What members say, held against the registry: each kind of difference is seen in a trace.

A trace of a `hardened` and one of a shipped group have no difference. Each test changes what one
kind of event says, and names the difference that has to be found.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from bench.mutation.accounts import differences

from watchkeeper import Result, simulate
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace

FIELDS: dict[str, Any] = {
    "name": "joins",
    "about": "Members join one after the other, all at once, and one of them leaves.",
    "clusters": {
        "main": {"brokers": 2, "topics": {"clicks": {"partitions_per_broker": 3}}},
    },
    "groups": {
        "billing": {
            "consumers": [{}, {}, {"starts": "6s"}],
            "streams": {"clicks": 2},
            "apart": "0s",
            "config": {
                "zookeeper.session.timeout.ms": 2_000,
                "rebalance.backoff.ms": 500,
                "rebalance.max.retries": 4,
                "auto.commit.interval.ms": 1_000,
            },
        }
    },
    "timeline": [
        {"at": "0s", "produce": "clicks", "rate": "200/s", "size": "100B"},
        {"at": "12s", "leave": "billing/2"},
    ],
    "settle": "10s",
}


@cache
def result_of(variant: str) -> Result:
    return simulate(FIELDS, variant=variant)


Edit = Callable[[Event], dict[str, Any] | None]
"""The new detail of an event; None for an event that stays as it is."""


def found(variant: str, edit: Edit) -> set[str]:
    """The differences in the trace of a run with changed events."""
    result = result_of(variant)
    rows = []
    for event in result.trace:
        detail = edit(event)
        kept = event if detail is None else event._replace(detail=detail)
        rows.append(tuple(kept)[1:])
    return set(differences(result.plan, Trace(result.trace.header, rows)))


@pytest.mark.parametrize("variant", ["hardened", "kafka_07", "kafka_08"])
def test_members_that_nothing_disturbs_say_what_is_so(variant: str) -> None:
    assert found(variant, lambda event: None) == set()


def changed(kind: EventKind, **changes: Any) -> Edit:
    """Give every event of a kind other fields."""

    def edit(event: Event) -> dict[str, Any] | None:
        if event.kind != kind:
            return None
        return {**event.detail, **changes}

    return edit


def writes(above: str, data: str) -> Edit:
    """Let members write other data below a path."""

    def edit(event: Event) -> dict[str, Any] | None:
        if event.kind != EventKind.APPLIED or "billing" not in str(event.detail.get("by")):
            return None
        did = [
            [*change[:3], data] if change[0] != "deleted" and above in change[1] else change
            for change in event.detail["did"]
        ]
        return {**event.detail, "did": did}

    return edit


def begins_at(at: int) -> Edit:
    """Let members begin to fetch elsewhere."""

    def edit(event: Event) -> dict[str, Any] | None:
        if event.kind != EventKind.FETCHING or event.detail["does"] != "begins":
            return None
        return {**event.detail, "at": at}

    return edit


def is_refused(event: Event) -> dict[str, Any] | None:
    if event.kind != EventKind.RESPONSE or event.detail["purpose"] != "release":
        return None
    return {**event.detail, "answer": {"error": "BadVersion"}}


@pytest.mark.parametrize(
    ("variant", "edit", "difference"),
    [
        ("hardened", changed(EventKind.REBALANCE_COMPLETED, owns=17), "owns"),
        ("hardened", changed(EventKind.ASSIGNED, shares={"clicks": ["0-0"]}), "share"),
        ("hardened", changed(EventKind.REBALANCE_STARTED, attempt=2), "attempt"),
        ("kafka_07", changed(EventKind.REBALANCE_STARTED, attempt=1), "attempt"),
        ("hardened", writes("/owners/", "another-0"), "claim"),
        ("hardened", writes("/owners/", "billing_c0-7"), "claim"),
        ("hardened", writes("/ids/", '{ "clicks": 1 }'), "registration"),
        ("kafka_08", writes("/ids/", '{"clicks": 2}'), "registration"),
        ("hardened", writes("/offsets/", "1"), "commit"),
        ("hardened", begins_at(1), "start"),
        ("hardened", writes("/offsets/", "1"), "handover"),
        ("kafka_08", writes("/offsets/", "1"), "handover"),
        ("hardened", is_refused, "refused"),
    ],
)
def test_a_difference_is_named(variant: str, edit: Edit, difference: str) -> None:
    assert difference in found(variant, edit)


def test_a_timer_that_does_not_fire_is_named() -> None:
    """Members that are at rest commit once their interval is over."""
    result = result_of("hardened")
    rows = [
        tuple(event)[1:]
        for event in result.trace
        if event.t_us < 14_000_000 or event.detail.get("purpose") != "commit"
    ]

    found = differences(result.plan, Trace(result.trace.header, rows))

    assert found == ("commit is late",)


def of_a_shipped_member(*rows: tuple[int, EventKind, dict[str, Any]]) -> set[str]:
    """The differences in a trace of attempts alone, with their milliseconds."""
    result = result_of("kafka_07")
    made = [
        (at_ms * 1_000, "billing/0", kind.value, 1, "billing", "", "", 0, detail)
        for at_ms, kind, detail in rows
    ]
    return set(differences(result.plan, Trace(result.trace.header, made)))


START, FAIL = EventKind.REBALANCE_STARTED, EventKind.REBALANCE_FAILED
GIVE_UP, DONE = EventKind.REBALANCE_ABANDONED, EventKind.REBALANCE_COMPLETED
NOTE = EventKind.NOTIFIED


def attempts(number: int) -> list[tuple[int, EventKind, dict[str, Any]]]:
    """Attempts that fail, half a second and a little more apart."""
    return [
        row
        for at in range(number)
        for row in (
            (600 * at, START, {"attempt": at + 1}),
            (600 * at + 10, FAIL, {"attempt": at + 1, "why": ""}),
        )
    ]


def test_members_give_up_after_as_many_attempts_as_are_set() -> None:
    """Neither before, nor later, nor without a word; then they begin to count again."""
    last = (3_000, GIVE_UP, {"attempts": 4})

    assert of_a_shipped_member(*attempts(4), last) == set()
    assert of_a_shipped_member(*attempts(4), (3_000, GIVE_UP, {"attempts": 3})) == {"gives up"}
    assert of_a_shipped_member(*attempts(5)) == {"gives up"}
    again = [(3_100, NOTE, {"what": "created"}), (3_200, START, {"attempt": 1})]
    assert of_a_shipped_member(*attempts(4), last, *again) == set()


def test_members_pause_after_a_failed_attempt() -> None:
    hasty = (100, START, {"attempt": 2})

    assert of_a_shipped_member(*attempts(1), hasty) == {"pause"}


def test_an_attempt_has_a_cause() -> None:
    """A notification, a connection, a failure, or an error in an answer."""
    first = [(0, START, {"attempt": 1})]
    next_one = (100, START, {"attempt": 1})

    assert of_a_shipped_member(*first, next_one) == {"needless attempt"}
    assert of_a_shipped_member(*first, (50, NOTE, {"what": "created"}), next_one) == set()
