"""What the tests of the live world share: the rule when to skip, and that nothing is left."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from real.ensemble import Ensemble
from real.jars import zookeeper_jars
from real.java import find_java
from real.problems import EnvironmentProblem
from real.settings import Settings
from watchkeeper.living import run_plan_live
from watchkeeper.result import Result
from watchkeeper.running import judged, scenario_of

TICK_MS = 200
PATIENCE_S = 10.0
OFTEN = {"max_tries": -1, "delay": 0.05, "backoff": 1}
"""How a client tries to connect: more often than kazoo does by itself."""
PS = shutil.which("ps") or "/bin/ps"


@pytest.fixture(scope="session")
def needs_zookeeper() -> None:
    """Skip with one reason where the real thing cannot run."""
    skip_without_zookeeper()


def skip_without_zookeeper() -> None:
    """Skip without Java; fail where Java is there and all that lacks comes with `.[test]`."""
    try:
        find_java()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))
    try:
        zookeeper_jars()
    except EnvironmentProblem as problem:
        pytest.fail(f"Java is here, so the live tests have to run: {problem}")


def lived(fields: Mapping[str, Any]) -> Result:
    """Run a scenario for real, and judge it."""
    skip_without_zookeeper()
    found = scenario_of(fields)
    plan = found.plan()
    _, done = run_plan_live(plan, 0, lambda now_us, end_us: None)
    return judged(found, plan, 0, done)


@pytest.fixture(scope="module")
def zookeeper(needs_zookeeper: None) -> Iterator[Ensemble]:
    """One real server for all tests of a module; a test that harms it starts it again."""
    before = descendants()
    with Ensemble(settings=Settings(tick_ms=TICK_MS)) as ensemble:
        yield ensemble
    assert not ensemble.folder.exists()
    assert descendants() <= before


def until(holds: Callable[[], object], patience_s: float = PATIENCE_S) -> float:
    """Wait until something holds; how long that took."""
    began = monotonic()
    while not holds():
        assert monotonic() - began < patience_s, f"not within {patience_s:g} s"
        sleep(0.01)
    return monotonic() - began


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not asked for its code does not."""
    done = subprocess.run([PS, "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return done.stdout.strip()[:1] not in ("", "Z")


def descendants(of: int | None = None) -> set[int]:
    """Every process that stems from that one, or from this."""
    root = os.getpid() if of is None else of
    listing = subprocess.Popen([PS, "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, text=True)
    said, _ = listing.communicate()
    pairs = [tuple(map(int, line.split())) for line in said.splitlines()]
    found = {root}
    while more := {child for child, parent in pairs if parent in found} - found:
        found |= more
    return found - {root, listing.pid}


def what_is_there() -> tuple[int, set[threading.Thread], set[Path]]:
    """Processes, threads and folders that a test could leave behind.

    Processes are counted, since a server that was started again is another one.
    """
    folders = set(Path(tempfile.gettempdir()).glob("watchkeeper-zookeeper-*"))
    return len(descendants()), set(threading.enumerate()), folders


@pytest.fixture
def nothing_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check after a test that its processes, threads and folders are gone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = what_is_there()
    yield

    def is_clean() -> bool:
        processes, threads, folders = what_is_there()
        return processes <= before[0] and threads <= before[1] and folders <= before[2]

    until(is_clean)
