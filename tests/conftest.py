"""What all tests share: the flag that rewrites golden files, and Hypothesis's profiles."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["pytester", "tests.live"]

GOLDEN = Path(__file__).parent / "golden"

WHOLE = frozenset(
    {
        "activity_jobs",
        "analysis",
        "claims",
        "compare",
        "determinism",
        "explore_circle",
        "fitting",
        "kafkalog_spark",
        "live_broker",
        "live_changes",
        "live_clients",
        "live_mirrors",
        "reports_spacetime",
        "story_html",
        "sweep",
        "sweep_kills",
        "sweep_spark",
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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --rewrite-golden."""
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write golden files anew instead of comparing; review what changes as a diff",
    )


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
        return path if Path(path).stem.removeprefix("test_") in WHOLE else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WholeModules:
    """Who hands tests to the workers."""
    return WholeModules(config, log)
