"""When the failure of one run became inevitable: its branches, simulated again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from watchkeeper.model.sweep_summary import Share
from watchkeeper.pipeline.analysis.engine.api import sql
from watchkeeper.pipeline.analysis.engine.engine import Engine
from watchkeeper.pipeline.analysis.facts.events import events
from watchkeeper.pipeline.analysis.runs import Run
from watchkeeper.pipeline.analysis.store import EVENTS, TABLES
from watchkeeper.pipeline.sweeps.branches import Failing, curve, decided, moments
from watchkeeper.pipeline.sweeps.grid import Cell
from watchkeeper.pipeline.sweeps.runners import Runner

POINTS = 20


@dataclass(frozen=True, slots=True)
class Turn:
    """The known facts of a failing run."""

    violates: tuple[str, ...]
    """The properties that count and are violated."""
    events: int
    """The number of events until the first violation; all events if it is unknown."""
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


def turn_of(engine: Engine, home: Path, run: str) -> Turn:
    """The facts that an analysis has found of one run."""
    table = engine.read(home / TABLES / "properties")
    wrong = table.where((sql.col("run") == run) & (sql.col("recorded") == "violated"))
    rows = wrong.where("counts").orderBy(sql.col("seq").asc_nulls_last(), "property").collect()
    of_run = events(engine, home / EVENTS).where(sql.col("run") == run)
    times = [row.t_us for row in of_run.select("seq", "t_us").orderBy("seq").collect()]
    known = [row.seq + 1 for row in rows if row.seq is not None]
    return Turn(tuple(row.property for row in rows), min(known, default=len(times)), times)


def inevitable(
    engine: Engine,
    runner: Runner,
    home: Path,
    run: Run,
    cell: Cell,
    branches: int,
    tell: Callable[[str], None],
) -> Inevitable:
    """Branch off a run at some of its events, many times each, and count how often it still
    fails.

    `cell` has the plan and the latencies that it was simulated with. The language of the engine
    is in use.
    """
    turn = turn_of(engine, home, run.name)
    failing = Failing(cell, run.header.seed, turn.violates)
    tell(f"{run.name}: {branches} branches from each of {POINTS + 1} events")
    at = moments(turn.times_us, turn.events, POINTS)
    points = curve(failing, at, branches, runner)
    first = decided(points)
    return Inevitable(
        run.name,
        turn.violates,
        [(point.events, point.at_us, point.share) for point in points],
        None if first is None else points.index(first),
    )
