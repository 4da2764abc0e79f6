"""A stream that writes what is there as a table, and goes on where it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def catch_up(stream: Any, place: Path) -> list[Any]:
    """Write what a stream has into `table`, with `checkpoint` beside it; how each batch went."""
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(place / "table"))
    )
    query.awaitTermination()
    return [progress for progress in query.recentProgress if progress.numInputRows]
