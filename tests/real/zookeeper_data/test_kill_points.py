"""Machines that stop at any operation of the disk: what was answered is there afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from tests import HOME
from tests.support.zookeeper_files.kill_points import trial

BENCH = HOME / "bench" / "zookeeper_kill_points.py"
SEEDS = range(60)
OPERATIONS = {"make", "write", "sync", "sync_names", "rename", "remove"}


def test_what_was_answered_outlives_any_stop() -> None:
    """And what is there is a state that the server was in."""
    trials = [trial(seed) for seed in SEEDS]

    assert [found for found in trials if found.wrong] == []
    stopped = Counter(found.operation for found in trials)
    assert set(stopped) >= OPERATIONS
    assert stopped.total() - stopped[""] >= 40
    assert {found.loss for found in trials} == {"none", "all", "some", "torn"}
    assert any(found.is_error and found.operation for found in trials)
    assert any(found.recovered > found.answered for found in trials)


@pytest.mark.parametrize("operation", ["sync", "sync_names"])
def test_a_disk_that_does_not_sync_is_found_out(operation: str) -> None:
    """Each of both syncs is needed, and the trials see it if one is not made."""
    trials = [trial(seed, ignores=frozenset({operation})) for seed in SEEDS]

    assert any(found.wrong for found in trials)


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--ignore", "sync"), 1)])
def test_the_bench_reports_what_is_wrong(arguments: tuple[str, ...], code: int) -> None:
    """Its exit code is 1 if anything is."""
    command = [sys.executable, str(BENCH), "--points", "25", "--quick", "--json", *arguments]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == code, done.stderr
    assert bool(json.loads(done.stdout)["wrong"]) is bool(code)
