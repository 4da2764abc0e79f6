"""The warehouse: a table for each topic, in a folder for each day of events.

A late event goes to the day on which it happened. As a stream it is the daily load: each run
writes the events since the last one, each once. A batch writes every day again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from watchkeeper.pipeline.activity.events import TOPICS
from watchkeeper.pipeline.activity.settings import Rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from watchkeeper.pipeline.activity.log_input import Events

DAY = "day"
STORED = tuple(topic for topic in TOPICS if topic != "labels")


def columns_of(topic: str) -> str:
    """The columns of a topic's table."""
    return f"at timestamp, {TOPICS[topic].columns}, {DAY} date"


def stored(topic: str) -> Callable[[Events, Rules], DataFrame]:
    """The job that makes the table of a topic."""

    def make(events: Events, rules: Rules) -> DataFrame:
        return events.of(topic).transform(with_day)

    return make


def with_day(events: DataFrame) -> DataFrame:
    """Events, with the day on which they happened, in UTC."""
    return events.withColumn(DAY, sql.to_date("at"))
