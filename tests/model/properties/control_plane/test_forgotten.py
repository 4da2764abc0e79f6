"""Brokers that forget what they knew to be committed, and leaders that are not found.

Each is a bug of Kafka that is put back, in a timeline in which one property shows it.
"""

from __future__ import annotations

import pytest
from bench.control_plane_bugs import controllers, replicas
from bench.control_plane_bugs.mutant import Mutant

from tests.model.properties.control_plane.test_work import DETAIL, KIND, NODE, Row, finding
from watchkeeper import simulate
from watchkeeper.model.properties.control_plane.brokers import HANDED_OVER
from watchkeeper.model.properties.control_plane.leaders import NO_DEAD_LEADERS
from watchkeeper.model.properties.control_plane.marks import MARKS
from watchkeeper.model.properties.verdicts import Property, Verdict
from watchkeeper.model.trace.kinds import EventKind

BUGS: dict[str, Mutant] = {one.name: one for one in (*controllers.BUGS, *replicas.BUGS)}


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("KAFKA-858", MARKS),
        ("KAFKA-1647", MARKS),
        ("KAFKA-999", HANDED_OVER),
        ("KAFKA-705", HANDED_OVER),
    ],
)
def test_a_bug_violates_one_property(name: str, claim: Property) -> None:
    """Beside what 0.8.2.2 violates in that replay: a dead broker may go on to lead by name."""
    bug = BUGS[name]
    replay = bug.scenarios[0]
    usual = set(simulate(replay, variant=bug.variant, seed=1).judgement.violated())
    assert usual <= {NO_DEAD_LEADERS.name}
    with bug.apply():
        found = set(simulate(replay, variant=bug.variant, seed=1).judgement.violated())
    assert found - usual == {claim.name}


@pytest.mark.parametrize(
    ("is_host_lost", "verdict"), [(False, Verdict.VIOLATED), (True, Verdict.UNKNOWN)]
)
def test_only_a_host_that_is_lost_may_forget(is_host_lost: bool, verdict: Verdict) -> None:
    """A broker opens each replica twice, with a lower high watermark."""
    result = simulate("rolling-restart-by-kill", variant="hardened", seed=1)
    rows = [new for row in result.trace.rows for new in _twice(row, is_host_lost)]
    assert finding(result, MARKS, rows).verdict is verdict


def _twice(row: Row, is_host_lost: bool) -> list[Row]:
    if row[KIND] != EventKind.REPLICA_OPENED:
        return [row]
    high, low = (
        (*row[:DETAIL], {**row[DETAIL], "high_watermark": mark}, *row[DETAIL + 1 :])
        for mark in (9, 0)
    )
    lost = {"verb": "crash_host", "number": 99, "for_us": 0, "lasts": False}
    loss = (row[0], row[NODE], EventKind.FAULT, 0, "", "", "", 0, lost)
    return [high, loss, low] if is_host_lost else [high, low]
