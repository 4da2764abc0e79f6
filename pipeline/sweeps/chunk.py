"""What a chunk comes to: every run of it, simulated, judged, and told in a row.

This is what workers run, in this process or on another machine: it needs the model, the
simulation, and nothing that writes tables.
"""

from __future__ import annotations

import gc
import time
import traceback
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from model.counting import moves_in
from model.faults import Effect
from model.properties import Judgement, judge
from model.signatures import doubt_of, signature_of
from model.verdicts import Finding, Verdict
from pipeline.sweeps.grid import Cell, Chunk, is_repeated
from pipeline.sweeps.rows import FAILED, EffectRow, PropertyRow, RunRow
from sim.world import Interrupted, Simulated, simulate


@dataclass(frozen=True, slots=True)
class Worked:
    """A chunk that was run."""

    rows: tuple[RunRow, ...]
    seconds: float
    """What it took of a core."""


def run_chunk(chunk: Chunk) -> Worked:
    """Run every run of a chunk."""
    began = time.process_time()
    rows = tuple(_rows(chunk))
    gc.collect()  # a run leaves circles where the collector by itself hardly ever looks
    return Worked(rows, time.process_time() - began)


def _rows(chunk: Chunk) -> Iterator[RunRow]:
    for stretch in chunk.stretches:
        for at, seed in enumerate(stretch.seeds):
            yield run_row(stretch.cell, seed, stretch.first + at)


def run_row(cell: Cell, seed: int, number: int, *, canary: bool = False) -> RunRow:
    """Run one seed of a cell, twice if it is its turn, and tell what came of it."""
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
        "canary": canary,
        "repeated": repeated,
    }
    try:
        done = _simulated(cell, seed)
        judgement = judge(cell.plan, done.trace, done.effects)
        fingerprint = done.trace.fingerprint
        again = _simulated(cell, seed).trace.fingerprint if repeated else fingerprint
    except Exception as error:  # it is told in the row, and in the end
        return RunRow(**known, verdict=FAILED, signature=_failure(error))
    return RunRow(
        **known,
        **_told(cell, done, judgement),
        fingerprint=fingerprint,
        fingerprint_again=None if again == fingerprint else again,
    )


def _simulated(cell: Cell, seed: int, versions: Mapping[str, str] | None = None) -> Simulated:
    try:
        return simulate(cell.plan, seed, profile=cell.profile, versions=versions)
    except Interrupted:
        raise KeyboardInterrupt from None


def _failure(error: Exception) -> str:
    """Where a run broke off, and of what: it is the same for every seed that breaks there."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"the run failed: {type(error).__name__} in {last.name}"


def _told(cell: Cell, done: Simulated, judgement: Judgement) -> dict[str, Any]:
    """What a row says of a run and its judgement."""
    groups = judgement.stats["groups"].values()
    rests = [one["rest_after_us"] for one in groups]
    return {
        "verdict": judgement.verdict.value,
        "met": None if cell.expected is None else cell.expected.met_by(judgement),
        "violated": tuple(judgement.violated()),
        "signature": signature_of(judgement.findings) or None,
        "doubt": doubt_of(judgement.findings) or None,
        "properties": {one.claim.name: _property(one) for one in judgement.findings},
        "effects": tuple(map(_effect, done.effects)),
        "time_to_rest_us": None if None in rests else max(rests, default=None),
        "attempts": sum(one["attempts"] for one in groups),
        "reads": sum(one["reads"] for one in groups),
        "operations": done.operations,
        "moves": moves_in(done.trace),
        "changes": sum(one["changes"] for one in groups),
        "zombie_window_us": judgement.stats["zombie_window_us"],
        "failed_turns": sum(number for number, _, _ in judgement.failed_turns.values()),
        "events": len(done.trace),
        "virtual_us": judgement.stats["virtual_us"],
    }


def _property(one: Finding) -> PropertyRow:
    evidence = None if one.verdict is Verdict.HOLDS else one.evidence
    return PropertyRow(one.verdict.value, one.counts, evidence, one.at_us)


def _effect(effect: Effect) -> EffectRow:
    return EffectRow(effect.action.label, effect.at_us, dict(effect.counts))


# --- traces ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wanted:
    """A run whose trace is to be kept."""

    cell: Cell
    seed: int
    versions: tuple[tuple[str, str], ...]
    """What the header of the trace says of the software."""


@dataclass(frozen=True, slots=True)
class Traced:
    """The trace of a run, as the bytes of its file, compressed on their way."""

    run_id: str
    fingerprint: str
    compressed: bytes

    @property
    def lines(self) -> bytes:
        """The bytes of the file."""
        return zlib.decompress(self.compressed)


def trace_runs(wanted: tuple[Wanted, ...]) -> list[Traced]:
    """Run some runs again, for their traces."""
    return [_traced(one) for one in wanted]


def _traced(wanted: Wanted) -> Traced:
    trace = _simulated(wanted.cell, wanted.seed, dict(wanted.versions)).trace
    lines = zlib.compress(b"".join(trace.lines()), level=1)
    return Traced(wanted.cell.run_id(wanted.seed), trace.fingerprint, lines)
