"""Tables that are computed once and read many times, stored as Parquet.

Spark plans everything between two actions at once, and planning all steps from the events on
takes longer than running them. So each step is run by itself: the next one starts from a table
on disk, of known size, and nothing is held in memory.
"""

from __future__ import annotations

from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.timeouts import what_failed

FEW_EVENTS = 500_000
"""With fewer events, generating code takes longer than it saves."""


def prepare(spark: SparkSession, events: int) -> None:
    """Configure a session for so many events."""
    is_small = events < FEW_EVENTS
    cores = spark.sparkContext.defaultParallelism
    settings = {
        "spark.sql.shuffle.partitions": str(
            1 if is_small else max(2 * cores, events // 1_000_000)
        ),
        "spark.sql.adaptive.enabled": str(not is_small).lower(),
        "spark.sql.codegen.wholeStage": str(not is_small).lower(),
        "spark.sql.codegen.factoryMode": "NO_CODEGEN" if is_small else "FALLBACK",
        "spark.sql.files.openCostInBytes": str(1 << 16),
    }
    for key, value in settings.items():
        spark.conf.set(key, value)


class Tables:
    """The tables of an analysis, in a folder."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark = spark
        self.home = home

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute a table; PipelineProblem, with a sentence, where that cannot be done."""
        path = self.home / name
        try:
            frame.write.parquet(str(path), compression="zstd")
        except (Py4JError, PySparkException) as error:
            raise PipelineProblem(
                f"{path} could not be computed ({what_failed(str(error))}); see that there is "
                "room on that disk, and memory; what an earlier analysis has written is kept"
            ) from None
        return self.spark.read.schema(frame.schema).parquet(str(path))
