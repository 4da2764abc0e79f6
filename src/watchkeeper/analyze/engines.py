"""The engine of an analysis: chosen by the size of its traces, and by what is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.console.extras import check_installed
from watchkeeper.pipeline.analysis.engine.api import using
from watchkeeper.pipeline.analysis.engine.duck import duck
from watchkeeper.pipeline.analysis.engine.engine import Engine
from watchkeeper.pipeline.analysis.engine.spark import SparkEngine
from watchkeeper.pipeline.analysis.store import SCRATCH
from watchkeeper.pipeline.session import Wanted, WorksIn, session
from watchkeeper.pipeline.sweeps.runner_choice import cores
from watchkeeper.pipeline.sweeps.runners import Pool, Process, Runner
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.java import find_java

FEATURE = "watchkeeper analyze"
LOCAL = "local[{}]"
SMALL_BYTES = 200_000_000
"""Of all traces, about a million events: up to this size DuckDB is chosen."""
POOLED_BYTES = 20_000_000
"""From this size of all traces several processes read them for DuckDB."""
COMPILED_BYTES = 100_000_000
"""From this size of all traces Spark's JVM compiles with all its means: it pays off."""


class EngineName(StrEnum):
    """The engine that a user wants."""

    AUTO = "auto"
    DUCKDB = "duckdb"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class Means:
    """What an analysis is computed with."""

    engine: Engine
    runner: Callable[[], Runner]
    """For the branches of a run, which are simulated."""


def chosen(wanted: EngineName, master: str | None, size: int) -> EngineName:
    """Return the engine for traces of so many bytes: DuckDB or Spark."""
    if master is not None and wanted is EngineName.DUCKDB:
        raise Stop(
            USAGE,
            "--master names a Spark, and --engine duckdb does without one; leave one of them out",
        )
    if master is not None or wanted is EngineName.SPARK:
        check_installed(f"{FEATURE} on Spark", "pyspark")
        return EngineName.SPARK
    is_small = size <= SMALL_BYTES and find_spec("duckdb") is not None
    if wanted is EngineName.AUTO and not is_small and _has_spark():
        return EngineName.SPARK
    for library in ("duckdb", "pyarrow"):
        check_installed(FEATURE, library)
    return EngineName.DUCKDB


def _has_spark() -> bool:
    """Whether Spark can be started here, without an installation."""
    if find_spec("pyspark") is None:
        return False
    try:
        find_java()
    except EnvironmentProblem:
        return False
    return True


@contextmanager
def started(
    name: EngineName, master: str | None, home: Path, size: int, tell: Callable[[str], None]
) -> Iterator[Means]:
    """The engine of that name, at work in the folder of the analysis; its language is in use."""
    scratch = home / SCRATCH
    if name is EngineName.DUCKDB:
        pool = partial(Pool, cores())
        reader = pool if size > POOLED_BYTES else Process
        with duck(scratch, cores(), reader) as engine, using(engine.language):
            yield Means(engine, pool)
        return
    from watchkeeper.pipeline.sweeps.spark import Spark

    find_java()
    tell("starting Spark")
    works_in: WorksIn = "jvm" if size > COMPILED_BYTES else "python"
    wanted = Wanted(master or LOCAL.format(cores()), FEATURE, scratch, works_in)
    with session(wanted) as spark:
        found = SparkEngine(spark)
        with using(found.language):
            yield Means(found, lambda: Spark(wanted))
