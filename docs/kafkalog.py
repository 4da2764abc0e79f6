"""The page of the data source, from its columns and options."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from watchkeeper.pipeline.kafkalog.options import OPTIONS
from watchkeeper.pipeline.kafkalog.scan.split_reader import COLUMNS


def kafkalog_page(
    page: Callable[..., str], table: Callable[[list[str], Iterator[list[str]]], str]
) -> str:
    """The columns and options of `kafkalog`."""
    columns = ([f"`{column.name}`", str(column.kind), column.says] for column in COLUMNS.values())
    options = ([f"`{option.name}`", option.default or "-", option.says] for option in OPTIONS)
    return page(
        "The data source `kafkalog`",
        'After `register(spark)`, `spark.read.format("kafkalog").load(FOLDER)` and '
        '`spark.readStream.format("kafkalog")` read the logs of brokers of Kafka 0.7 and 0.8 '
        "from their files. [How to load logs](../how-to/load-logs.md) shows both. With the "
        "option `brokers`, and `load()` without a folder, they read [live brokers]"
        "(../how-to/load-from-brokers.md).",
        "Each row is a message:",
        table(["column", "type", "meaning"], columns),
        "Reading is faster with a schema of fewer columns, such as "
        "`.schema('offset bigint, payload binary')`.",
        table(["option", "default", "meaning"], options),
    )
