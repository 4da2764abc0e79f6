"""The work of one chunk: every run simulated, judged, and turned into a row.

Workers run this module, in this process or on another machine: it needs the model, the
simulation, and nothing that writes tables.
"""

from __future__ import annotations

import gc
import time
import traceback
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from watchkeeper.model.judgement.judge import Judgement, judge
from watchkeeper.model.judgement.signature import doubt_of, signatures_of
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.model.trace.counts import moves_in
from watchkeeper.pipeline.sweeps.grid import Cell, Chunk, is_repeated
from watchkeeper.pipeline.sweeps.rows import FAILED, EffectRow, PropertyRow, RunRow
from watchkeeper.sim.world import Interrupted, Simulated, Tell, simulate


@dataclass(frozen=True, slots=True)
class Worked:
    """A chunk that was run."""

    rows: tuple[RunRow, ...]
    seconds: float
    """CPU seconds."""


def run_chunk(chunk: Chunk) -> Worked:
    """Run every run of a chunk."""
    began = time.process_time()
    rows = tuple(_rows(chunk))
    gc.collect()  # a run leaves reference cycles where the collector hardly ever looks by itself
    return Worked(rows, time.process_time() - began)


def _rows(chunk: Chunk) -> Iterator[RunRow]:
    for seed_range in chunk.stretches:
        for at, seed in enumerate(seed_range.seeds):
            yield run_row(seed_range.cell, seed, seed_range.first + at)


def run_row(cell: Cell, seed: int, number: int, *, self_test: bool = False) -> RunRow:
    """Run one seed of a cell, twice if it is due, and return its row."""
    run_id = cell.run_id(seed)
    repeated = is_repeated(run_id, number)
    known: dict[str, Any] = {
        "run_id": run_id,
        "number": number,
        "cell": cell.number,
        "scenario": cell.plan.name,
        "variant": cell.plan.variant,
        "parameters": dict(cell.parameters),
        "seed": seed,
        "self_test": self_test,
        "repeated": repeated,
    }
    try:
        done = _simulated(cell, seed)
        judgement = judge(cell.plan, done.trace, done.effects)
        fingerprint = done.trace.fingerprint
        again = _simulated(cell, seed).trace.fingerprint if repeated else fingerprint
    except Exception as error:  # the error is part of the row
        return RunRow(**known, verdict=FAILED, signatures=(_failure(error),))
    return RunRow(
        **known,
        **_told(cell, done, judgement),
        fingerprint=fingerprint,
        fingerprint_again=None if again == fingerprint else again,
    )


class OutOfTime(Exception):
    """A run was given up, since its time was over."""


def signatures_until(until_s: float, cell: Cell, seed: int) -> tuple[str, ...]:
    """The failure signatures of a run; OutOfTime where it is not over by then."""

    def check(now_us: int, end_us: int) -> None:
        if monotonic() > until_s:
            raise OutOfTime(f"at {now_us} of {end_us} virtual us")

    check(0, 0)
    try:
        done = _simulated(cell, seed, tell=check)
        return signatures_of(judge(cell.plan, done.trace, done.effects).findings)
    except OutOfTime:
        raise
    except Exception as error:  # an error is a kind of failure, too
        return (_failure(error),)


def _simulated(
    cell: Cell,
    seed: int,
    versions: Mapping[str, str] | None = None,
    tell: Tell | None = None,
) -> Simulated:
    try:
        return simulate(cell.plan, seed, profile=cell.profile, versions=versions, tell=tell)
    except Interrupted:
        raise KeyboardInterrupt from None


def _failure(error: Exception) -> str:
    """Where a run broke off, with its error: the same for every seed with that error."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"the run failed: {type(error).__name__} in {last.name}"


def _told(cell: Cell, done: Simulated, judgement: Judgement) -> dict[str, Any]:
    """The columns of a run and its judgement."""
    groups = judgement.stats["groups"].values()
    rests = [group["rest_after_us"] for group in groups]
    return {
        "verdict": judgement.verdict.value,
        "met": None if cell.expected is None else cell.expected.met_by(judgement),
        "violated": tuple(judgement.violated()),
        "signatures": signatures_of(judgement.findings),
        "doubt": doubt_of(judgement.findings) or None,
        "properties": {finding.claim.name: _property(finding) for finding in judgement.findings},
        "effects": tuple(map(_effect, done.effects)),
        "time_to_rest_us": None if None in rests else max(rests, default=None),
        "attempts": sum(group["attempts"] for group in groups),
        "reads": sum(group["reads"] for group in groups),
        "operations": done.operations,
        "moves": moves_in(done.trace),
        "changes": sum(group["changes"] for group in groups),
        "zombie_window_us": judgement.stats["zombie_window_us"],
        "failed_turns": sum(number for number, _, _ in judgement.failed_turns.values()),
        "events": len(done.trace),
        "virtual_us": judgement.stats["virtual_us"],
    }


def _property(finding: Finding) -> PropertyRow:
    evidence = None if finding.verdict is Verdict.HOLDS else finding.evidence
    return PropertyRow(finding.verdict.value, finding.counts, evidence, finding.at_us)


def _effect(effect: FaultEffect) -> EffectRow:
    return EffectRow(effect.action.label, effect.at_us, dict(effect.counts))


# --- traces ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wanted:
    """A run whose trace is to be kept."""

    cell: Cell
    seed: int
    versions: tuple[tuple[str, str], ...]
    """The software versions in the header of the trace."""


@dataclass(frozen=True, slots=True)
class Traced:
    """The trace of a run, as the compressed bytes of its file."""

    run_id: str
    fingerprint: str
    compressed: bytes

    @property
    def lines(self) -> bytes:
        """The bytes of the file."""
        return zlib.decompress(self.compressed)


def trace_runs(wanted: tuple[Wanted, ...]) -> list[Traced]:
    """Run some runs again, for their traces."""
    return [_traced(run) for run in wanted]


def _traced(wanted: Wanted) -> Traced:
    trace = _simulated(wanted.cell, wanted.seed, dict(wanted.versions)).trace
    lines = zlib.compress(b"".join(trace.lines()), level=1)
    return Traced(wanted.cell.run_id(wanted.seed), trace.fingerprint, lines)
