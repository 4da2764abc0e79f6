"""The picture of reassignments, and the steps that it shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sim.test_replication import LOAD, cluster, moved
from watchkeeper import Result, simulate
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports import pictures_of, write_reassignment_png
from watchkeeper.reports.facts.control_plane.leaders import leaders
from watchkeeper.reports.facts.control_plane.reassignments import (
    NO_CONTROLLER,
    Move,
    MoveStep,
    Outcome,
    moves,
)
from watchkeeper.reports.facts.control_plane.replica_logs import leader_logs, log_ends
from watchkeeper.reports.reassignment import layout
from watchkeeper.reports.reassignment.layout import IN_SYNC, LEADS, Lag
from watchkeeper.reports.reassignment.png import step_lines
from watchkeeper.reports.reassignment.wording import headline, route, summary

REQUEST = "/admin/reassign_partitions"


def steps(move: Move) -> list[tuple[str, int | None]]:
    """The steps of a move, each with its broker."""
    return [(taken.step.value, taken.broker) for taken in move.steps]


@pytest.fixture(scope="module")
def plain() -> Result:
    """A partition moves from brokers 0 and 1 to brokers 2 and 3."""
    return simulate(cluster(LOAD, moved("6s", [2, 3]), brokers=4), variant="hardened", seed=1)


@pytest.fixture(scope="module")
def resumed() -> Result:
    """The controller, which is a target, dies after the first write and restarts later."""
    return simulate("partition-moves-controller-crashes", variant="hardened", seed=0)


# --- steps ---------------------------------------------------------------------------------


def test_every_step_of_a_move(plain: Result) -> None:
    [move] = moves(plain.trace)

    assert (move.partition, move.old, move.targets) == (Partition("clicks", "0"), (0, 1), (2, 3))
    found = steps(move)
    assert found[:3] == [("requested", None), ("assignment grows", None), ("begun", None)]
    assert sorted(found[3:5]) == [("joins the ISR", 2), ("joins the ISR", 3)]
    assert found[5:8] == [("leads", 2), ("leaves the ISR", 0), ("leaves the ISR", 1)]
    assert sorted(found[8:], key=str) == [
        ("assignment shrinks", None),
        *(("replica deleted", broker) for broker in (0, 1)),
        ("request removed", None),
    ]
    moments = [taken.t_us for taken in move.steps]
    assert moments == sorted(moments)
    assert move.outcome is Outcome.COMPLETE
    assert move.until_us == next(
        taken.t_us for taken in move.steps if taken.step is MoveStep.REMOVED
    )


def test_each_step_names_the_process_that_took_it(plain: Result) -> None:
    """The operator requests, the leader changes the ISR, the controller does the rest."""
    [move] = moves(plain.trace)
    by = {taken.step: taken.by for taken in move.steps}
    [controller] = {span.what.replace(" ", "/") for span in leaders(plain.trace).reigns}

    assert by[MoveStep.REQUESTED] == "operator"
    assert by[MoveStep.JOINED] == "broker/0"
    for step in (MoveStep.GROWN, MoveStep.BEGUN, MoveStep.LED, MoveStep.LEFT, MoveStep.SHRUNK):
        assert by[step] == controller
    assert move.controllers == [controller]


@pytest.mark.parametrize(
    ("kind", "path", "lost"),
    [
        (EventKind.REASSIGNING, "", "begun"),
        (EventKind.REPLICA_DELETED, "", "replica deleted"),
        (EventKind.APPLIED, "/brokers/topics/clicks", "assignment grows"),
        (EventKind.APPLIED, "/brokers/topics/clicks/partitions/0/state", "joins the ISR"),
        (EventKind.APPLIED, "/brokers/topics/clicks/partitions/0/state", "leads"),
        (EventKind.APPLIED, REQUEST, "request removed"),
    ],
)
def test_a_step_that_was_not_taken_is_not_shown(
    plain: Result, kind: EventKind, path: str, lost: str
) -> None:
    """Each step comes from an event of its own: a trace without it has no such step."""
    [whole] = moves(plain.trace)
    assert lost in dict(steps(whole))

    [cut] = moves(without(plain.trace, kind, path, whole.begin_us))

    assert lost not in dict(steps(cut))
    if lost == "request removed":
        assert cut.outcome is Outcome.UNFINISHED


def without(trace: Trace, kind: EventKind, path: str, after_us: int) -> Trace:
    """A trace without the events of a kind, or without writes of one path, after a moment."""
    rows = [
        row
        for row in trace.rows
        if row[2] != kind
        or row[0] <= after_us
        or (path and all(change[1] != path for change in row[-1]["did"]))
    ]
    return Trace(trace.header, rows)


def test_a_successor_goes_on(resumed: Result) -> None:
    [move] = moves(resumed.trace)
    found = steps(move)

    assert move.controllers == ["broker/3", "broker/1"]
    assert found.index(("assignment grows", None)) < found.index(("resumed", None))
    assert ("sent again", None) in found
    assert move.outcome is Outcome.COMPLETE
    assert "the controllers were broker/3 and broker/1" in headline(move)


def test_a_dead_target_and_a_missing_controller_are_stalls(resumed: Result) -> None:
    """The target is dead from the end of its session until it registers again."""
    [move] = moves(resumed.trace)
    stalls = {span.what: span for span in move.stalls}

    assert set(stalls) == {NO_CONTROLLER, "3"}
    dead = stalls["3"]
    assert (dead.start_us // 10**6, dead.end_us // 10**6) == (7, 15)
    joined = next(taken for taken in move.steps if taken.broker == 3)
    assert dead.end_us < joined.t_us
    assert stalls[NO_CONTROLLER].end_us < next(
        taken.t_us for taken in move.steps if taken.step is MoveStep.RESUMED
    )


def test_a_dropped_move_leaves_its_replicas() -> None:
    """0.8.2.2 drops a request at failover if a target is dead (KAFKA-4214)."""
    result = simulate("partition-moves-controller-crashes", variant="kafka_08", seed=0)
    [move] = moves(result.trace)

    assert move.outcome is Outcome.DROPPED
    assert move.assigned == (2, 3, 0, 1)
    assert "dropped after" in headline(move)
    assert "the assignment names 2, 3, 0, 1" in headline(move)


def test_a_refused_move_and_the_next_one() -> None:
    result = simulate("partition-moves-to-dead-broker", variant="hardened", seed=0)
    refused, done = moves(result.trace)

    assert steps(refused) == [("requested", None), ("refused", None), ("request removed", None)]
    assert refused.steps[1].why == "the brokers [3] are not alive"
    assert (refused.outcome, done.outcome) == (Outcome.REFUSED, Outcome.COMPLETE)
    assert "1 complete. 1 refused." in summary([refused, done], 20)


def test_a_replica_may_be_deleted_long_after_the_request() -> None:
    result = simulate("partition-moves-broker-down", variant="hardened", seed=0)
    [move] = moves(result.trace)

    late = move.steps[-1]
    assert (late.step, late.broker) == (MoveStep.DELETED, 1)
    assert late.t_us - move.until_us > 1_000_000
    from_us, to_us = layout.window(move, result.trace.end_us)
    assert from_us < move.begin_us < move.until_us < to_us < late.t_us


def test_more_moves_than_a_trace_holds_the_data_of() -> None:
    """Requests and assignments are cut in the trace; the controller says which is which."""
    rows = [
        {"topic": "clicks", "partition": at, "replicas": [(at + 2) % 5, (at + 3) % 5]}
        for at in range(12)
    ]
    request = {
        "at": "5s",
        "write_znode": REQUEST,
        "data": json.dumps({"version": 1, "partitions": rows}),
    }
    timeline = [request, {"at": "5020ms", "crash": "controller"}]
    result = simulate(cluster(*timeline, brokers=5, partitions=12), variant="hardened", seed=1)
    found = moves(result.trace)

    assert [int(move.partition.name) for move in found] == list(range(12))
    assert {move.begin_us for move in found} == {found[0].begin_us}
    assert [move.targets for move in found] == [tuple(row["replicas"]) for row in rows]
    for move in found:
        grown = [taken for taken in move.steps if taken.step is MoveStep.GROWN]
        assert [taken.by for taken in grown] == [move.controllers[0]]
        assert move.outcome is (Outcome.UNFINISHED if 2 in move.targets else Outcome.COMPLETE)
        assert move.has(MoveStep.SHRUNK) is (move.outcome is Outcome.COMPLETE)


# --- the picture ---------------------------------------------------------------------------


def test_new_replicas_catch_up(plain: Result) -> None:
    """The lag begins with all that the leader has, and is nothing when a replica joins."""
    [move] = moves(plain.trace)
    log = leader_logs(plain.trace)[move.partition]
    ends = log_ends(plain.trace)[move.partition]
    for broker in move.targets:
        joined = layout.joined_us(move, broker)
        behind = layout.lags(log, ends[broker], joined)
        assert behind[0].records == log.end
        assert behind[-1].records == 0
        assert behind[-1].t_us <= joined < move.until_us


def test_a_lag_rises_while_the_leader_appends() -> None:
    result = simulate("partition-moves", variant="hardened", seed=0)
    log = leader_logs(result.trace)[Partition("clicks", "0")]
    first = log_ends(result.trace)[Partition("clicks", "0")][1]
    behind = layout.lags(log, first, 5_000_000)

    assert {lag.records for lag in behind} >= {0, 1}
    assert behind == [Lag(*lag) for lag in sorted(behind)]


def test_the_lanes_of_replicas(plain: Result) -> None:
    [move] = moves(plain.trace)
    [one] = leaders(plain.trace).partitions
    parts = {broker: layout.parts_of(one, broker) for broker in move.replicas}

    assert [part.what for part in parts[0]] == [LEADS, IN_SYNC]
    assert [part.what for part in parts[1]] == [IN_SYNC]
    assert [part.what for part in parts[2]] == [IN_SYNC, LEADS]
    assert [part.what for part in parts[3]] == [IN_SYNC]
    assert parts[0][0].end_us == parts[2][1].start_us
    ends = log_ends(plain.trace)[move.partition]
    end_us = plain.trace.end_us
    assert layout.holds(ends[0], end_us)[0].end_us < move.until_us
    assert layout.holds(ends[2], end_us)[0].end_us == end_us


def test_the_assignment_lane(plain: Result) -> None:
    [move] = moves(plain.trace)
    parts = layout.assignments(move, plain.trace.end_us)
    assert [part.what for part in parts] == ["0, 1", "2, 3, 0, 1", "2, 3"]
    assert route(move) == "from 0, 1 to 2, 3"


def test_steps_are_listed_with_their_numbers(plain: Result) -> None:
    [move] = moves(plain.trace)
    lines = step_lines(move)
    assert len(lines) == len(move.steps)
    assert lines[0].startswith("1  6.")
    assert lines[0].endswith(" s  operator requests it")


def test_close_steps_share_a_flag() -> None:
    assert layout.flags([0.0, 0.05, 0.1, 2.0], lambda text: 0.1 * len(text)) == [
        (0.0, "1–3"),
        (2.0, "4"),
    ]


def test_the_picture_is_drawn_where_partitions_move(plain: Result, tmp_path: Path) -> None:
    assert "reassignment.png" in pictures_of(plain.trace)
    still: dict[str, Any] = cluster(LOAD)
    assert "reassignment.png" not in pictures_of(simulate(still, variant="hardened").trace)
    first = (tmp_path / write_reassignment_png(plain.trace, tmp_path)).read_bytes()
    second = (tmp_path / write_reassignment_png(plain.trace, tmp_path)).read_bytes()
    assert first == second
    assert first.startswith(b"\x89PNG")
