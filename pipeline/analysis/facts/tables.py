"""Tables that are computed once and read many times, stored as Parquet.

Each step starts from tables on disk, of known size, and nothing is held in memory.
"""

from __future__ import annotations

from pathlib import Path

from watchkeeper.pipeline.analysis.engine.api import DataFrame
from watchkeeper.pipeline.analysis.engine.engine import Engine, Failed
from watchkeeper.pipeline.errors import PipelineProblem


class Tables:
    """The tables of an analysis, in a folder."""

    def __init__(self, engine: Engine, home: Path) -> None:
        self.engine = engine
        self.home = home

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute a table; PipelineProblem, with a sentence, where that cannot be done."""
        path = self.home / name
        try:
            return self.engine.kept(frame, path)
        except Failed as error:
            raise PipelineProblem(
                f"{path} could not be computed ({error}); see that there is room on that disk, "
                "and memory; what an earlier analysis has written is kept"
            ) from None
