"""Sweeps: what two cores make of the work of one, and what Spark adds to a pool.

    python bench/pipeline.py [--seconds 600] [--rounds 1] [--cluster] [--json]

One grid of runs, so many seconds of work for one core, is done by one process, by a pool of
two, and by Spark with two cores, each in the same chunks, with the tables written as a sweep
writes them. The rows have to be the same. Wall time is what one waits for; CPU time is what
it costs, of this process, of the workers, and of the JVM, and stands still while others have
the cores. Sessions and pools are started inside of what is timed; so is their end.

With `--cluster` Spark works on a standalone cluster of two workers that is started for it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, cpu_used, number, once, parser_of
from bench.support.spark_cluster import cluster

from watchkeeper.pipeline.session import Wanted
from watchkeeper.pipeline.sweeps.grid import Cell, Grid
from watchkeeper.pipeline.sweeps.run import Progress, run_left
from watchkeeper.pipeline.sweeps.runner_choice import chunk_runs, look
from watchkeeper.pipeline.sweeps.runners import Pool, Process, Runner
from watchkeeper.pipeline.sweeps.spark import Spark
from watchkeeper.pipeline.sweeps.store import Manifest, Store, opened
from watchkeeper.pipeline.sweeps.summary import rows_of
from watchkeeper.scenarios import load

SCENARIO = "consumer-crash"
VARIANTS = ("hardened", "kafka_08")
CORES = 2
SPEED_UP = 1.8
SPARK_COST = 0.15


@dataclass(frozen=True, slots=True)
class Took:
    """What one runner took for all of it."""

    wall: float
    cpu: float
    work: float
    """What the chunks took, by the clocks of those who ran them."""
    rows: list[dict[str, Any]]


def seconds(text: str) -> float:
    """A number of seconds, at least one."""
    value = float(text)
    if value < 1:
        raise ArgumentTypeError("expected at least 1")
    return value


def measured(make: Callable[[Path], Runner], grid: Grid, size: int, folder: Path) -> Took:
    """Let a runner do all of it, into a folder of its own."""
    home = folder / "sweep"
    manifest = Manifest({"digest": "bench"}, size, 0.0)
    cpu, began = cpu_used(), time.perf_counter()
    with opened(home) as store:
        store.begin(manifest)
        with make(home) as runner:
            run_left(store, manifest, grid, runner, _silent)
            took = cpu_used() - cpu
        wall = time.perf_counter() - began
        rows = rows_in(store, manifest)
        work = work_in(store, manifest)
    shutil.rmtree(home)
    return Took(wall, took, work, rows)


def _silent(progress: Progress) -> None:
    """Show no progress."""


def rows_in(store: Store, manifest: Manifest) -> list[dict[str, Any]]:
    """What tells whether two sweeps came to the same."""
    columns = ["number", "verdict", "fingerprint"]
    return [row for table in store.tables(manifest, columns) for row in rows_of(table)]


def work_in(store: Store, manifest: Manifest) -> float:
    """What all chunks took."""
    tables = store.tables(manifest, ["number"])
    return sum(float(table.schema.metadata[b"watchkeeper.seconds"]) for table in tables)


@contextmanager
def runners(on_cluster: bool) -> Iterator[dict[str, Callable[[Path], Runner]]]:
    """Who is measured."""

    def spark(master: str) -> Callable[[Path], Runner]:
        return lambda home: Spark(Wanted(master, "bench", home / ".scratch", "python"))

    plain: dict[str, Callable[[Path], Runner]] = {
        "one process": lambda home: Process(),
        f"pool of {CORES}": lambda home: Pool(CORES),
    }
    if not on_cluster:
        yield {**plain, f"Spark, local[{CORES}]": spark(f"local[{CORES}]")}
        return
    with cluster(CORES) as made:
        yield {**plain, f"Spark, {CORES} workers": spark(made.master)}


def grid_of(work_s: float) -> tuple[Grid, int]:
    """A grid that takes so many seconds of one core, and the size of its chunks."""
    scenario = load(SCENARIO)
    cells = tuple(
        Cell(at, (), scenario.plan(variant), scenario.expected_of(variant))
        for at, variant in enumerate(VARIANTS)
    )
    cost = look(Grid(cells, range(1)))
    seeds = max(int(work_s / cost.mean_s / len(cells)), 1)
    grid = Grid(cells, range(seeds))
    return grid, chunk_runs(grid.runs, cost)


def measure(work_s: float, rounds: int, on_cluster: bool) -> Report:
    """Measure all runners, round by round."""
    grid, size = grid_of(work_s)
    report = Report(
        f"Sweeps of {grid.runs:,} runs in chunks of {size}, {rounds} rounds",
        ("runner", "wall s", "runs/s", "CPU s", "CPU s of runs", "CPU s beside them"),
        notes=[
            "CPU is of this process and of all that stem from it: workers, the JVM, a cluster.",
            "Beside the runs there is what it costs to start all these, and to pass things on.",
        ],
    )
    took: dict[str, list[Took]] = {}
    with runners(on_cluster) as known, tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for name, make in known.items():
                took.setdefault(name, []).append(measured(make, grid, size, Path(folder)))
                print(f"{name}: {took[name][-1].wall:.1f} s", file=sys.stderr, flush=True)
    expected = next(iter(took.values()))[0].rows
    if any(timing.rows != expected for found in took.values() for timing in found):
        raise SystemExit("the runners came to different results; nothing is worth measuring")
    best = {name: min(found, key=lambda timing: timing.wall) for name, found in took.items()}
    for name, timing in best.items():
        beside = max(timing.cpu - timing.work, 0.0)
        figures = (timing.wall, grid.runs / timing.wall, timing.cpu, timing.work, beside)
        report.rows.append([name, *map(number, figures)])
    _add_bars(report, *best.values())
    report.data["runners"] = {
        name: {
            "wall_s": timing.wall,
            "cpu_s": timing.cpu,
            "work_s": timing.work,
            "runs": grid.runs,
        }
        for name, timing in best.items()
    }
    return report


def _add_bars(report: Report, process: Took, pool: Took, spark: Took) -> None:
    """What has to be reached; by the clock on the wall, and by what it costs."""
    speed_up = process.wall / spark.wall
    wall, cpu = spark.wall / pool.wall - 1, spark.cpu / max(pool.cpu, 1e-9) - 1
    report.bars += [
        Bar("Spark against one process", "at least", SPEED_UP, "times", once(speed_up)),
        Bar("Spark over the pool, wall", "at most", SPARK_COST, "more", once(wall)),
        Bar("Spark over the pool, CPU", "at most", SPARK_COST, "more", once(cpu)),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--seconds", type=seconds, default=600.0, help="of work (600)")
    parser.add_argument("--rounds", type=int, default=1, help="how often (1)")
    parser.add_argument("--cluster", action="store_true", help="on a standalone cluster")
    options = parser.parse_args(arguments)
    measure(options.seconds, options.rounds, options.cluster).show(as_json=options.json)


if __name__ == "__main__":
    main()
