"""The picture of the sections of a test in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Header, Row, Trace
from watchkeeper.reports import pictures_of, write_all
from watchkeeper.reports.facts.sections import sections
from watchkeeper.reports.ownership.ownership import board
from watchkeeper.reports.ownership.wording import SECTIONS


def row(t_us: int, node: str, kind: str, session: int = 0, **detail: Any) -> Row:
    """An event."""
    return (t_us, node, kind, session, "", "", "", 0, detail)


def enters(t_us: int, node: str, *, most: int = 1, session: int = 0, **more: Any) -> Row:
    """A thread enters the section."""
    return row(t_us, node, EventKind.ENTERED, session, section="work", most=most, **more)


def leaves(t_us: int, node: str, **more: Any) -> Row:
    """It leaves it."""
    return row(t_us, node, EventKind.LEFT, section="work", **more)


def trace_of(*rows: Row) -> Trace:
    """A trace of these events, with their processes."""
    names = sorted({each[1] for each in rows})
    begins = [row(0, name, EventKind.STARTED) for name in names]
    end = row(max(each[0] for each in rows) + 10, "", EventKind.RUN_ENDED)
    return Trace(Header("a test", "random", "virtual", 7), [*begins, *rows, end])


def test_a_section_of_one_is_one_row() -> None:
    """Two at once are a breach; one after the other are none."""
    apart = board(trace_of(enters(10, "a"), leaves(20, "a"), enters(20, "b"), leaves(30, "b")))
    both = board(trace_of(enters(10, "a"), enters(15, "b"), leaves(20, "a"), leaves(30, "b")))

    assert [each.place.partition for each in (*apart.rows, *both.rows)] == ["work", "work"]
    assert not apart.rows[0].breaches
    (breach,) = both.rows[0].breaches
    assert (breach.members, breach.span.start_us, breach.span.end_us) == (("a", "b"), 15, 20)
    assert breach.is_split
    assert apart.summary == "No section ever had too many inside."
    assert both.summary == "Too many inside once, for 5 us."


def test_a_section_of_two_has_a_row_for_each_thread() -> None:
    """Three of them are too many, in all three rows, and once in the sentence."""
    rows = [enters(at, name, most=2) for at, name in ((10, "a"), (20, "b"), (30, "c"))]
    shown = board(trace_of(*rows[:2], leaves(30, "a"), leaves(40, "b")))
    many = board(trace_of(*rows, leaves(40, "a"), leaves(50, "b"), leaves(60, "c")))

    assert not any(each.breaches for each in shown.rows)
    assert [each.place.partition for each in many.rows] == ["a", "b", "c"]
    assert all(len(each.breaches) == 1 for each in many.rows)
    assert many.summary == "Too many inside once, for 10 us."


def test_a_process_that_ends_is_in_no_section() -> None:
    """It was killed within, and never left."""
    (section,) = sections(
        trace_of(enters(10, "a"), row(20, "a", EventKind.ENDED), enters(30, "b"))
    )

    assert [(span.what, span.start_us, span.end_us) for span in section.spans] == [
        ("a", 10, 20),
        ("b", 30, 40),
    ]


def test_a_thread_beside_the_main_one_has_its_own_name() -> None:
    """Two threads of one process are two, and both have its session."""
    trace = trace_of(
        row(1, "a", EventKind.CONNECTED, 5, at="zookeeper/1"),
        enters(10, "a", session=5),
        enters(20, "a", session=5, thread="worker"),
        row(25, "zookeeper/1", EventKind.SESSION_EXPIRED, 5, by="a"),
        leaves(30, "a"),
        leaves(40, "a", thread="worker"),
    )
    (shown,) = board(trace).rows

    assert [span.what for span in shown.fetched] == ["a", "a worker"]
    assert [(each.members, each.zombies) for each in shown.breaches] == [
        (("a", "a worker"), ()),
        (("a", "a worker"), ("a", "a worker")),
        (("a worker",), ("a worker",)),
    ]


def test_a_paused_process_is_inside_and_does_nothing() -> None:
    """The pause is pale, and the other one is alone."""
    fault = {"verb": "pause", "number": 1_000_000}
    trace = trace_of(
        enters(10, "a"),
        row(20, "a", EventKind.FAULT, lasts=True, **fault),
        row(30, "a", EventKind.FAULT_ENDED, **fault),
        leaves(40, "a"),
    )
    (shown,) = board(trace).rows

    assert [(span.start_us, span.end_us) for span in shown.held] == [(20, 30)]
    assert [(span.start_us, span.end_us) for span in shown.fetched] == [(10, 20), (30, 40)]


def test_which_pictures_a_test_in_virtual_time_has(tmp_path: Path) -> None:
    """Those of ownership if something was owned; connections to brokers never."""
    bare = trace_of(row(10, "a", "thought"))
    whole = trace_of(enters(10, "a"), leaves(20, "a"))

    assert pictures_of(bare) == ["spacetime.html"]
    assert pictures_of(whole) == ["ownership.png", "ownership.html", "spacetime.html"]
    assert write_all(whole, tmp_path) == pictures_of(whole)
    page = (tmp_path / "ownership.html").read_text()
    assert SECTIONS.split in page
    assert "partition" not in page.split("<script>")[0]
