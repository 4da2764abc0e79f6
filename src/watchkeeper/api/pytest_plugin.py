"""For other people's test suites: fixtures that run scenarios, and that serve a ZooKeeper.

    def test_my_scenario(run_scenario):
        result = run_scenario("consumer-crash", seed=7)
        assert result.holds

When the test fails, its report ends with the property table of each run it made and the
command that runs it again. A scenario that a test has put together by itself is written
to a file first, so that the command works.

    def test_my_program(zookeeper):
        client = zookeeper.client()
        zookeeper.expire(client)

One ZooKeeper serves the whole session, and each worker of xdist has its own. Each test has a
chroot of its own; its clients, its faults and its znodes end with it. Nothing is imported or
started before the first test that uses one of the fixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from watchkeeper.api.result import Result
    from watchkeeper.testing import Handle, ZooKeeper

RUNS: pytest.StashKey[list[Any]] = pytest.StashKey()
MOST_SHOWN = 3


@pytest.fixture
def run_scenario(request: pytest.FixtureRequest) -> Iterator[Callable[..., Result]]:
    """Run a scenario like `watchkeeper.simulate`; a failing test shows how to run it again."""
    from watchkeeper.api.simulate import simulate

    runs: list[Result] = request.node.stash.setdefault(RUNS, [])

    def run(source: Any, **settings: Any) -> Result:
        result = simulate(source, **settings)
        runs.append(result)
        return result

    yield run
    runs.clear()


@pytest.fixture(scope="session")
def zookeeper_of_session() -> Iterator[ZooKeeper]:
    """The ZooKeeper that the tests of a session share."""
    from watchkeeper.testing import ZooKeeper

    with ZooKeeper() as zookeeper:
        yield zookeeper


@pytest.fixture
def zookeeper(
    zookeeper_of_session: ZooKeeper, request: pytest.FixtureRequest
) -> Iterator[Handle]:
    """A ZooKeeper below a chroot of this test, with faults as verbs."""
    from watchkeeper.testing.shared import HandleOfTest

    handle = HandleOfTest(zookeeper_of_session, request.node.name)
    try:
        yield handle
    finally:
        handle.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the runs of a failed test to its report."""
    report = yield
    runs = item.stash.get(RUNS, [])
    if report.failed and runs:
        shown = "\n\n".join(explained(result) for result in runs[-MOST_SHOWN:])
        report.sections.append(("watchkeeper: the runs of this test, the last one last", shown))
    return report


def explained(result: Result) -> str:
    """The report of a run, with its scenario in a file if it came from none."""
    source = result.scenario.source
    if source and (Path(source).exists() or source in _shipped()):
        return str(result)
    path = _keep(result)
    again = result.command_with(str(path))
    return f"{result}\nscenario kept in {path}; run it again with:\n  {again}"


def _shipped() -> list[str]:
    from watchkeeper.scenarios import shipped

    return shipped()


def _keep(result: Result) -> Path:
    text = result.scenario.text
    name = f"{result.scenario.name}-{sha256(text.encode()).hexdigest()[:8]}.yaml"
    path = Path("runs") / "kept" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
