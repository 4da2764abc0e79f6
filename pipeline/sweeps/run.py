"""A whole sweep: the self-test, the remaining chunks, the traces."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.sweep_summary import Example
from watchkeeper.pipeline.sweeps import trace_sampling
from watchkeeper.pipeline.sweeps.chunk import run_chunk, run_row, trace_runs
from watchkeeper.pipeline.sweeps.grid import Cell, Grid
from watchkeeper.pipeline.sweeps.rows import RunRow
from watchkeeper.pipeline.sweeps.runners import Runner
from watchkeeper.pipeline.sweeps.store import SELF_TEST, Manifest, Store
from watchkeeper.pipeline.sweeps.summary import rows_of

TRACES_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The self-test: a run of a mutant in which it is known to be caught."""

    cell: Cell
    seed: int
    violates: str
    """The property that catches it."""


class SelfTestFailed(Exception):
    """The self-test did not fail: verdicts of the sweep cannot be trusted."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a sweep."""

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


def check_self_test(
    store: Store, manifest: Manifest, runner: Runner, self_test: SelfTest
) -> None:
    """See that a failure is seen: by the runner, by the judges, and in the table."""
    [(_, row)] = runner.each(run_self_test, [self_test])
    path = store.home / SELF_TEST / "part-00000.parquet"
    store.commit(path, (row,), manifest, 0.0)
    [stored] = rows_of(store.read(path, manifest, ["run_id", "verdict", "violated"]))
    was_seen = self_test.violates in stored["violated"]
    if stored["verdict"] != Verdict.VIOLATED.value or not was_seen:
        raise SelfTestFailed(
            f"this sweep is invalid: its self-test {stored['run_id']}, which was made to "
            f"violate {self_test.violates}, came out as {stored['verdict']} "
            f"({', '.join(stored['violated']) or 'nothing violated'}); what such a sweep says "
            "of other runs means nothing"
        )


def run_self_test(self_test: SelfTest) -> RunRow:
    """Run the self-test."""
    return run_row(self_test.cell, self_test.seed, -1, self_test=True)


def run_left(store: Store, manifest: Manifest, grid: Grid, runner: Runner, tell: Tell) -> None:
    """Run the chunks that are not finished, and commit each."""
    finished = store.finished()
    size = manifest.chunk_runs
    numbers = [number for number in range(grid.chunks(size)) if number not in finished]
    done = grid.runs - sum(grid.chunk(number, size).runs for number in numbers)
    made = violated = 0
    began = time.monotonic()
    for chunk, worked in runner.each(run_chunk, (grid.chunk(number, size) for number in numbers)):
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
    beside: Mapping[str, Mapping[str, bytes]],
) -> tuple[list[str], list[Example]]:
    """Keep the traces of some runs; return them, and those whose second run differed.

    `beside` maps a scenario to the files that are kept beside its traces.
    """
    chosen = trace_sampling.selected(store.tables(manifest, trace_sampling.COLUMNS), most)
    known = {candidate.run_id: candidate for candidate in chosen}
    left = [candidate for candidate in chosen if not store.trace(candidate.run_id).exists()]
    differing = []
    asked = trace_sampling.batches(left, grid, tuple(sorted(versions.items())), TRACES_AT_ONCE)
    for _, found in runner.each(trace_runs, asked):
        for trace in found:
            was = known[trace.run_id]
            if trace.fingerprint == was.fingerprint:
                scenario = grid.cells[was.cell].plan.name
                store.keep_trace(trace.run_id, trace.lines, beside[scenario])
            else:
                differing.append(Example(was.cell, was.seed, trace.run_id))
    return list(known), differing
