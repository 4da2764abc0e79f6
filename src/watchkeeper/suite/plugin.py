"""For other people's test suites: fixtures that run scenarios, and that serve a ZooKeeper.

    def test_my_scenario(run_scenario):
        result = run_scenario("consumer-crash", seed=7)
        assert result.holds

When the test fails, its report ends with what the run shows, in at most twelve lines: the
property, why it is violated, the command that runs it again, and the page of its folder. The same
holds for a `Result` of `simulate` in a variable of the failing test.

    @pytest.mark.watchkeeper(seeds=50, variant="kafka_08")
    def test_my_scenario(run_scenario):
        run_scenario("consumer-crash").check()

makes fifty tests, a seed each; the options of the command line do so for all tests. A file
`test_*.yaml` with a scenario is a test, too.

    def test_my_program(zookeeper):
        client = zookeeper.client()
        zookeeper.expire(client)

One ZooKeeper serves the whole session, and each worker of xdist has its own. Each test has a
chroot of its own; its clients, its faults and its znodes end with it. Nothing is imported or
started before the first test that uses one of the fixtures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from watchkeeper.suite import github
from watchkeeper.suite.scenario_file import ScenarioFile, is_scenario

if TYPE_CHECKING:
    from watchkeeper.api.result import Result
    from watchkeeper.testing import Handle, ZooKeeper

RUNS: pytest.StashKey[list[Any]] = pytest.StashKey()
MARK = "watchkeeper"
SHRINK_S = 5
SECTION = "watchkeeper: the run"
OPTIONS = (
    ("seeds", "how many seeds each test with a scenario is run with"),
    ("variant", "the version of the protocol, where a test names none"),
    ("out", "the folder in which the runs of failing tests are kept"),
    ("shrink", "for how many seconds a smaller scenario with the same failure is looked for"),
)


class Settings(NamedTuple):
    """What a test runs with, as its marker, the command line or the ini file says."""

    seeds: int
    """0: as many as the test runs by itself."""
    variant: str | None
    out: Path
    shrink_s: float


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, and those of the ini file with the same names."""
    group = parser.getgroup(MARK)
    for name, about in OPTIONS:
        group.addoption(f"--watchkeeper-{name}", default=None, help=about)
        parser.addini(f"watchkeeper_{name}", about, default=None)


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker, and refuse a number of seeds that is none."""
    config.addinivalue_line(
        "markers", f"{MARK}(seeds, variant): run the scenarios of a test with these"
    )
    settings_of(config)


def settings_of(config: pytest.Config, item: pytest.Item | None = None) -> Settings:
    """Return the settings: of the marker of a test first, then of the command line."""
    found = {name: _configured(config, name) for name, _ in OPTIONS}
    mark = None if item is None else item.get_closest_marker(MARK)
    return _settings({**found, **({} if mark is None else mark.kwargs)})


def _settings(found: dict[str, Any]) -> Settings:
    seeds, shrink = str(found["seeds"] or 0), str(found["shrink"] or SHRINK_S)
    for name, value in (("seeds", seeds), ("shrink", shrink)):
        if not value.isdecimal():
            message = f"--watchkeeper-{name} is {value!r}; expected a whole number"
            raise pytest.UsageError(message)
    out = Path(found["out"] or "runs")
    return Settings(int(seeds), found["variant"] or None, out, float(shrink))


def _configured(config: pytest.Config, name: str) -> Any:
    given = config.getoption(f"--watchkeeper-{name}", default=None)
    return given if given is not None else config.getini(f"watchkeeper_{name}")


# --- tests -----------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each seed of those that run scenarios."""
    if "watchkeeper_seed" in metafunc.fixturenames:
        seeds = settings_of(metafunc.config, metafunc.definition).seeds
        if seeds:
            ids = [f"seed{seed}" for seed in range(seeds)]
            metafunc.parametrize("watchkeeper_seed", range(seeds), ids=ids, indirect=True)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Collect a file `test_*.yaml` that is a scenario."""
    if not is_scenario(file_path):
        return None
    settings = settings_of(parent.config)
    found: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path)
    found.seeds, found.variant = settings.seeds or 1, settings.variant
    return found


@pytest.fixture
def watchkeeper_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test, where it is run with several; else 0."""
    seed: int = getattr(request, "param", 0)
    return seed


@pytest.fixture
def run_scenario(
    request: pytest.FixtureRequest, watchkeeper_seed: int
) -> Iterator[Callable[..., Result]]:
    """Run a scenario like `watchkeeper.simulate`; a failing test shows how to run it again."""
    from watchkeeper.api.simulate import simulate

    runs: list[Result] = request.node.stash.setdefault(RUNS, [])
    variant = settings_of(request.config, request.node).variant

    def run(source: Any, **settings: Any) -> Result:
        result = simulate(source, **{"seed": watchkeeper_seed, "variant": variant, **settings})
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


# --- reports ---------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what a run shows to the report of a failed test, and its facts to JUnit's file."""
    runs = item.stash.get(RUNS, []) or _in_variables(call)
    if runs and call.when == "call":
        from watchkeeper.suite.failure import chosen, failure_lines

        shown = chosen(runs)
        item.user_properties.extend(_facts(shown))
    report = yield
    if report.failed and runs and call.when == "call":
        settings = settings_of(item.config, item)
        lines = failure_lines(shown, settings.out, settings.shrink_s)
        report.sections.append((SECTION, "\n".join(lines)))
    return report


def _in_variables(call: pytest.CallInfo[None]) -> list[Result]:
    """The results in the variables of the functions in which a test failed."""
    import sys

    known = sys.modules.get("watchkeeper.api.result")
    if call.excinfo is None or known is None:
        return []
    found = {
        id(value): value
        for entry in call.excinfo.traceback
        for value in entry.frame.f_locals.values()
        if isinstance(value, known.Result)
    }
    return list(found.values())


def _facts(result: Result) -> Iterator[tuple[str, object]]:
    yield "watchkeeper_scenario", result.scenario.name
    yield "watchkeeper_variant", result.plan.variant
    yield "watchkeeper_seed", result.seed
    yield "watchkeeper_verdict", result.verdict.value
    yield "watchkeeper_fingerprint", result.fingerprint


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell a job of GitHub which tests failed, and what their runs show."""
    if os.environ.get(github.ACTIONS) != "true":
        return
    failures = [
        (report.nodeid, text)
        for report in terminalreporter.stats.get("failed", [])
        for name, text in report.sections
        if name == SECTION
    ]
    for line in github.error_lines(failures):
        terminalreporter.write_line(line)
    github.write_summary(failures)
