"""The metrics with one value a run and a group, in one row of each."""

from __future__ import annotations

from watchkeeper.pipeline.analysis import metrics
from watchkeeper.pipeline.analysis.cross_check import Second
from watchkeeper.pipeline.analysis.engine.api import DataFrame, sql
from watchkeeper.pipeline.analysis.facts.intervals import Facts
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.lags import COMMITTED, HANDED_ON, lagging
from watchkeeper.pipeline.analysis.properties.progress import GROUP

OF_WORK = ("attempts", "reads", "operations", "changes", "disturbances", "rest_after_us")
OF_MESSAGES = ("accepted", "consumed", "lost", "repeated", "refused", "unread", "coming")


def measured(
    tables: Tables, found: Facts, second: Second, runs: DataFrame, groups: DataFrame
) -> DataFrame:
    """Compute the metrics; those with one value a run and a group, as rows."""
    tables.keep("intervals", metrics.intervals(found, runs))
    tables.keep("herd", metrics.herd(found, second.rests.spans, groups))
    moved = tables.keep("moves", metrics.moves(found, second.rests.looks))
    messages = second.messages.select(*GROUP, *OF_MESSAGES)
    rows = (
        second.work.select(*GROUP, *OF_WORK)
        .join(moved, GROUP, "left")
        .join(_overlaps(tables, found, runs), GROUP, "left")
        .join(_windows(tables, found, second, runs), "run", "left")
        .join(tables.keep("throughput", metrics.throughput(found.events, runs)), "run", "left")
        .join(tables.keep("cache", metrics.cache_hits(found.events)), "run", "left")
        .join(messages, GROUP, "left")
        .join(_lags(tables, found), GROUP, "left")
        .na.fill(0, ["overlap_us", "gap_us", "zombie_window_us", "zombie_total_us", "moves"])
    )
    return tables.keep("measures", rows)


def _overlaps(tables: Tables, found: Facts, runs: DataFrame) -> DataFrame:
    """A row a group: how long its partitions were fetched by several members, and by none."""
    odd = tables.keep("overlaps_and_gaps", metrics.coverage_of_partitions(found, runs))
    lasted = sql.col("to_us") - sql.col("from_us")
    return odd.groupBy(*GROUP).agg(
        sql.sum(sql.when(sql.col("number") > 1, lasted)).alias("overlap_us"),
        sql.sum(sql.when(sql.col("number") < 1, lasted)).alias("gap_us"),
    )


def _windows(tables: Tables, found: Facts, second: Second, runs: DataFrame) -> DataFrame:
    """A row a run: how long its processes fetched with dead sessions, at most and in all."""
    zombies = tables.keep("zombies", metrics.zombies(found, second.rests.restless, runs))
    lasted = sql.col("to_us") - sql.col("from_us")
    return zombies.groupBy("run").agg(
        sql.max(lasted).alias("zombie_window_us"), sql.sum(lasted).alias("zombie_total_us")
    )


def _lags(tables: Tables, found: Facts) -> DataFrame:
    """A row a group: how far behind it was at most, and in the end, over all its partitions."""
    lags = tables.keep("lags_by_group", lagging(found, tables).groups)
    of_handed, of_committed = (
        lags.where(sql.col("behind") == what) for what in (HANDED_ON, COMMITTED)
    )
    uncommitted = of_committed.select(
        *GROUP,
        sql.col("most_lag").alias("most_uncommitted"),
        sql.col("last_lag").alias("last_uncommitted"),
    )
    return of_handed.select(*GROUP, "most_lag", "last_lag").join(uncommitted, GROUP, "full")
