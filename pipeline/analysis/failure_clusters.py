"""Failures with one signature: how many runs have it, and the smallest of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, log, log1p
from pathlib import Path

from watchkeeper.model.sweep_summary import PER, Share
from watchkeeper.pipeline.analysis.engine.api import DataFrame, sql
from watchkeeper.pipeline.analysis.engine.engine import Engine, Schema

JUDGED = Schema(
    {
        "run": "string",
        "scenario": "string",
        "variant": "string",
        "seed": "long",
        "verdict": "string",
        "signatures": "array<string>",
        "events": "long",
    }
)
"""A row a run that was judged, whether or not its trace was kept."""

SURE = 0.95


@dataclass(frozen=True, slots=True)
class Cluster:
    """A failure signature, and the runs that have it."""

    signature: str
    share: Share
    """How many of all runs of the same scenarios and variants."""
    scenarios: int
    smallest: str
    """The failing run with the fewest events."""
    smallest_events: int
    smallest_seed: int

    @property
    def runs_to_find(self) -> tuple[int, int | None]:
        """How many seeds find it with 95 % certainty, for the upper and the lower end of the
        interval; None if the lower end is 0."""
        low, high = self.share.interval
        most = needed(low / PER)
        return int(needed(high / PER)), None if most == inf else int(most)


def needed(probability: float) -> float:
    """How many runs show at least one failure with 95 % certainty."""
    if probability >= 1:
        return 1
    return inf if probability <= 0 else ceil(log(1 - SURE) / log1p(-probability))


def swept_runs(engine: Engine, homes: list[Path]) -> DataFrame:
    """The runs of sweeps, from their tables."""
    found = engine.made([], JUDGED)
    for home in homes:
        table = engine.read(home)
        found = found.unionByName(
            table.where("NOT self_test").select(
                sql.col("run_id").alias("run"),
                *("scenario", "variant", "seed", "verdict", "signatures", "events"),
            )
        )
    return found


def clusters(judged: DataFrame) -> list[Cluster]:
    """The failure signatures, the most frequent first."""
    cell = ["scenario", "variant"]
    failed = judged.where("verdict = 'violated'").withColumn(
        "signature", sql.explode("signatures")
    )
    runs = judged.groupBy(*cell).agg(sql.count("*").alias("of"))
    by_cell = failed.groupBy("signature", *cell).agg(
        sql.count("*").alias("number"),
        sql.min(sql.struct("events", "seed", "run")).alias("smallest"),
    )
    rows = (
        by_cell.join(runs, cell)
        .groupBy("signature")
        .agg(
            sql.sum("number").alias("number"),
            sql.sum("of").alias("of"),
            sql.count("*").alias("cells"),
            sql.min("smallest").alias("smallest"),
        )
        .orderBy(sql.desc("number"), "signature")
    )
    return [
        Cluster(
            row.signature,
            Share(row.number, row.of),
            row.cells,
            row.smallest.run,
            row.smallest.events,
            row.smallest.seed,
        )
        for row in rows.collect()
    ]
