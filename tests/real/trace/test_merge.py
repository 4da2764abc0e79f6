"""Where the writes of a live run are placed among the events of its members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Row
from watchkeeper.real.trace.merge import merged
from watchkeeper.real.trace.write_events import CommittedEvent

ONE, TWO = 1, 2
"""Two sessions; the members have the same numbers."""


def row(at_us: int, session: int, kind: str, zxid: int = 0, **detail: Any) -> Row:
    return (at_us, f"group/{session}", kind, session, "group", "", "", zxid, detail)


def request(session: int, asked_us: int, answered_us: int, zxid: int, answer: Any) -> list[Row]:
    """A request that writes, and its answer."""
    return [
        row(asked_us, session, EventKind.REQUEST, op="create", path="/claim"),
        row(answered_us, session, EventKind.RESPONSE, zxid, op="create", answer=answer),
    ]


def placed(tmp_path: Path, rows: list[Row], *writes: tuple[int, int, int]) -> dict[int, int]:
    """Zxid -> its time in the trace; a write is a zxid, a session and the time known so far."""
    connected = [row(0, session, EventKind.CONNECTED, at="", new=True) for session in (ONE, TWO)]
    ended = row(1_000_000, 0, EventKind.RUN_ENDED)
    committed = [
        CommittedEvent(zxid, session, at_us, EventKind.APPLIED, {})
        for zxid, session, at_us in writes
    ]
    found = merged([*connected, *rows, ended], tmp_path, {"": committed}, {})
    return {row[7]: row[0] for row in found if row[2] == EventKind.APPLIED}


def test_a_write_lies_between_its_request_and_its_answer(tmp_path: Path) -> None:
    """The log of a server has only milliseconds."""
    rows = [
        *request(ONE, 1_300, 1_900, 1, "/claim"),
        *request(TWO, 2_100, 2_400, 2, "/claim"),
    ]

    assert placed(tmp_path, rows, (1, ONE, 1_000), (2, TWO, 3_000)) == {1: 1_300, 2: 2_400}


@pytest.mark.parametrize("error", ["ConnectionLoss", "SessionExpired"])
def test_a_write_whose_reply_was_lost_is_not_moved_to_the_next_request(
    error: str, tmp_path: Path
) -> None:
    """Its client asks again later; meanwhile others have written and acted on that."""
    rows = [
        *request(ONE, 1_000, 2_000, 9, {"error": error}),  # the last zxid of its client
        *request(TWO, 3_000, 4_000, 11, "/claim"),
        *request(ONE, 70_000, 80_000, 12, "/claim"),
    ]

    found = placed(tmp_path, rows, (10, ONE, 1_500), (11, TWO, 3_500), (12, ONE, 60_000))

    assert found == {10: 1_500, 11: 3_500, 12: 70_000}
