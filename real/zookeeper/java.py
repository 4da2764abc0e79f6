"""A Java installation that can run ZooKeeper."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from watchkeeper.real.errors import EnvironmentProblem

OLDEST = 17
ADVICE = f"install Java {OLDEST} or later and put it on PATH, or point JAVA_HOME at it"
TIMEOUT_S = 30.0

FAST = (
    "-Xshare:auto",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xms16m",
)
"""Options for a small process that starts fast and leaves no file in the temporary folder."""


def find_java() -> Path:
    """Return the path of `java`, from JAVA_HOME or PATH.

    Raises EnvironmentProblem if there is none, or if it is older than Java 17.
    """
    home = os.environ.get("JAVA_HOME", "")
    java = _of_home(home) if home else _on_path()
    version = _version(java)
    if version < OLDEST:
        raise EnvironmentProblem(
            f"{java} is Java {version}, but ZooKeeper's jars need Java {OLDEST} or later; "
            f"{ADVICE}"
        )
    return java


def _of_home(home: str) -> Path:
    java = Path(home) / "bin" / "java"
    if not os.access(java, os.X_OK):
        raise EnvironmentProblem(
            f"JAVA_HOME is {home}, but {java} is not a program; {ADVICE}, or unset it"
        )
    return java


def _on_path() -> Path:
    found = shutil.which("java")
    if found is None:
        raise EnvironmentProblem(f"there is no Java on PATH and JAVA_HOME is not set; {ADVICE}")
    return Path(found)


@cache
def _version(java: Path) -> int:
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"{java} cannot be run ({error}); {ADVICE}") from None
    output = done.stderr + done.stdout
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    if done.returncode != 0 or found is None:
        first = output.strip().partition("\n")[0] or f"exit code {done.returncode}"
        raise EnvironmentProblem(
            f"'{java} -version' should name a version, but printed {first!r}; {ADVICE}"
        )
    return int(found[1])
