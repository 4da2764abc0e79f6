"""What all tests share: the flag that rewrites golden files, and Hypothesis's profiles."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester", "tests.live"]

GOLDEN = Path(__file__).parent / "golden"

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
