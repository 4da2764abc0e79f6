"""Reads the events of a topic from the logs of brokers: all there are, or as a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from watchkeeper.pipeline.activity.events import TOPICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WRONG = "_not_understood"
"""The column in which Spark puts text that does not have the required columns."""
MESSAGE = "partition int, offset bigint, payload binary"
"""The columns read of a message."""


@dataclass(frozen=True, slots=True)
class Events:
    """The topics of a folder of logs."""

    spark: SparkSession
    logs: str
    is_stream: bool

    def of(self, topic: str) -> DataFrame:
        """The events of a topic; as a stream, if this is one."""
        spark = self.spark
        reader = spark.readStream if self.is_stream else spark.read
        return _source(reader, self.logs, topic)

    def so_far(self, topic: str) -> DataFrame:
        """The events of a topic that there are by now, even where this is a stream."""
        return _source(self.spark.read, self.logs, topic)

    def closed(self, topic: str, late_s: int) -> Callable[[DataFrame], DataFrame]:
        """A step that keeps the windows that are closed.

        A stream knows them by its watermark. A batch computes them in the same way: `late_s`
        before the latest event of the topic.
        """
        if self.is_stream:
            return lambda frame: frame
        reached = self.so_far(topic).agg(
            (sql.max("at_ms") - sql.lit(late_s * 1000)).alias("reached_ms")
        )
        return lambda frame: (
            frame.crossJoin(sql.broadcast(reached))
            .where(sql.col("ends") <= sql.timestamp_millis("reached_ms"))
            .drop("reached_ms")
        )


def _source(reader: object, logs: str, topic: str) -> DataFrame:
    """The events of a topic, from a reader."""
    kind = TOPICS[topic]
    found = (
        reader.format("kafkalog")  # type: ignore[attr-defined]
        .schema(MESSAGE)
        .option("topics", topic)
        .load(logs)
    )
    return found.transform(lambda frame: decoded(frame, topic, kind.columns))  # type: ignore[no-any-return]


def decoded(messages: DataFrame, topic: str, columns: str) -> DataFrame:
    """Messages as events, with the moment `at` of each; a malformed message ends the job."""
    text = sql.col("payload").cast("string")
    message = sql.format_string(
        f"{topic}/%d holds no event at offset %d, but %s; expected JSON with {columns}",
        "partition",
        "offset",
        sql.substring(text, 1, 100),
    )
    is_none = sql.col(f"event.{WRONG}").isNotNull() | sql.col("event.at_ms").isNull()
    event = sql.from_json(
        text, f"{columns}, {WRONG} string", {"columnNameOfCorruptRecord": WRONG}
    )
    # in a filter, since Spark drops a column without a reader
    return (
        messages.withColumn("event", event)
        .where(sql.when(is_none, sql.raise_error(message).cast("boolean")).otherwise(True))
        .withColumn("at_ms", sql.col("event.at_ms"))
        .select(
            sql.timestamp_millis("at_ms").alias("at"),
            "at_ms",
            *(sql.col(f"event.{name}") for name in names_of(columns) if name != "at_ms"),
        )
    )


def names_of(columns: str) -> list[str]:
    """The names of written-out columns."""
    return [column.split()[0] for column in columns.split(", ")]
