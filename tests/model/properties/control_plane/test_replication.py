"""Each property of replication has a run that violates it: rows of a good run are changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.sim.test_replication import LOAD, cluster, requested
from watchkeeper import Result, simulate
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.properties.control_plane.brokers import LEADERS_LEAD, RISING
from watchkeeper.model.properties.control_plane.replication import (
    CARRIED_OUT,
    CAUGHT_UP,
    IN_ISR,
    KEPT,
    ONE_LEADER,
    READ,
    REPLICATION,
    UNCHANGED,
    PartitionHistory,
)
from watchkeeper.model.properties.verdicts import Property, Verdict
from watchkeeper.model.replication.replica_log import NO_NUMBER
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace

Row = tuple[Any, ...]
Change = Callable[[Row], Row | None]
"""Returns another row, or none in its place."""
KIND, NODE, DETAIL = 2, 1, 8


@cache
def good() -> Result:
    """A run in which two brokers lead the partition, one after the other, and nothing is left."""
    timeline = [
        LOAD,
        {"at": "6s", "crash": "broker/0"},
        {"at": "9s", "produce": "clicks", "rate": "20/s", "acks": "all", "for": "1s"},
        {"at": "12s", "start": "broker/0"},
        requested(
            "16s",
            "/admin/preferred_replica_election",
            partitions=[{"topic": "clicks", "partition": 0}],
        ),
    ]
    billing = {"consumers": 1, "streams": {"clicks": 1}}
    scenario = {**cluster(*timeline, replicas=3), "groups": {"billing": billing}}
    result = simulate(scenario, variant="hardened", seed=1)
    assert result.judgement.violated() == []
    return result


def changed(change: Change) -> dict[str, Verdict]:
    """Return the verdicts on the run with every row changed like this."""
    result = good()
    rows = [row for row in map(change, result.trace.rows) if row is not None]
    trace = Trace(result.trace.header, rows)
    found = judge(result.plan, trace, result.effects).findings
    return {finding.claim.name: finding.verdict for finding in found}


def with_detail(row: Row, **values: Any) -> Row:
    """Return a row with other values in its detail."""
    return (*row[:DETAIL], {**row[DETAIL], **values}, *row[DETAIL + 1 :])


def _a_follower_leads(row: Row) -> Row:
    """A follower says that it leads."""
    return with_detail(row, leads=True) if row[KIND] == EventKind.APPENDED else row


def _a_follower_has_less(row: Row) -> Row | None:
    """A follower has not stored what it has fetched."""
    is_lost = row[KIND] == EventKind.APPENDED and row[NODE] == "broker/2"
    return None if is_lost else row


def _other_messages(row: Row) -> Row:
    """The second leader commits other messages where the first one had."""
    if row[KIND] != EventKind.APPENDED or row[NODE] == "broker/0":
        return row
    records = [[epoch, number + 1_000] for epoch, number in row[DETAIL]["records"]]
    return with_detail(row, records=records)


def _reads_ahead(row: Row) -> Row:
    """A member is handed a message that is not the one at its offset."""
    if row[KIND] != EventKind.CONSUMED:
        return row
    producer, first, end, *places = row[DETAIL]["ranges"][0]
    return with_detail(row, ranges=[[producer, first + 1, end + 1, *places]])


def _never_leads(row: Row) -> Row | None:
    """The broker that the registry names has not taken the request."""
    is_dropped = row[KIND] == EventKind.BECAME_LEADER and row[NODE] == "broker/0"
    return None if is_dropped else row


def _leads_on(row: Row) -> Row | None:
    """A broker has not learned that it leads no more."""
    is_dropped = row[KIND] == EventKind.BECAME_FOLLOWER and row[NODE] != "broker/0"
    return None if is_dropped else row


def _never_deleted(row: Row) -> Row | None:
    """The request of the administrator is not deleted."""
    is_deletion = row[KIND] == EventKind.APPLIED and any(
        change[0] == "deleted" and "preferred" in change[1] for change in row[DETAIL]["did"]
    )
    return None if is_deletion else row


def _marks_fall(row: Row) -> Row:
    """A leader commits ever less."""
    if row[KIND] != EventKind.COMMITTED:
        return row
    return with_detail(row, high_watermark=1_000 - row[DETAIL]["high_watermark"])


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        (_a_follower_leads, ONE_LEADER),
        (_a_follower_has_less, IN_ISR),
        (_a_follower_has_less, CAUGHT_UP),
        (_other_messages, KEPT),
        (_other_messages, UNCHANGED),
        (_reads_ahead, READ),
        (_never_leads, LEADERS_LEAD),
        (_leads_on, LEADERS_LEAD),
        (_never_deleted, CARRIED_OUT),
        (_marks_fall, RISING),
    ],
)
def test_each_property_can_be_violated(change: Change, claim: Property) -> None:
    assert changed(change)[claim.name] is Verdict.VIOLATED


def test_an_unchanged_run_exercises_and_holds_every_property() -> None:
    verdicts = changed(lambda row: row)
    assert {verdicts[claim.name] for claim in REPLICATION} == {Verdict.HOLDS}


def test_a_run_without_messages_says_nothing_of_them() -> None:
    result = simulate(cluster(), variant="hardened", seed=1)
    found = {each.claim.name: each.verdict for each in result.judgement.findings}
    assert found[ONE_LEADER.name] is found[UNCHANGED.name] is Verdict.UNKNOWN


def test_a_new_leader_that_begins_lower_is_counted() -> None:
    """It does so by design: a follower learns of the high watermark one fetch later."""
    found = simulate("group-reads-replicas", variant="hardened", seed=0).judgement.findings
    [rising] = [each for each in found if each.claim is RISING]
    assert rising.verdict is Verdict.HOLDS
    assert rising.evidence.endswith("; a new leader began lower 1 time")


# --- what was compacted ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("epoch", "seen"),
    [(1, (1, 7)), (2, (1, 7)), (0, (0, NO_NUMBER))],
    ids=["its own epoch", "the epoch of the next message", "an epoch before it"],
)
def test_a_compacted_message_is_what_was_there_before(epoch: int, seen: tuple[int, int]) -> None:
    """A replica knows the epoch of the next message alone, which is that one or a later one."""
    known = PartitionHistory("main", Partition("__consumer_offsets", "0"))
    known.logs["broker/0"] = [(1, 7)]

    assert known.entry_at(0, epoch, NO_NUMBER) == seen
    assert known.entry_at(0, epoch, 8) == (epoch, 8)
    assert known.entry_at(1, epoch, NO_NUMBER) == (epoch, NO_NUMBER)
