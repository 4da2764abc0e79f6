"""The data source: `spark.read.format("kafkalog").load(FOLDER)`, and the same as a stream.

With the option `brokers`, the logs are those of live brokers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.filters import Wish, pushed
from watchkeeper.pipeline.kafkalog.logs import cut, read
from watchkeeper.pipeline.kafkalog.options import Options, options_of
from watchkeeper.pipeline.kafkalog.scan.split_reader import COLUMNS, Asked, Counts
from watchkeeper.pipeline.kafkalog.scan.splits import LogRange, bundles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from watchkeeper.pipeline.kafkalog.stream import LogStreamReader

NAME = "kafkalog"
TYPES: dict[pa.DataType, DataType] = {
    pa.string(): StringType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.binary(): BinaryType(),
    pa.bool_(): BooleanType(),
}
SCHEMA = StructType([StructField(column.name, TYPES[column.kind]) for column in COLUMNS.values()])
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Register `kafkalog` with a session, with filter pushdown if the option asks for it."""
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(KafkaLog)


class Bundle(InputPartition):
    """The splits of one task."""

    def __init__(self, splits: list[LogRange]) -> None:
        super().__init__(None)
        self.splits = splits


class KafkaLog(DataSource):
    """The logs of brokers of Kafka 0.7 and 0.8, read from their files or from the brokers."""

    @classmethod
    def name(cls) -> str:
        """Its name in `format(...)`."""
        return NAME

    def schema(self) -> StructType:
        """The columns; a schema of some of them, given by the user, is read faster."""
        return SCHEMA

    def reader(self, schema: StructType) -> LogReader:
        """A reader of the present messages."""
        options = options_of(self.options)
        reader = FilteringLogReader if options.pushes_filters else LogReader
        return reader(options, columns_of(schema))

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802
        """A reader of present and future messages."""
        from watchkeeper.pipeline.kafkalog.stream import LogStreamReader

        return LogStreamReader(options_of(self.options), columns_of(schema))


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns of a schema; PipelineProblem if one is unknown or of another type."""
    known = {field.name: field.dataType for field in SCHEMA.fields}
    for field in schema.fields:
        if field.name not in known:
            raise PipelineProblem(
                f"a message has no column {field.name!r}; it has {', '.join(known)}"
            )
        if field.dataType != known[field.name]:
            raise PipelineProblem(
                f"the column {field.name} is of type {known[field.name].simpleString()}, not "
                f"{field.dataType.simpleString()}; cast it after it is read"
            )
    return tuple(schema.fieldNames())


class LogReader(DataSourceReader):
    """Reads logs as they are now."""

    def __init__(self, options: Options, columns: tuple[str, ...]) -> None:
        self.options = options
        self.columns = columns
        self.wish = Wish()

    def partitions(self) -> list[InputPartition]:
        """The bundles of splits, one for each task."""
        wish, split_bytes = self.wish, self.options.split_bytes
        splits = [
            split
            for log in self.options.logs()
            if wish.has(log)
            for split in cut(log, wish.low, wish.high, split_bytes=split_bytes).splits
        ]
        return [Bundle(some) for some in bundles(splits) or [[]]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages in the splits of a task."""
        assert isinstance(partition, Bundle), "only bundles are handed out"
        return read_bundle(partition, self.options, self.columns)


class FilteringLogReader(LogReader):
    """Reads only the messages that match the filters of a query.

    It is used on request only. Spark 4.2 and 4.3 keep the filters with the DataFrame that was
    loaded, and not with the query. Any other use of that DataFrame, even in the same query, then
    reads what the last filter has left.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Accept filters; return those that Spark still has to apply."""
        found = pushed(filters)
        self.wish = found.wish
        return found.left


def read_bundle(
    bundle: Bundle, options: Options, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """The messages in some splits; skipped ones are counted on standard error."""
    asked = Asked(columns, options.on_corrupt, options.gaps)
    for split in bundle.splits:
        counts = Counts()
        yield from read(split, asked, counts)
        if counts.corrupt and options.on_corrupt == "skip":
            print(
                f"kafkalog: skipped {counts.corrupt} damaged in {split}, offsets "
                f"{split.from_offset} to {split.to_offset} (in {split.where})",
                file=sys.stderr,
            )
