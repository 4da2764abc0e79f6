"""A copy of the project as git knows it, and whether pip reaches an index here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests import HOME

PIP = (sys.executable, "-m", "pip")
NEEDED = "setuptools>=77"
"""What builds the project."""


@cache
def why_no_index() -> str:
    """Return why pip cannot download packages here; empty if it can."""
    command = [*PIP, "download", "--no-deps", "--quiet", "--retries", "0"]
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [*command, "--dest", folder, NEEDED], capture_output=True, text=True, check=False
        )
    return "" if done.returncode == 0 else f"pip reaches no index: {done.stderr.strip()[-300:]}"


def project_files() -> list[str]:
    """Return the files and links of the project; skip the test outside of a git work tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=HOME,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("this is no git work tree, so it is not known which files are the project's")
    names = [name for name in listed.stdout.split("\0") if name]
    return [name for name in names if (HOME / name).is_file() or (HOME / name).is_symlink()]


def copy_project(folder: Path) -> Path:
    """Copy the project to a folder, links as links."""
    for name in project_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(HOME / name, folder / name, follow_symlinks=False)
    return folder
