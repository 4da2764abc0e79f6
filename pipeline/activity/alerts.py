"""Alerts: hosts that answer slowly, over windows of time that slide.

Hosts send some of what they measure late. What is sent within `late_s` counts in the window
in which it was measured. What is sent later still is put into a table of its own: that is a
matter of each measurement alone, so a stream and a look back come to the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from pipeline.activity.settings import Rules
from pipeline.activity.windows import per_window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pipeline.activity.reading import Events

ALERTS = (
    "begins timestamp, ends timestamp, host string, name string, samples bigint, "
    "mean double, worst int"
)
TOO_LATE = "at timestamp, sent timestamp, host string, name string, value int"
COUNTS = {
    "samples": sql.count,
    "mean": sql.avg,
    "worst": sql.max,
}


def alerts(events: Events, rules: Rules) -> DataFrame:
    """Windows in which the mean of what a host measured was too high."""
    rule = rules.alert
    return (
        events.of("metrics")
        .where(~is_too_late(rules))
        .transform(
            per_window(
                ["host", "name"],
                {name: count("value") for name, count in COUNTS.items()},
                window_s=rule.window_s,
                slide_s=rule.slide_s,
                late_s=rules.late_s,
            )
        )
        .where(sql.col("samples") >= rule.least_samples)
        .where(sql.col("mean") >= rule.mean)
        .transform(events.closed("metrics", rules.late_s))
    )


def too_late(events: Events, rules: Rules) -> DataFrame:
    """What was sent too late to count in any window."""
    return (
        events.of("metrics")
        .where(is_too_late(rules))
        .select("at", sql.timestamp_millis("sent_ms").alias("sent"), "host", "name", "value")
    )


def is_too_late(rules: Rules) -> Column:
    """Whether a measurement was sent so late that nobody waits for it."""
    return sql.col("sent_ms") - sql.col("at_ms") > rules.late_s * 1000
