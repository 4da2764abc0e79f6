"""DuckDB as the engine of an analysis: in this process, without Java, for small traces.

Its memory is bounded; what does not fit goes to files in the folder of the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, cast

from watchkeeper.pipeline.analysis.engine import duck_columns, duck_frames, duck_functions
from watchkeeper.pipeline.analysis.engine.api import DataFrame, Language
from watchkeeper.pipeline.analysis.engine.duck_columns import Window
from watchkeeper.pipeline.analysis.engine.engine import Failed, Given, Made, Schema
from watchkeeper.pipeline.sweeps.runners import Process, Runner

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

MEMORY = "2GB"
PART = "part-0.parquet"
OF_RUN = r"url_decode(regexp_extract(filename, '/run=([^/]*)/[^/]*$', 1))"
"""The run of a file, from the name of its folder; folders above that say nothing of it."""


class DuckEngine:
    """A connection to a DuckDB of its own."""

    def __init__(self, connection: DuckDBPyConnection, runner: Callable[[], Runner]) -> None:
        self.connection = connection
        self.runner = runner
        self.tables = 0
        for macro in duck_functions.MACROS_SQL:
            connection.execute(macro)

    @property
    def language(self) -> Language:
        """Functions and windows with PySpark's names."""
        return Language(duck_functions, Window)

    def prepare(self, events: int) -> None:
        """Nothing: it plans each query by the sizes of its tables."""

    def each(self, function: Callable[[Given], Made], given: Sequence[Given]) -> list[Made]:
        """Call a function in this process, or in several."""
        with self.runner() as runner:
            found = dict(runner.each(partial(_numbered, function), list(enumerate(given))))
        return [found[task] for task in sorted(found, key=itemgetter(0))]

    def made(self, rows: Iterable[Sequence[Any]], schema: Schema) -> DataFrame:
        """A table of rows."""
        import pyarrow as pa

        self.tables += 1
        name = f"given_{self.tables}"
        found = list(rows)
        columns = {
            column: pa.array([_plain(row[at]) for row in found], arrow_type(kind))
            for at, (column, kind) in enumerate(schema.types.items())
        }
        self.connection.register("given", pa.table(columns))
        self.connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM given")
        self.connection.unregister("given")
        return self._frame(f"SELECT * FROM {name}", tuple(schema.names))

    def read(self, folder: Path, schema: Schema | None = None) -> DataFrame:
        """The table that a folder of Parquet files holds; folders `run=NAME` are a column."""
        table = _files(folder, "**/*.parquet")
        names = schema.names if schema else self.connection.sql(f"FROM {table}").columns
        columns = dict(zip(names, map(duck_frames.quoted_name, names), strict=True))
        if any(folder.glob("run=*")):
            columns["run"] = OF_RUN
        listed = ", ".join(
            f"{text} AS {duck_frames.quoted_name(name)}" for name, text in columns.items()
        )
        return self._frame(f"SELECT {listed} FROM {table}", tuple(columns))

    def kept(self, frame: DataFrame, folder: Path) -> DataFrame:
        """Compute a table, and write it."""
        import duckdb

        given = cast(duck_frames.DataFrame, frame)
        try:
            query = f"SELECT {', '.join(_stored(given))} FROM ({given.query}) _"
            folder.mkdir(parents=True)
            path = duck_columns.literal(str(folder / PART))
            self.connection.execute(
                f"COPY ({query}) TO {path} (FORMAT parquet, COMPRESSION zstd)"
            )
        except duckdb.Error as error:
            raise Failed(str(error).partition("\n")[0]) from None
        return self._frame(f"SELECT * FROM {_files(folder, PART)}", given.columns)

    def _frame(self, query: str, columns: tuple[str, ...]) -> DataFrame:
        return cast(DataFrame, duck_frames.DataFrame(self.connection, query, columns))


def _files(folder: Path, pattern: str) -> str:
    """The table that files hold; what is a pattern in the name of the folder is none here."""
    plain = re.sub(r"([*?\[])", r"[\1]", str(folder))
    path = duck_columns.literal(f"{plain}/{pattern}")
    return f"read_parquet({path}, hive_partitioning = false)"


def _numbered(function: Callable[[Given], Made], task: tuple[int, Given]) -> Made:
    return function(task[1])


def _plain(value: Any) -> Any:
    """A value as Arrow takes it: a map is a list of its pairs."""
    return list(value.items()) if isinstance(value, dict) else value


def arrow_type(kind: str) -> pa.DataType:
    """The type of Arrow for the name of a type in a schema."""
    import pyarrow as pa

    simple = {"string": pa.string(), "long": pa.int64(), "int": pa.int32(), "boolean": pa.bool_()}
    if kind in simple:
        return simple[kind]
    outer, _, inside = kind.removesuffix(">").partition("<")
    if outer == "array":
        return pa.list_(arrow_type(inside))
    assert outer == "map", f"no table that is made has columns of the type {kind}"
    key, _, value = inside.partition(",")
    return pa.map_(arrow_type(key), arrow_type(value))


def _stored(frame: duck_frames.DataFrame) -> Iterator[str]:
    """The columns as they are written: a sum is a BIGINT, as Spark has it."""
    for name, kind in frame.types():
        text = str(kind)
        column = duck_columns.reference(name)
        if "HUGEINT" in text:
            column = f"CAST({column} AS {text.replace('HUGEINT', 'BIGINT')})"
        yield f"{column} AS {duck_frames.quoted_name(name)}"


@contextmanager
def duck(
    scratch: Path, threads: int, runner: Callable[[], Runner] = Process
) -> Iterator[DuckEngine]:
    """An engine that works in memory, and in a folder where that does not suffice.

    `runner` makes what calls functions in Python.
    """
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY,
        "threads": threads,
        "temp_directory": str(scratch),
        "autoinstall_known_extensions": False,  # it looks for nothing on the network
    }
    try:
        with closing(duckdb.connect(config=settings)) as connection:
            yield DuckEngine(connection, runner)
    finally:
        rmtree(scratch, ignore_errors=True)
