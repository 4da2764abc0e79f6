"""The command `explore-offsets`."""

from __future__ import annotations

import pytest

from watchkeeper.cli.main import run_command


def run(*words: str) -> int:
    """Run the command, and return its exit code."""
    return run_command(["explore-offsets", *words])


def test_quiet_prints_the_first_line_only(capsys: pytest.CaptureFixture[str]) -> None:
    """It has the bounds, in correct English, and the verdict."""
    assert run("--quiet", "--commits", "1", "--epochs", "1") == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line == "offsets in Kafka, kafka_08, 1 member, 1 commit, 1 epoch: holds"


@pytest.mark.parametrize("fault", ["moved", "deposed"])
def test_a_fault_that_elects_needs_a_second_epoch(
    fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one epoch it would have no effect."""
    assert run("--epochs", "1", "--fault", fault) == 4
    assert f"--fault {fault} has no effect with --epochs 1" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--max-seconds", "--max-memory"])
@pytest.mark.parametrize("number", ["nan", "inf"])
def test_a_limit_is_finite(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Another one would have no effect."""
    assert run(option, number) == 4
    assert f"{number} is not a finite number" in capsys.readouterr().err
