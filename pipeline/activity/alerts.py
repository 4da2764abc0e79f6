"""Alerts on slow hosts, over sliding windows of time.

Hosts send some measurements late. One sent within `late_s` counts in the window in which it was
measured. One sent later goes to a table of its own: that depends on the measurement alone, so
a stream and a batch give the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from watchkeeper.pipeline.activity.settings import Rules
from watchkeeper.pipeline.activity.windows import per_window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from watchkeeper.pipeline.activity.log_input import Events

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
    """Windows in which the mean latency of a host was too high."""
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
    """Measurements sent too late to count in any window."""
    return (
        events.of("metrics")
        .where(is_too_late(rules))
        .select("at", sql.timestamp_millis("sent_ms").alias("sent"), "host", "name", "value")
    )


def is_too_late(rules: Rules) -> Column:
    """Whether a measurement was sent too late to count."""
    return sql.col("sent_ms") - sql.col("at_ms") > rules.late_s * 1000
