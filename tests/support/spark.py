"""One session of Spark for all tests of a worker, and the rule when to skip them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.slow_tests import runs_slow_tests
from watchkeeper.pipeline.kafkalog.source import register
from watchkeeper.pipeline.session import Wanted, session
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.java import find_java

FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""For a few rows Spark takes longer to generate code than to do the work."""


@pytest.fixture(scope="session")
def needs_java() -> None:
    """Skip with the reason where Spark cannot run."""
    try:
        find_java()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="session")
def spark(
    needs_java: None, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Any]:
    """One session; commands that a test runs in its own process work in it, too.

    It takes 10 s to start, so all modules that need one are run by one worker (`conftest.py`).
    Slow tests run with Spark's own settings.
    """
    path = list(sys.path)
    scratch = tmp_path_factory.mktemp("spark") / "scratch"
    with session(Wanted("local[2]", "tests", scratch, "python", patience_s=600)) as started:
        register(started)
        if not runs_slow_tests(pytestconfig):
            for key, value in FEW_ROWS.items():
                started.conf.set(key, value)
        sys.path[:] = path  # where Spark puts what it hands to workers; here the source counts
        yield started
    assert not scratch.exists()
    assert sys.path == path
