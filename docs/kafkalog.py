"""The page of the data source: its columns and its options, as the code has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipeline.kafkalog.options import OPTIONS
from pipeline.kafkalog.reading import COLUMNS


def kafkalog_page(
    page: Callable[..., str], table: Callable[[list[str], Iterator[list[str]]], str]
) -> str:
    """What `kafkalog` gives, and what it can be told."""
    columns = ([f"`{one.name}`", str(one.kind), one.says] for one in COLUMNS.values())
    options = ([f"`{one.name}`", one.default or "-", one.says] for one in OPTIONS)
    return page(
        "The data source `kafkalog`",
        'After `register(spark)`, `spark.read.format("kafkalog").load(FOLDER)` and '
        '`spark.readStream.format("kafkalog")` read the logs of brokers of Kafka 0.7 and 0.8 '
        "from their files. [How to load logs](../how-to/load-logs.md) shows both.",
        "A row is a message:",
        table(["column", "type", "says"], columns),
        "A schema of some of these, as `.schema('offset bigint, payload binary')`, is read "
        "faster than all of them.",
        table(["option", "default", "says"], options),
    )
