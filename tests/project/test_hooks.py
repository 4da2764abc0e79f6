"""The hook for pre-commit and the action for jobs: the commands that they run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from watchkeeper.run.starter import SCENARIO

HOME = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((HOME / "action.yml").read_text())
[HOOK] = yaml.safe_load((HOME / ".pre-commit-hooks.yaml").read_text())
COMMANDS = Path(sys.executable).parent
VIOLATED = SCENARIO.replace("holds", "{violated: [single ownership]}")


def done(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder, with the commands of this environment."""
    path = f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"
    settings = {**os.environ, "PATH": path, **more}
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True)


def steps(folder: Path, **inputs: str) -> dict[str, subprocess.CompletedProcess[str]]:
    """The steps of the action that are commands, but for the installation, as a job runs them."""
    values = {name: about["default"] for name, about in ACTION["inputs"].items()} | inputs
    ended = {}
    for step in ACTION["runs"]["steps"]:
        if "run" not in step or step["name"] == "Install":
            continue
        given = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: values[found[1]], text)
            for name, text in step["env"].items()
        }
        given["GITHUB_STEP_SUMMARY"] = str(folder / "summary.md")
        ended[step["name"]] = done(
            ["bash", "-eo", "pipefail", "-c", step["run"]], folder, **given
        )
    return ended


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with two scenarios."""
    (tmp_path / "scenarios").mkdir()
    for name in ("first", "second"):
        (tmp_path / "scenarios" / f"{name}.yaml").write_text(SCENARIO)
    return tmp_path


@pytest.mark.slow
def test_the_action_runs_each_scenario(checkout: Path) -> None:
    """All hold: a line for each, and nothing is kept."""
    ended = steps(checkout)
    assert [one.returncode for one in ended.values()] == [0, 0]
    assert (
        ended["Run"].stdout.splitlines()
        == ["first, hardened, simulated, seed 0: holds, as expected"] * 2
    )
    assert not list((checkout / "runs").iterdir())
    assert not (checkout / "summary.md").exists()


def test_the_action_keeps_what_fails(checkout: Path) -> None:
    """With its pages, an annotation and a part of the summary; the others still run."""
    (checkout / "scenarios" / "first.yaml").write_text(VIOLATED)
    ended = steps(checkout, options="--seed 3")["Run"]
    assert ended.returncode == 1, ended.stderr
    assert "::error file=scenarios/first.yaml::first, hardened" in ended.stdout
    assert "seed 3: holds, as expected" in ended.stdout
    [kept] = (checkout / "runs").iterdir()
    assert (kept / "latest" / "index.html").exists()
    assert "first, hardened" in (checkout / "summary.md").read_text()


def test_the_action_stops_at_a_file_that_is_not_valid(checkout: Path) -> None:
    """The step says which one."""
    (checkout / "scenarios" / "first.yaml").write_text("name: first\n")
    ended = steps(checkout)["Validate"]
    assert ended.returncode == 4
    assert "scenarios/first.yaml:1: a scenario needs `clusters`" in ended.stderr


def test_the_action_installs_the_checkout_it_is_in() -> None:
    """Not another version."""
    [install] = [step for step in ACTION["runs"]["steps"] if step.get("name") == "Install"]
    assert install["run"] == 'pip install "$GITHUB_ACTION_PATH"'


def test_the_hook(checkout: Path) -> None:
    """It gets the names of changed files that are scenarios."""
    changed = [
        name
        for name in ("scenarios/first.yaml", "scenarios/second.yaml", "setup.yaml", "a.py")
        if re.search(HOOK["files"], name)
    ]
    assert changed == ["scenarios/first.yaml", "scenarios/second.yaml"]
    assert done([*HOOK["entry"].split(), *changed], checkout).returncode == 0
    (checkout / "scenarios" / "second.yaml").write_text("name: second\n")
    failed = done([*HOOK["entry"].split(), *changed], checkout)
    assert failed.returncode == 4
    assert failed.stderr.startswith("scenarios/second.yaml:1: ")
