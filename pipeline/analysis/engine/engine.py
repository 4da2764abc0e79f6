"""What an analysis needs of an engine, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from watchkeeper.pipeline.analysis.engine.api import DataFrame, Language

Given = TypeVar("Given")
Made = TypeVar("Made")

OPTIONAL = " optional"
"""At the end of a type: the column may be null."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, with the names of their types in the SQL of Spark."""

    columns: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    @property
    def types(self) -> dict[str, str]:
        """The types, whether or not the columns may be null."""
        return {name: kind.removesuffix(OPTIONAL) for name, kind in self.columns.items()}

    @property
    def spark(self) -> str:
        """The same as Spark reads it."""
        return ", ".join(
            f"`{name}` {kind.removesuffix(OPTIONAL)}"
            f"{'' if kind.endswith(OPTIONAL) else ' NOT NULL'}"
            for name, kind in self.columns.items()
        )


class Engine(Protocol):
    """Computes tables."""

    @property
    def language(self) -> Language:
        """The functions and windows of its definitions."""

    def prepare(self, events: int) -> None:
        """Get ready for so many events."""

    def each(self, function: Callable[[Given], Made], given: Sequence[Given]) -> list[Made]:
        """Call a function for each of some values, several at a time."""

    def made(self, rows: Iterable[Sequence[Any]], schema: Schema) -> DataFrame:
        """A table of rows."""

    def read(self, folder: Path, schema: Schema | None = None) -> DataFrame:
        """The table that a folder of Parquet files holds."""

    def kept(self, frame: DataFrame, folder: Path) -> DataFrame:
        """Compute a table, write it to a folder, and return what the folder holds."""


class Failed(Exception):
    """What an engine could not do, in its own words, cut to a line."""
