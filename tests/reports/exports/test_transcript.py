"""A trace as a transcript."""

from __future__ import annotations

import pytest

from watchkeeper import simulate
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Header, Row, Trace
from watchkeeper.reports.exports.transcript import LEFT_OUT, Mark, transcript


def row(t_us: int, node: str, kind: str, zxid: int = 0, **detail: object) -> Row:
    """An event."""
    return (t_us, node, kind, 7, "", "", "", zxid, detail)


def trace_of(*rows: Row) -> Trace:
    """A trace of these events."""
    return Trace(Header("a test", "random", "virtual", 0), list(rows))


def told(*rows: Row) -> list[str]:
    """The lines of a transcript, with single spaces."""
    return [" ".join(line.split()) for line in transcript(trace_of(*rows)).splitlines()]


DELETE = {"op": "delete", "path": "/a", "purpose": "delete"}
ANSWER = {"op": "delete", "purpose": "delete", "answer": "ok"}
CONNECTED = row(1, "ann", EventKind.CONNECTED, at="zookeeper/1", new=True)


def test_a_request_is_a_line_with_its_answer_and_its_code() -> None:
    """At the moment at which it was sent."""
    lines = told(
        CONNECTED,
        row(5, "ann", EventKind.REQUEST, **DELETE, line='job.py:3: zk.delete("/a")'),
        row(
            6, "zookeeper/1", EventKind.APPLIED, 9, **DELETE, by="ann", did=[["deleted", "/a", 7]]
        ),
        row(8, "ann", EventKind.RESPONSE, 9, **ANSWER),
    )
    assert lines == [
        "0.000001 s ann connects to zookeeper/1 with a new session",
        '0.000005 s ann delete /a: ok job.py:3: zk.delete("/a")',
    ]


def test_a_lost_answer_is_not_the_answer_to_the_second_attempt() -> None:
    """The first delete took effect; the answer that comes is that of the second one."""
    lines = told(
        CONNECTED,
        row(5, "ann", EventKind.REQUEST, **DELETE),
        row(
            6, "zookeeper/1", EventKind.APPLIED, 9, **DELETE, by="ann", did=[["deleted", "/a", 7]]
        ),
        row(7, "ann", EventKind.SUSPENDED, why="the answer was lost on purpose"),
        row(9, "ann", EventKind.CONNECTED, at="zookeeper/1", new=False),
        row(10, "ann", EventKind.REQUEST, **DELETE),
        row(11, "zookeeper/1", EventKind.REFUSED, 10, **DELETE, by="ann", error="NoNode"),
        row(12, "ann", EventKind.RESPONSE, 10, **{**ANSWER, "answer": {"error": "NoNode"}}),
    )
    assert lines[1:] == [
        "0.000005 s ann delete /a: takes effect, and its answer is lost",
        "0.000007 s ann loses its connection: the answer was lost on purpose",
        "0.000009 s ann connects to zookeeper/1 with its session",
        "0.000010 s ann delete /a: NoNode",
    ]


def test_an_effect_belongs_to_the_write_and_not_to_a_later_read() -> None:
    """A server answers both with one zxid: that of the last write that it knows."""
    create = {"op": "create", "path": "/a-", "purpose": "create"}
    read = {"op": "exists", "path": "/a-", "purpose": "exists"}
    made = [["created", "/a-0000000007", 0, ""]]
    lines = told(
        CONNECTED,
        row(5, "ann", EventKind.REQUEST, **create),
        row(6, "zookeeper/1", EventKind.APPLIED, 9, **create, by="ann", did=made),
        row(7, "ann", EventKind.RESPONSE, 9, op="create", purpose="create", answer="ok"),
        row(8, "ann", EventKind.REQUEST, **read),
        row(9, "ann", EventKind.RESPONSE, 9, op="exists", purpose="exists", answer="ok"),
    )
    assert lines[1:] == [
        "0.000005 s ann create /a-: /a-0000000007",
        "0.000008 s ann exists /a-: ok",
    ]


def test_what_a_process_repeats_is_one_line() -> None:
    """Others may do something in between; the same process may not."""
    polls = [row(at, "ann", "looked", at="nothing") for at in (1, 2, 4)]
    lines = told(*polls[:2], row(3, "bob", "sat"), polls[2], row(5, "ann", "sat"))

    assert lines == [
        "0.000001 s ann looked: at nothing (3 times, until 0.000004 s)",
        "0.000003 s bob sat",
        "0.000005 s ann sat",
    ]


def test_a_fault_has_its_aim_and_its_effects() -> None:
    """Where it begins, and where it ends."""
    fault = {"verb": "drop_next_reply", "number": 0}
    lines = told(
        row(1, "zookeeper", EventKind.FAULT, **fault, lasts=True, path="/a"),
        row(2, "zookeeper", EventKind.FAULT_ENDED, **fault, effects={"replies lost": 1}),
    )
    assert lines == [
        "0.000001 s zookeeper fault: drop next reply (path /a)",
        "0.000002 s zookeeper fault: drop next reply ends (1 replies lost)",
    ]


def test_a_mark_stands_after_what_has_happened_until_then() -> None:
    """And one of the end at the end."""
    trace = trace_of(row(1, "ann", "sat"), row(2, "bob", "sat"), row(3, "ann", "rose"))
    text = transcript(trace, [Mark(9, "the end"), Mark(2, "both sat")])

    assert [line.split("s  ")[1] for line in text.splitlines()] == [
        *("ann  sat", "bob  sat", ">>> both sat", "ann  rose", ">>> the end"),
    ]


@pytest.mark.parametrize("scenario", ["gc-pause-zombie", "connection-loss-mid-claim"])
def test_every_event_of_a_run_has_its_line(scenario: str) -> None:
    """Requests, and every event of a kind that is not left out, are there or counted."""
    trace = simulate(scenario, variant="kafka_08", seed=0).trace
    lines = transcript(trace).splitlines()
    counts = [
        int(line.rpartition("(")[2].split(" times")[0]) if " times, until" in line else 1
        for line in lines
    ]
    wanted = sum(
        1 for event in trace if event.kind == EventKind.REQUEST or event.kind not in LEFT_OUT
    )
    assert sum(counts) == wanted
    moments = [float(line.split(" s ")[0]) for line in lines]
    assert moments == sorted(moments)
