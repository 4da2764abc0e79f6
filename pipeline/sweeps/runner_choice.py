"""The choice of chunk size and runner, from a measurement of a few runs."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Literal

from watchkeeper.pipeline.sweeps.chunk import run_chunk
from watchkeeper.pipeline.sweeps.grid import REPEATED_OF, Chunk, Grid, Stretch, is_repeated

RunnerName = Literal["process", "pool", "spark"]

LEAST_CHUNK_S = 1.0
"""Less work than that is not worth sending anywhere."""
MARGIN = 1.5
"""A measurement is no guarantee, and other machines are faster."""
LONGEST_CHUNK_S = 30.0
"""More is lost when it is killed."""
MOST_CHUNKS = 1000
"""As many tables a folder bears well."""
LOOKS = 5
LOOKED_S = 1.0
"""How many cells are looked at, and for how long at most."""

POOL_FROM_S = 5.0
SPARK_FROM_S = 60.0
"""The amount of work that justifies other processes, or a session of Spark."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a run, in CPU seconds."""

    cheapest_s: float
    mean_s: float


def look(grid: Grid) -> Cost:
    """Run one seed of a few cells, and measure."""
    step = max(len(grid.cells) // LOOKS, 1)
    cells = grid.cells[::step][:LOOKS]
    seed = grid.seeds[:1]
    _seconds(Chunk(0, (Stretch(cells[0], seed, 0),)))  # to warm up
    found: list[float] = []
    for cell in cells:
        found.append(_seconds(Chunk(0, (Stretch(cell, seed, 0),))))
        if sum(found) > LOOKED_S:
            break
    return Cost(min(found), sum(found) / len(found))


def _seconds(chunk: Chunk) -> float:
    """The time of a chunk of one run, if it were not run twice."""
    [seed_range] = chunk.stretches
    twice = is_repeated(seed_range.cell.run_id(seed_range.seeds[0]), seed_range.first)
    return max(run_chunk(chunk).seconds / (1 + twice), 1e-6)


def chunk_runs(runs: int, cost: Cost, least_s: float = LEAST_CHUNK_S) -> int:
    """How many runs a chunk holds."""
    all_of_it = runs * cost.mean_s
    wanted = min(max(MARGIN * least_s, all_of_it / MOST_CHUNKS), max(LONGEST_CHUNK_S, least_s))
    return max(min(math.ceil(wanted / cost.cheapest_s), runs), 1)


def work_s(runs: int, run_seconds: float) -> float:
    """CPU seconds of so many runs, with those that are run twice."""
    return runs * run_seconds * (1 + 1 / REPEATED_OF)


def cores() -> int:
    """How many cores this process may use."""
    return (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """The runner, and the reason."""

    name: RunnerName
    why: str


def chosen(wanted: str, seconds: float, *, jobs: int, has_master: bool) -> Choice:
    """The runner for so many seconds of work."""
    if not seconds:
        return Choice("process", "every run is finished")
    about = f"about {seconds:.0f} s of work" if seconds >= 1 else "less than a second of work"
    if wanted in ("process", "pool", "spark"):
        return Choice(wanted, f"{about}, as requested")  # type: ignore[arg-type]
    if has_master and seconds >= SPARK_FROM_S:
        return Choice("spark", f"{about}, worth a session of Spark")
    if jobs == 1:
        return Choice("process", f"{about}, and one process to use")
    if seconds < POOL_FROM_S:
        return Choice("process", f"{about}, not worth starting others")
    why = f"{about} for {jobs} processes of this machine"
    return Choice("pool", f"{why}; not worth a session of Spark" if has_master else why)
