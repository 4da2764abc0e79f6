"""Folders of runs, as the command line leaves them."""

from __future__ import annotations

from pathlib import Path

from watchkeeper import simulate
from watchkeeper.api.folder import prepare
from watchkeeper.api.result import Result
from watchkeeper.api.run_files import fill

PROFILE_TEXT = """
watchkeeper_profile: 1
zookeeper: {simulation: {read_us: 700}}
"""


def write_run(out: Path, result: Result) -> Path:
    """The folder of a run, as the command line writes it."""
    return fill(prepare(out, result.trace.header.run_id), result, pictures=False).home


def failing_run_with_profile(home: Path) -> Path:
    """The folder of a failing run that was simulated with a profile."""
    profile = home / "slow.yaml"
    profile.write_text(PROFILE_TEXT)
    result = simulate("session-expiry", variant="kafka_07", seed=0, profile=profile)
    assert result.violated
    return write_run(home / "runs", result)
