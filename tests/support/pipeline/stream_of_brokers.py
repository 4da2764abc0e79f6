"""Streams what live brokers have into a table, in small batches, in a process to be killed.

python tests/support/pipeline/stream_of_brokers.py BROKERS FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from uuid import uuid4

from watchkeeper.pipeline.kafkalog.source import register
from watchkeeper.pipeline.session import Wanted, session


def main(where: str, place: Path) -> None:
    """Read until there is nothing new."""
    with session(Wanted("local[2]", "stream", place / uuid4().hex, "python")) as spark:
        register(spark)
        options = {"brokers": where, "topics": "clicks", "maxMessagesPerTrigger": "20"}
        query = (
            spark.readStream.format("kafkalog")
            .options(**options)
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(place / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(place / "table"))
        )
        query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
