"""The engines of an analysis: DuckDB in every run of the tests, Spark among the slow ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from watchkeeper.pipeline.analysis.engine.api import using
from watchkeeper.pipeline.analysis.engine.duck import duck
from watchkeeper.pipeline.analysis.engine.engine import Engine
from watchkeeper.pipeline.analysis.engine.spark import SparkEngine


@pytest.fixture(scope="module", params=["duckdb", pytest.param("spark", marks=pytest.mark.slow)])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """Each engine in turn; definitions speak its language."""
    with ExitStack() as stack:
        if request.param == "spark":
            started: Engine = SparkEngine(request.getfixturevalue("spark"))
        else:
            scratch = tmp_path_factory.mktemp("duckdb") / "scratch"
            started = stack.enter_context(duck(scratch, 2))
        stack.enter_context(using(started.language))
        yield started
