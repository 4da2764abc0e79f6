"""Spark as the engine of an analysis: for traces of many millions of events, and clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from watchkeeper.pipeline.analysis.engine.api import DataFrame, Language
from watchkeeper.pipeline.analysis.engine.engine import Failed, Given, Made, Schema
from watchkeeper.pipeline.timeouts import what_failed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW_EVENTS = 500_000
"""With fewer events, generating code takes longer than it saves."""


class SparkEngine:
    """A session of Spark.

    Spark plans everything between two actions at once, and planning all steps from the events on
    takes longer than running them; so each table that is kept is run by itself.
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @property
    def language(self) -> Language:
        """PySpark's own functions and windows."""
        from pyspark.sql import Window, functions

        return Language(functions, Window)

    def prepare(self, events: int) -> None:
        """Configure the session for so many events."""
        is_small = events < FEW_EVENTS
        cores = self.session.sparkContext.defaultParallelism
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
            self.session.conf.set(key, value)

    def each(self, function: Callable[[Given], Made], given: Sequence[Given]) -> list[Made]:
        """Call a function on the workers."""
        context = self.session.sparkContext
        slices = min(len(given), 4 * context.defaultParallelism)
        with _failures():
            return context.parallelize(given, slices).map(function).collect()

    def made(self, rows: Iterable[Sequence[Any]], schema: Schema) -> DataFrame:
        """A table of rows."""
        return self.session.createDataFrame(list(rows), schema.spark)

    def read(self, folder: Path, schema: Schema | None = None) -> DataFrame:
        """The table that a folder of Parquet files holds."""
        reader = self.session.read
        return (reader if schema is None else reader.schema(schema.spark)).parquet(str(folder))

    def kept(self, frame: DataFrame, folder: Path) -> DataFrame:
        """Compute a table, and write it: the next step starts from a table of known size."""
        with _failures():
            frame.write.parquet(str(folder), compression="zstd")
        return self.session.read.schema(frame.schema).parquet(str(folder))


@contextmanager
def _failures() -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise Failed(what_failed(str(error))) from None
