"""What the tests of the live world share: the rule when to skip, and that nothing is left."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from kazoo.client import KazooClient

from tests.support.patience import PATIENCE_S
from watchkeeper.api.result import Result
from watchkeeper.api.simulate import judged, scenario_of
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.real.client.attempts import AttemptLimit
from watchkeeper.real.client.connection import Connection
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.jars import zookeeper_jars
from watchkeeper.real.zookeeper.java import find_java
from watchkeeper.real.zookeeper.settings import Settings
from watchkeeper.real.zookeepers.ensemble import Ensemble as AnyEnsemble
from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of
from watchkeeper.run.live_run import Where, run_plan_live

TICK_MS = 200
LONG_MS = 60_000
"""The longest session timeout that is granted: for sessions that must not expire, however busy
the machine is. A session whose expiry is the subject has a short one.
"""
SETTINGS = Settings(tick_ms=TICK_MS, max_session_ms=LONG_MS)
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


def lived(
    fields: Mapping[str, Any] | str, stretch: int = 1, *, zookeeper: str = "python"
) -> Result:
    """Run a scenario for real, on the server in Python or on Apache's, and judge it."""
    if zookeeper == "java":
        skip_without_zookeeper()
    found = scenario_of(fields)
    plan = _stretched(found.plan(), stretch)
    _, done = run_plan_live(plan, 0, lambda now_us, end_us: None, Where(zookeeper))
    return judged(found, plan, 0, done)


def is_judged(result: Result) -> bool:
    """Whether a run says something about the code."""
    return result.verdict is not Verdict.UNKNOWN


def lived_to_a_verdict(
    fields: Mapping[str, Any] | str,
    *,
    zookeeper: str = "python",
    is_enough: Callable[[Result], bool] = is_judged,
) -> Result:
    """Run a scenario for real, with more time for each step until the run shows what it is about.

    On a busy machine a process may not have started when its fault comes, or a group may not be
    at rest when the run ends. Then the verdict is *unknown*, and says nothing about the code.
    """
    result = lived(fields, zookeeper=zookeeper)
    for stretch in (2, 4, 8):
        if is_enough(result):
            break
        result = lived(fields, stretch, zookeeper=zookeeper)
    return result


def _stretched(plan: Plan, times: int) -> Plan:
    """The plan, with each action so many times as late and with as much more time to settle."""
    timeline = (
        action if action.at_us is None else replace(action, at_us=times * action.at_us)
        for action in plan.timeline
    )
    return replace(plan, timeline=tuple(timeline), settle_us=times * plan.settle_us)


@pytest.fixture(scope="session")
def zookeeper(needs_zookeeper: None) -> Iterator[Ensemble]:
    """One real server for all tests of a worker that leave it running.

    Each test writes below paths of its own. A module whose tests stop the server, count its
    sessions, or read its log or its whole tree replaces this fixture by `own_zookeeper`.
    """
    before = descendants()
    with Ensemble(settings=SETTINGS) as ensemble:
        started = descendants() - before
        yield ensemble
    assert not ensemble.folder.exists()
    assert started.isdisjoint(descendants())


@pytest.fixture(scope="module")
def own_zookeeper(needs_zookeeper: None) -> Iterator[Ensemble]:
    """One real server for all tests of a module; a test that harms it starts it again."""
    before = descendants()
    with Ensemble(settings=SETTINGS) as ensemble:
        yield ensemble
    assert not ensemble.folder.exists()
    assert descendants() <= before


@pytest.fixture(scope="module", params=["java", pytest.param("python", marks=pytest.mark.slow)])
def either_zookeeper(request: pytest.FixtureRequest) -> Iterator[AnyEnsemble]:
    """A server for all tests of a module: Apache's; among slow tests also the one in Python."""
    if request.param == "java":
        skip_without_zookeeper()
    before = descendants()
    implementation = Implementation(request.param)
    with ensemble_of(implementation, settings=SETTINGS, has_record=True) as ensemble:
        yield ensemble
    assert descendants() <= before


def connected(hosts: str, timeout_s: float = LONG_MS / 1000) -> KazooClient:
    """A client of kazoo's that is connected, and never waits long for a silent server."""
    client = KazooClient(hosts, timeout=timeout_s, connection_retry=OFTEN)
    Connection(client, AttemptLimit())
    client.start(timeout=PATIENCE_S)
    return client


def disconnect(client: KazooClient) -> None:
    """End the session of a client of kazoo's."""
    client.stop()
    client.close()


def until(holds: Callable[[], object], patience_s: float = PATIENCE_S) -> float:
    """Wait until something holds; how long that took."""
    began = monotonic()
    while not holds():
        assert monotonic() - began < patience_s, f"not within {patience_s:g} s"
        sleep(0.01)
    return monotonic() - began


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended does not, even if its code was not read."""
    done = subprocess.run([PS, "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return done.stdout.strip()[:1] not in ("", "Z")


def descendants(of: int | None = None) -> set[int]:
    """Every process that stems from that one, or from this."""
    root = os.getpid() if of is None else of
    listing = subprocess.Popen([PS, "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, text=True)
    output, _ = listing.communicate()
    pairs = [tuple(map(int, line.split())) for line in output.splitlines()]
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
