"""Progress of long commands where standard error is no terminal: few lines, not none."""

from __future__ import annotations

import pytest

from watchkeeper.console import progress
from watchkeeper.console.progress import VARIABLE, ProgressLine

LONG_S = 1e9
"""No machine is so busy that this passes."""


def test_a_line_is_written_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends as a line, and the next one waits for its time."""
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(progress, "SPARSE_S", LONG_S)

    with ProgressLine(every_s=0.5) as line:
        assert not line.is_due
        line.say("too soon")
        line.due_s = 0.0
        assert line.is_due
        line.say("half done")
        assert not line.is_due
        line.say("too soon again")

    assert line.every_s == LONG_S
    assert capsys.readouterr().err == "half done\n"


def test_the_environment_turns_progress_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0")

    with ProgressLine() as line:
        line.due_s = 0.0
        assert not line.is_due
        line.say("half done")

    assert capsys.readouterr().err == ""
