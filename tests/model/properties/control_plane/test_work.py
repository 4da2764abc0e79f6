"""What controllers overwrite and what they cost: each property has a run that violates it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.endless_reigns import endless_reigns
from watchkeeper import Result, simulate
from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.properties.control_plane.costs import CONTROLLER_WORK
from watchkeeper.model.properties.control_plane.updates import NO_LOST_UPDATES
from watchkeeper.model.properties.verdicts import Finding, Property, Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace

Row = tuple[Any, ...]
KIND, NODE, DETAIL = 2, 1, 8
OF_ALL_KINDS = "partition-moves"
"""A scenario in which a controller writes states, sends requests, and replaces an assignment."""


def finding(result: Result, claim: Property, rows: list[Row] | None = None) -> Finding:
    """Return what is found of a property in a run, or with these rows in place of its own."""
    trace = result.trace if rows is None else Trace(result.trace.header, rows)
    [found] = [
        each for each in judge(result.plan, trace, result.effects).findings if each.claim is claim
    ]
    return found


@pytest.fixture(scope="module")
def good() -> Result:
    """A run that holds."""
    return simulate(OF_ALL_KINDS, variant="hardened", seed=1)


# --- lost updates ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "verdict"), [("kafka_08", Verdict.VIOLATED), ("hardened", Verdict.HOLDS)]
)
def test_a_controller_that_writes_what_it_remembers_loses_partitions(
    variant: str, verdict: Verdict
) -> None:
    result = simulate("partitions-added-during-move", variant=variant, seed=1)
    assert finding(result, NO_LOST_UPDATES).verdict is verdict


def _without_reads(rows: list[Row]) -> Iterator[Row]:
    """No read is answered."""
    for row in rows:
        is_read = row[KIND] == EventKind.RESPONSE and row[DETAIL]["op"] in ("get", "pipelined")
        if not is_read or not row[NODE].startswith("broker"):
            yield row


def _with_cut_reads(rows: list[Row]) -> Iterator[Row]:
    """The trace has cut each answer to a batch."""
    for row in rows:
        if row[KIND] == EventKind.RESPONSE and row[DETAIL]["op"] == "pipelined":
            yield (*row[:DETAIL], {**row[DETAIL], "answer": ["and 9 more"]})
        else:
            yield row


@pytest.mark.parametrize(
    ("change", "verdict"),
    [(_without_reads, Verdict.VIOLATED), (_with_cut_reads, Verdict.HOLDS)],
)
def test_what_was_never_read_is_lost(
    change: Callable[[list[Row]], Iterator[Row]], verdict: Verdict, good: Result
) -> None:
    """A batch of which the trace does not have all may have read it."""
    changed = list(change(good.trace.rows))
    assert finding(good, NO_LOST_UPDATES, changed).verdict is verdict


def test_a_run_in_which_nothing_is_replaced_says_nothing_of_it() -> None:
    result = simulate("topic-deleted", variant="hardened", seed=1)
    assert finding(result, NO_LOST_UPDATES).verdict is Verdict.UNKNOWN


# --- costs -----------------------------------------------------------------------------


def _is_write(row: Row) -> bool:
    return row[KIND] == EventKind.APPLIED and row[DETAIL]["purpose"] == "write state"


def _is(kind: EventKind) -> Callable[[Row], bool]:
    return lambda row: row[KIND] == kind


@pytest.mark.parametrize(
    ("repeated", "times", "what"),
    [
        (_is(EventKind.CONTROLLER_ELECTED), 30, "reigns"),
        (_is(EventKind.CONTROL_SENT), 100, "requests"),
        (_is_write, 100, "writes"),
    ],
    ids=["reigns", "requests", "writes"],
)
def test_work_without_a_cause_is_found(
    repeated: Callable[[Row], bool], times: int, what: str, good: Result
) -> None:
    rows = [row for row in good.trace.rows for _ in range(times if repeated(row) else 1)]
    found = finding(good, CONTROLLER_WORK, rows)
    assert found.verdict is Verdict.VIOLATED
    assert found.shape == f"controllers make more {what} than the causes need"


def test_reigns_that_end_each_other_are_found() -> None:
    """Each of the shipped controllers meets a request that ends its reign."""
    result = simulate(endless_reigns(), variant="kafka_08", seed=1)
    assert finding(result, CONTROLLER_WORK).verdict is Verdict.VIOLATED


def test_the_evidence_has_the_counts(good: Result) -> None:
    found = finding(good, CONTROLLER_WORK)
    assert found.verdict is Verdict.HOLDS
    assert found.evidence.startswith("on 1 occasion; 1 reign, ")
