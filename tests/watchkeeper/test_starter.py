"""What `watchkeeper init` writes: it runs as it is, and nothing is overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from watchkeeper import simulate
from watchkeeper.cli.main import run_command

pytest_plugins = ["pytester"]


def test_the_scenario_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it says, and with a fault that has an effect."""
    assert run_command(["init", str(tmp_path / "mine")]) == 0
    names = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert names == ["first.yaml", "test_first.py"]
    result = simulate(tmp_path / "mine" / "first.yaml")
    assert result.met
    assert [effect.counts["processes killed"] for effect in result.effects[1:]] == [1]


def test_the_test_passes(pytester: pytest.Pytester) -> None:
    """Where it was written, without more."""
    assert run_command(["init", str(pytester.path)]) == 0
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=20)


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither is the other file written then."""
    (tmp_path / "test_first.py").write_text("mine")
    assert run_command(["init", str(tmp_path)]) == 4
    assert "test_first.py is there already; choose another folder" in capsys.readouterr().err
    assert (tmp_path / "test_first.py").read_text() == "mine"
    assert not (tmp_path / "first.yaml").exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file stands in its place."""
    (tmp_path / "file").write_text("")
    assert run_command(["init", str(tmp_path / "file" / "folder")]) == 4
    assert "first.yaml" in capsys.readouterr().err
