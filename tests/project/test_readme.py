"""The README's two commands, to the letter: a copy of the project, an empty HOME, a bare PATH.

The second command would run this very file; its environment has it run a handful
of other tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import HOME
from tests.support.pages.markdown import blocks
from tests.support.pages.output import difference, is_same, normal
from tests.support.pages.session import INSTALLS, commands_of
from tests.support.project_copy import PIP, copy_project, why_no_index

README = HOME / "README.md"
HANDFUL = (
    "tests/model/group/test_settings.py tests/model/group/test_assignment.py "
    "-p no:cacheprovider -k 'range or key'"
)
"""What the second command runs, in place of everything."""

INNER = "WATCHKEEPER_README_RUNS"
LONGEST_S = 1800
KEPT = ("PIP_", "SSL_", "REQUESTS_", "http_", "https_", "no_", "HTTP_", "HTTPS_", "NO_")
"""How this machine reaches packages: what stands in its environment,"""
USER_CONFIG = (".config/pip/pip.conf", ".pip/pip.conf")
"""and in a home that the reader does not have."""


def the_two_commands() -> list[str]:
    """What a sh block of the README installs with."""
    return [
        step.command
        for block in blocks(README.read_text())
        if block.language == "sh"
        for step in commands_of(block)
    ]


def test_there_are_two() -> None:
    """One installs and runs, one installs and tests."""
    run, test = the_two_commands()
    assert run.endswith("watchkeeper run consumer-crash")
    assert test.endswith("python -m pytest -n auto")
    assert all(INSTALLS in command and "\n" not in command for command in (run, test))


Reader = tuple[Path, dict[str, str]]
"""The copy of the project, and the environment."""


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    """A process who has a copy of the project and nothing else."""
    if os.environ.get(INNER):
        pytest.skip("this is the run of the README's second command")
    if why_no_index():
        pytest.skip(why_no_index())
    project, home, programs = (tmp_path / name for name in ("project", "home", "bin"))
    copy_project(project)
    home.mkdir()
    programs.mkdir()
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    python = programs / "python3"
    python.write_text(f'#!/bin/sh\nexec "{base}" "$@"\n')
    python.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    for name in USER_CONFIG:
        if (Path.home() / name).is_file():
            kept.setdefault("PIP_CONFIG_FILE", str(Path.home() / name))
    kept.setdefault("PIP_CACHE_DIR", packages_that_are_here())
    path = f"{programs}:/usr/bin:/bin"
    return project, {**kept, "HOME": str(home), "PATH": path, "LC_ALL": "C.UTF-8", INNER: "1"}


def packages_that_are_here() -> str:
    """Where pip keeps what it has fetched: PySpark alone takes minutes to fetch and to build."""
    process = subprocess.run([*PIP, "cache", "dir"], capture_output=True, text=True, check=False)
    return process.stdout.strip()


def typed(command: str, reader: Reader, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command as the reader."""
    project, environment = reader
    return subprocess.run(
        ["sh", "-c", command],
        cwd=project,
        env={**environment, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )


def shown_below() -> tuple[str, ...]:
    """What the README shows of the first command's output."""
    return next(
        step.shown
        for block in blocks(README.read_text())
        if block.language == "console"
        for step in commands_of(block)
        if step.command == "watchkeeper run consumer-crash"
    )


@pytest.mark.slow
def test_the_first_installs_and_runs(reader: Reader) -> None:
    """It prints what the README shows below it, and leaves the files that it names."""
    done = typed(the_two_commands()[0], reader)
    assert done.returncode == 0, done.stdout + done.stderr
    real = normal(done.stdout)
    begins = next(at for at, line in enumerate(real) if line.startswith("consumer-crash, "))
    shown = normal("\n".join(shown_below()))
    assert is_same(shown, real[begins:]), difference(shown, real[begins:])
    names = [line.split()[-1] for line in real if "runs/consumer-crash" in line]
    assert len(names) == 7
    assert all((reader[0] / name).stat().st_size > 0 for name in names)


@pytest.mark.slow
def test_the_second_installs_and_tests(reader: Reader) -> None:
    """Its tests pass; here a handful of them."""
    done = typed(the_two_commands()[1], reader, PYTEST_ADDOPTS=HANDFUL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.parametrize(
    "name", ["consumer-crash.png", "election.png", "reassignment.png", "states.png"]
)
def test_a_picture_is_small_enough_to_keep(name: str) -> None:
    """A picture that is kept is remade now and then, and every one of them stays."""
    picture = HOME / "docs" / "pictures" / name
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert picture.stat().st_size < 150_000
