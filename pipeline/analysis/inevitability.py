"""When the failure of one run became inevitable: its branches, simulated on Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from model.sweeps import Share
from pipeline.analysis.events import events
from pipeline.analysis.runs import Run
from pipeline.analysis.store import EVENTS, TABLES
from pipeline.session import Wanted
from pipeline.sweeps.branching import Failing, curve, decided, moments
from pipeline.sweeps.grid import Cell
from pipeline.sweeps.spark import Spark

POINTS = 20


@dataclass(frozen=True, slots=True)
class Turn:
    """What is known of a failing run."""

    violates: tuple[str, ...]
    """The properties that count and are violated."""
    events: int
    """So many events it takes to see the first violation; all of them where none says."""
    times_us: list[int]
    """When each event of the run happens."""


@dataclass(frozen=True, slots=True)
class Inevitable:
    """When the failure of a run became inevitable."""

    run: str
    violates: tuple[str, ...]
    points: list[tuple[int, int, Share]]
    """How many events stay, the moment of the last of them, how many branches still fail."""
    decided: int | None
    """Which of these points is the first from which all fail."""


def turn_of(spark: SparkSession, home: Path, run: str) -> Turn:
    """What an analysis has found of one run."""
    table = spark.read.parquet(str(home / TABLES / "properties"))
    wrong = table.where((sql.col("run") == run) & (sql.col("said") == "violated"))
    rows = wrong.where("counts").orderBy(sql.col("seq").asc_nulls_last(), "property").collect()
    of_run = events(spark, home / EVENTS).where(sql.col("run") == run)
    times = [one.t_us for one in of_run.select("seq", "t_us").orderBy("seq").collect()]
    known = [one.seq + 1 for one in rows if one.seq is not None]
    return Turn(tuple(one.property for one in rows), min(known, default=len(times)), times)


def inevitable(
    spark: SparkSession,
    wanted: Wanted,
    home: Path,
    run: Run,
    branches: int,
    tell: Callable[[str], None],
) -> Inevitable:
    """Leave a run at some of its events, many times each, and count how often it still fails."""
    assert run.plan is not None, "it was checked"
    turn = turn_of(spark, home, run.name)
    failing = Failing(Cell(0, (), run.plan, None), run.header.seed, turn.violates)
    tell(f"{run.name}: {branches} branches from each of {POINTS + 1} events")
    at = moments(turn.times_us, turn.events, POINTS)
    with Spark(wanted) as runner:
        points = curve(failing, at, branches, runner)
    first = decided(points)
    return Inevitable(
        run.name,
        turn.violates,
        [(one.events, one.at_us, one.share) for one in points],
        None if first is None else points.index(first),
    )
