"""A whole sweep: the canary, the chunks that are left, the traces."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from model.sweeps import Example
from model.verdicts import Verdict
from pipeline.sweeps import tracing
from pipeline.sweeps.grid import Cell, Grid
from pipeline.sweeps.rows import RunRow
from pipeline.sweeps.runners import Runner
from pipeline.sweeps.store import CANARY, Manifest, Store
from pipeline.sweeps.summing import rows_of
from pipeline.sweeps.work import run_chunk, run_row, trace_runs

TRACES_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class Canary:
    """A run that has to fail: a planted mistake, where it is known to be caught."""

    cell: Cell
    seed: int
    violates: str
    """The property that catches it."""


class CanaryLives(Exception):
    """The canary did not fail: what the sweep says of other runs means nothing."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep has come."""

    done: int
    runs: int
    violated: int
    rate: float
    """Runs a second, of those that were made since the command began."""

    @property
    def left_s(self) -> float:
        """How long it will probably go on."""
        return (self.runs - self.done) / self.rate if self.rate else float("inf")


Tell = Callable[[Progress], None]


def check_canary(store: Store, manifest: Manifest, runner: Runner, canary: Canary) -> None:
    """See that a failure is seen: by the runner, by the judges, and in the table."""
    [(_, row)] = runner.each(run_canary, [canary])
    path = store.home / CANARY / "part-00000.parquet"
    store.commit(path, (row,), manifest, 0.0)
    [told] = rows_of(store.read(path, manifest, ["run_id", "verdict", "violated"]))
    if told["verdict"] != Verdict.VIOLATED.value or canary.violates not in told["violated"]:
        raise CanaryLives(
            f"this sweep is invalid: its canary {told['run_id']}, which was made to violate "
            f"{canary.violates}, came out as {told['verdict']} "
            f"({', '.join(told['violated']) or 'nothing violated'}); what such a sweep says of "
            "other runs means nothing"
        )


def run_canary(canary: Canary) -> RunRow:
    """Run the canary."""
    return run_row(canary.cell, canary.seed, -1, canary=True)


def run_left(store: Store, manifest: Manifest, grid: Grid, runner: Runner, tell: Tell) -> None:
    """Run the chunks that are not finished, and commit each."""
    finished = store.finished()
    size = manifest.chunk_runs
    numbers = [number for number in range(grid.chunks(size)) if number not in finished]
    done = grid.runs - sum(grid.chunk(number, size).runs for number in numbers)
    made = violated = 0
    began = time.monotonic()
    for chunk, worked in runner.each(run_chunk, (grid.chunk(one, size) for one in numbers)):
        store.commit(store.part(chunk.number), worked.rows, manifest, worked.seconds)
        made += len(worked.rows)
        violated += sum(row.verdict == Verdict.VIOLATED.value for row in worked.rows)
        rate = made / max(time.monotonic() - began, 1e-9)
        tell(Progress(done + made, grid.runs, violated, rate))


def keep_traces(
    store: Store,
    manifest: Manifest,
    grid: Grid,
    runner: Runner,
    *,
    most: int,
    versions: Mapping[str, str],
) -> tuple[list[str], list[Example]]:
    """Keep the traces of some runs; which, and those whose run was another this time."""
    chosen = tracing.selected(store.tables(manifest, tracing.COLUMNS), most)
    known = {one.run_id: one for one in chosen}
    left = [one for one in chosen if not store.trace(one.run_id).exists()]
    differing = []
    asked = tracing.batches(left, grid, tuple(sorted(versions.items())), TRACES_AT_ONCE)
    for _, found in runner.each(trace_runs, asked):
        for one in found:
            was = known[one.run_id]
            if one.fingerprint == was.fingerprint:
                store.write(store.trace(one.run_id), one.lines)
            else:
                differing.append(Example(was.cell, was.seed, one.run_id))
    return list(known), differing
