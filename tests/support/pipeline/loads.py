"""What the tests of loads share: the command, and the rows of a table in the order of logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests import HOME, SOURCE
from tests.support.log.kafka_logs import BuiltLog, Row
from watchkeeper.cli.main import run_command
from watchkeeper.pipeline.loading.commits import Commit, held
from watchkeeper.pipeline.loading.table import commits_in

Rows = dict[str, list[Row]]
"""Folder of a log, as in `tests.support.log.kafka_logs.brokers` -> its rows."""


def load_from(where: str, out: Path, *options: str) -> int:
    """Load from brokers in this process; the exit code."""
    return run_command(["load", "--brokers", where, str(out), *options])


def load(logs: Path, out: Path, *options: str) -> int:
    """Load in this process; the exit code."""
    return run_command(["load", str(logs), str(out), *options])


def elsewhere(logs: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    """Begin a load in a process, and a group of processes, of its own."""
    return _begun(str(logs), str(out), *options)


def from_elsewhere(where: str, out: Path, *options: str) -> subprocess.Popen[str]:
    """Begin a load from brokers in such a process."""
    return _begun("--brokers", where, str(out), *options)


def _begun(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "watchkeeper", "load", *arguments]
    return subprocess.Popen(
        command,
        cwd=HOME,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def table_of(out: Path, commit: Commit) -> list[dict[str, Any]]:
    """The rows of one file of a table."""
    found: list[dict[str, Any]] = pq.ParquetFile(out / commit.name).read().to_pylist()
    return found


def rows_of(out: Path) -> Rows:
    """What a table holds; it fails if files of it overlap."""
    commits = commits_in(out)
    assert held(commits) is not None
    found: Rows = {}
    for commit in sorted(commits):
        rows = found.setdefault(f"{commit.broker}/{commit.topic}-{commit.partition}", [])
        for row in table_of(out, commit):
            assert (row["topic"], row["broker"]) == (commit.topic, commit.broker)
            assert (row["partition"], row["crc_ok"]) == (commit.partition, True)
            rows.append(Row(*(row[name] for name in Row._fields)))
    return found


def due(logs: dict[str, BuiltLog]) -> Rows:
    """What a table of these logs has to hold."""
    return {name: log.rows for name, log in sorted(logs.items())}


def files_of(out: Path) -> dict[str, bytes]:
    """Every file that a reader of a table sees."""
    return {path.name: path.read_bytes() for path in out.glob("*.parquet")}


def killed_at_every_point(given: dict[str, str], home: Path) -> int:
    """Kill a load at everything it does, with these options; how many points there were.

    Fails if a table is not as it has to be after the load that follows a kill.
    """
    command = [sys.executable, "-P", "-m", "tests.support.pipeline.killed_loads"]
    done = subprocess.run(
        [*command, json.dumps(given), str(home)],
        capture_output=True,
        text=True,
        cwd=HOME,
        env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{HOME}"},
    )
    assert done.returncode == 0, done.stderr
    points, *wrong = done.stdout.splitlines()
    assert wrong == []
    return int(points.split()[0])
