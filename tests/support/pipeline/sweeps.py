"""What the tests of sweeps share: running the command, reading its tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests import HOME
from watchkeeper.cli.main import run_command

CRASH = ("sweep", "consumer-crash", "--variants", "hardened,documented", "--seeds", "8")
"""A sweep of sixteen runs: half of them hold, half of them fail, in two ways."""


def sweep(out: Path, *options: str, of: tuple[str, ...] = CRASH) -> int:
    """Run a sweep in this process; its exit code."""
    return run_command([*of, *options, "--out", str(out)])


def elsewhere(out: Path, *options: str, of: tuple[str, ...] = CRASH) -> subprocess.Popen[str]:
    """Begin a sweep in a process, and a group of processes, of its own."""
    command = [sys.executable, "-P", "-m", "watchkeeper", *of, *options, "--out", str(out)]
    return subprocess.Popen(
        command,
        cwd=HOME,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def rows(out: Path) -> list[dict[str, Any]]:
    """Every row of a sweep, in the order of the grid."""
    found = [
        row
        for path in sorted((out / "runs").glob("*.parquet"))
        for row in pq.ParquetFile(path).read().to_pylist()
    ]
    return sorted(found, key=lambda row: row["number"])


def summary(out: Path) -> dict[str, Any]:
    """What a sweep says of itself, but for what differs from time to time."""
    document: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return {key: value for key, value in document.items() if key not in ("runner", "seconds")}
