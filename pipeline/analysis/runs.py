"""The runs of an analysis: everything known of each outside its trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.trace.trace import Header
from watchkeeper.pipeline.analysis.engine.api import DataFrame
from watchkeeper.pipeline.analysis.engine.engine import OPTIONAL, Engine, Schema
from watchkeeper.pipeline.analysis.facts.events import Read


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """The verdict of a run on one property."""

    property: str
    verdict: str
    counts: bool
    evidence: str
    at_us: int | None = None
    """When it was first violated; None if unknown."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run with its trace."""

    name: str
    path: str
    """Of its trace."""
    header: Header
    fingerprint: str | None = None
    """Of the judged trace; None if unknown."""
    verdict: str | None = None
    recorded: tuple[RecordedVerdict, ...] = ()
    command: str = ""
    """Which runs it again."""
    is_swept: bool = False
    """Whether it is in the table of a sweep, which was judged as a whole."""
    plan: Plan | None = None
    why_no_plan: str = ""

    @property
    def violated(self) -> tuple[str, ...]:
        """The properties that count and are violated."""
        return tuple(
            verdict.property
            for verdict in self.recorded
            if verdict.counts and verdict.verdict == "violated"
        )


RUNS = Schema(
    {
        "run": "string",
        "scenario": "string",
        "variant": "string",
        "world": "string",
        "seed": "long",
        "partial": "boolean",
        "has_plan": "boolean",
        "has_groups": "boolean",
        "has_messages": "boolean",
        "has_controller": "boolean",
        "keeps_offsets": "boolean",
        "events": "long",
        "end_us": "long",
        "fingerprint": "string",
        "judged_fingerprint": "string" + OPTIONAL,
        "verdict": "string" + OPTIONAL,
    }
)
"""A row a run; without a plan `has_groups` is true, since nothing contradicts it, and
`has_messages`, `has_controller` and `keeps_offsets` are false, since their processes are unknown.
`keeps_offsets`: a member keeps offsets in Kafka."""

SAID = Schema(
    {
        "run": "string",
        "property": "string",
        "recorded": "string",
        "counts": "boolean",
        "evidence": "string",
        "recorded_at_us": "long" + OPTIONAL,
    }
)
"""A row a property of a run that was judged."""


def runs_table(engine: Engine, runs: Iterable[Run], read: Iterable[Read]) -> DataFrame:
    """The runs as a table."""
    traces = {trace.run: trace for trace in read}
    return engine.made([_row(run, traces[run.name]) for run in runs], RUNS)


def _row(run: Run, read: Read) -> tuple[Any, ...]:
    header = run.header
    return (
        *(run.name, header.scenario, header.variant, header.world, header.seed, header.partial),
        run.plan is not None,
        run.plan is None or bool(run.plan.groups),
        run.plan is not None
        and any(cluster.storage is not None for cluster in run.plan.clusters),
        run.plan is not None and run.plan.elects_controllers,
        run.plan is not None and run.plan.keeps_offsets_in_kafka,
        *(read.events, read.end_us, read.fingerprint, run.fingerprint, run.verdict),
    )


def recorded_table(engine: Engine, runs: Iterable[Run]) -> DataFrame:
    """The verdicts of the runs, as a table."""
    rows = [
        (
            run.name,
            verdict.property,
            verdict.verdict,
            verdict.counts,
            verdict.evidence,
            verdict.at_us,
        )
        for run in runs
        for verdict in run.recorded
    ]
    return engine.made(rows, SAID)
