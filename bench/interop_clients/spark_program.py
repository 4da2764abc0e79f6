"""Read every message of live brokers with Spark, in batch and as a stream; print them as JSON.

python bench/interop_clients/spark_program.py BROKERS FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from watchkeeper.pipeline.kafkalog.source import register
from watchkeeper.pipeline.session import Wanted, session


def payloads(frame: Any) -> list[str]:
    """The payloads of a frame, sorted."""
    return sorted(bytes(row.payload).decode() for row in frame.select("payload").collect())


def main(where: str, folder: Path) -> None:
    """Read and print."""
    with session(Wanted("local[2]", "interop", folder / "scratch", "python")) as spark:
        register(spark)
        options = {"brokers": where, "splitBytes": "2000", "maxMessagesPerTrigger": "500"}
        batch = payloads(spark.read.format("kafkalog").options(**options).load())
        query = (
            spark.readStream.format("kafkalog")
            .options(**options)
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(folder / "table"))
        )
        query.awaitTermination()
        found = {
            "batch": batch,
            "stream": payloads(spark.read.parquet(str(folder / "table"))),
            "batches": sum(bool(each.numInputRows) for each in query.recentProgress),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
