"""Counting in windows of the time at which something happened, not at which it was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def per_window(
    keys: Sequence[str],
    counts: dict[str, Column],
    *,
    window_s: int,
    late_s: int,
    slide_s: int | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """A step that counts for each window and key; windows start every `slide_s`.

    A stream waits `late_s` for events earlier than the latest it has read, and then closes a
    window for good.
    """
    window = sql.window("at", _seconds(window_s), _seconds(slide_s or window_s))

    def step(events: DataFrame) -> DataFrame:
        return (
            events.withWatermark("at", _seconds(late_s))
            .groupBy(window.alias("window"), *keys)
            .agg(*(count.alias(name) for name, count in counts.items()))
            .select(
                sql.col("window.start").alias("begins"),
                sql.col("window.end").alias("ends"),
                *keys,
                *counts,
            )
        )

    return step


def different(column: str) -> Column:
    """How many different values there are."""
    return sql.size(sql.collect_set(column))


def _seconds(number: int) -> str:
    return f"{number} seconds"
