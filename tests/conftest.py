"""What all tests share: which are slow, which worker runs them, golden files, Hypothesis.

The quick suite is what `pytest -n auto` runs; what is marked `slow` runs only with
`-m slow` (alone) or `--slow` (with all others).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests import HOME
from tests.support.compiled_tests import are_compiled, compile_tests
from tests.support.slow_tests import SLOW, runs_slow_tests

pytest_plugins = [
    "pytester",
    "tests.support.engines",
    "tests.support.interrupts",
    "tests.support.live_zookeeper",
    "tests.support.spark",
]

os.environ["WATCHKEEPER_PROGRESS"] = "0"
"""A command that takes long on a busy machine prints what it prints on others."""

if sys.dont_write_bytecode:
    # Live tests start some hundred processes, and each would compile the package again. Their
    # bytecode goes to a folder of its own, since the user wants none beside the source.
    sys.pycache_prefix = str(HOME / ".pytest_cache" / "bytecode")
    sys.dont_write_bytecode = False
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    del os.environ["PYTHONDONTWRITEBYTECODE"]

GOLDEN = HOME / "tests" / "golden"

ON_SPARK = frozenset(
    {
        "tests/pipeline/activity/test_jobs.py",
        "tests/pipeline/kafkalog/test_brokers_on_spark.py",
        "tests/pipeline/kafkalog/test_on_spark.py",
        "tests/pipeline/sweeps/test_on_spark.py",
    }
)
"""Modules that share one session of Spark: one worker runs all of them."""

WHOLE = frozenset(
    {
        "tests/checker/test_battery.py",
        "tests/checker/test_lasso.py",
        "tests/pipeline/kafkalog/test_brokers.py",
        "tests/pipeline/loading/test_brokers.py",
        "tests/pipeline/sweeps/test_sweep.py",
        "tests/pipeline/test_analysis.py",
        "tests/pipeline/test_control_plane_analysis.py",
        "tests/pipeline/test_engines.py",
        "tests/pipeline/test_group_offsets_analysis.py",
        "tests/pipeline/test_message_tables.py",
        "tests/project/test_layout.py",
        "tests/project/test_packaging.py",
        "tests/project/test_words.py",
        "tests/real/broker/test_live_broker.py",
        "tests/real/embed/test_clients.py",
        "tests/real/embed/test_clients_08.py",
        "tests/real/world/test_changes.py",
        "tests/real/world/test_mirrors.py",
        "tests/reports/test_counterexample.py",
        "tests/reports/test_spacetime.py",
        "tests/sim/storage/test_design_page.py",
        "tests/sim/test_determinism.py",
        "tests/sim/test_fit_latency.py",
        "tests/watchkeeper/test_compare.py",
    }
)
"""Modules whose tests share what takes long to make: one worker makes it, once."""

settings.register_profile(
    "watchkeeper",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # Who is refused by .ci/run has to be to blame: it tries the same examples each time.
    # Everywhere else each run tries others, and keeps those that fail.
    derandomize="WATCHKEEPER_SAME_EXAMPLES" in os.environ,
)
settings.load_profile("watchkeeper")


WORKERS_A_CORE = 3
"""Tests of live runs mostly wait, so more of them than there are cores run at once."""
MOST_WORKERS = 16


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --rewrite-golden and --slow."""
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write golden files anew instead of comparing; review what changes as a diff",
    )
    parser.addoption(
        "--slow", action="store_true", help="run the tests that are marked slow, too"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow, unless it is requested or named; begin with what takes long."""
    is_named = any("::" in argument for argument in config.args)
    if not (is_named or runs_slow_tests(config)):
        slow = [item for item in items if item.get_closest_marker(SLOW)]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker(SLOW)]
    items.sort(key=lambda item: _turn(item.nodeid.partition("::")[0]))


def _turn(path: str) -> int:
    """When a module is begun: the longest group, what mostly waits, all others."""
    if path in ON_SPARK:
        return 0
    return 1 if path.startswith("tests/real/") or path in WHOLE else 2


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of this name, or rewrite it."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--rewrite-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing; make it with --rewrite-golden"
        assert text == path.read_text(), f"{path} is not what happens now"

    return compare


class WholeModules(LoadScopeScheduling):
    """Hands out tests one by one, but for those of some modules, which stay together.

    pytest-xdist has marks for that, but with pytest 9.2 its workers do not see them.
    """

    def _split_scope(self, nodeid: str) -> str:
        path, _, _ = nodeid.partition("::")
        if path in ON_SPARK or "[spark" in nodeid:
            return "spark"
        return path if path in WHOLE else nodeid

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the tests of a worker that has died to others, but for the one that it ran.

        pytest-xdist would run that test again, and hand out units of which nothing is left;
        then the run waits for ever.
        """
        units = self.assigned_work.pop(node)
        left = [name for unit in units.values() for name, is_done in unit.items() if not is_done]
        for name in left[1:]:
            self.workqueue.setdefault(self._split_scope(name), {})[name] = False
        for other in self.assigned_work:
            self._reschedule(other)
        return left[0] if left else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Before the workers of a whole run start."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and not are_compiled():
        compile_tests()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WholeModules:
    """Who hands tests to the workers."""
    return WholeModules(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many workers `-n auto` stands for."""
    return min(WORKERS_A_CORE * (os.cpu_count() or 1), MOST_WORKERS)
