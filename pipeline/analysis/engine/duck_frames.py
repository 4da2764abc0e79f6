"""Tables of DuckDB: queries that are put together as PySpark's DataFrames are.

A frame is the text of a query and the names of its columns. Each step reads the one before as
`_`; DuckDB plans the whole text at once, when rows are collected or kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from watchkeeper.pipeline.analysis.engine.duck_columns import (
    TABLE,
    Column,
    Spread,
    flat,
    literal,
    named,
    reference,
    translated,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DOUBLE")


class Row(tuple[Any, ...]):
    """A row, whose values have the names of the columns."""

    _names: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(name)
        return self[self._names.index(name)]

    def asDict(self) -> dict[str, Any]:
        """The values by their names."""
        return dict(zip(self._names, self, strict=True))


def row_of(names: Iterable[str], values: Iterable[Any]) -> Row:
    """A row of values; those that are structs become rows, too."""
    row = Row(map(_inner, values))
    row._names = tuple(names)
    return row


def _inner(value: Any) -> Any:
    return row_of(value, value.values()) if isinstance(value, dict) else value


@dataclass(frozen=True, slots=True)
class DataFrame:
    """A query, with the names of its columns."""

    connection: DuckDBPyConnection
    query: str
    columns: tuple[str, ...]

    # --- columns ---

    def select(self, *columns: Any) -> DataFrame:
        """Some columns, or what follows from them."""
        texts, names = [], []
        for text, name in self._selected(flat(columns)):
            texts.append(f"{text} AS {quoted_name(name)}")
            names.append(name)
        return self._of(f"SELECT {', '.join(texts)} FROM ({self.query}) {TABLE}", names)

    def _selected(self, columns: Iterable[Any]) -> Iterator[tuple[str, str]]:
        for column in columns:
            if isinstance(column, str) and column.endswith("*"):
                yield from self._star(column)
                continue
            one = named(column)
            if one.spread is None:
                yield one.text, _only_name(one)
            else:
                yield from _spread(one)

    def _star(self, text: str) -> Iterator[tuple[str, str]]:
        """All columns, or all fields of one."""
        if text == "*":
            yield from ((reference(name), name) for name in self.columns)
            return
        name = text.removesuffix(".*")
        [kind] = [kind for column, kind in self.types() if column == name]
        for field, _ in kind.children:
            yield f"{reference(name)}.{quoted_name(field)}", field

    def types(self) -> list[tuple[str, Any]]:
        """The columns with their types."""
        relation = self.connection.sql(self.query)
        return list(zip(relation.columns, relation.types, strict=True))

    def withColumn(self, name: str, column: Column) -> DataFrame:
        """All columns, and one more or one replaced."""
        return self.withColumns({name: column})

    def withColumns(self, columns: dict[str, Column]) -> DataFrame:
        """All columns, and some more or some replaced."""
        kept = [columns[name].alias(name) if name in columns else name for name in self.columns]
        new = [column.alias(name) for name, column in columns.items() if name not in self.columns]
        return self.select(*kept, *new)

    def withColumnRenamed(self, old: str, new: str) -> DataFrame:
        """All columns, one of them under another name."""
        return self.withColumnsRenamed({old: new})

    def withColumnsRenamed(self, names: dict[str, str]) -> DataFrame:
        """All columns, some of them under other names."""
        return self.select(*(named(name).alias(names.get(name, name)) for name in self.columns))

    def drop(self, *names: str) -> DataFrame:
        """All columns but some."""
        return self.select(*(name for name in self.columns if name not in names))

    @property
    def na(self) -> Missing:
        """What is done about null."""
        return Missing(self)

    # --- rows ---

    def where(self, condition: str | Column) -> DataFrame:
        """The rows for which a condition is true."""
        text = condition.text if isinstance(condition, Column) else translated(condition)
        return self._same(f"SELECT * FROM ({self.query}) {TABLE} WHERE {text}")

    def distinct(self) -> DataFrame:
        """Each row once."""
        return self._same(f"SELECT DISTINCT * FROM ({self.query}) {TABLE}")

    def orderBy(self, *columns: Any) -> DataFrame:
        """The rows in an order."""
        order = ", ".join(named(column).order for column in flat(columns))
        return self._same(f"SELECT * FROM ({self.query}) {TABLE} ORDER BY {order}")

    def limit(self, number: int) -> DataFrame:
        """At most so many rows."""
        return self._same(f"SELECT * FROM ({self.query}) {TABLE} LIMIT {number}")

    def groupBy(self, *columns: Any) -> Grouped:
        """The rows with the same values together."""
        return Grouped(self, tuple(map(named, flat(columns))))

    # --- several tables ---

    def unionByName(self, other: DataFrame, allowMissingColumns: bool = False) -> DataFrame:
        """The rows of both."""
        missing = set(self.columns) ^ set(other.columns)
        if missing and not allowMissingColumns:
            raise TypeError(f"only one of both tables has {sorted(missing)}")
        text = f"(SELECT * FROM ({self.query})) UNION ALL BY NAME (SELECT * FROM ({other.query}))"
        new = [name for name in other.columns if name not in self.columns]
        return self._of(text, [*self.columns, *new])

    def crossJoin(self, other: DataFrame) -> DataFrame:
        """Each row of one with each row of the other."""
        return self._joined(other, [], "CROSS JOIN")

    def join(self, other: DataFrame, on: str | list[str], how: str = "inner") -> DataFrame:
        """The rows of both that have the same keys."""
        keys = [on] if isinstance(on, str) else list(on)
        if how in ("left_semi", "left_anti"):
            kind = "SEMI" if how == "left_semi" else "ANTI"
            names = [*keys, *(name for name in self.columns if name not in keys)]
            listed = ", ".join(f"l.{quoted_name(name)}" for name in names)
            return self._of(
                f"SELECT {listed} FROM ({self.query}) l {kind} JOIN ({other.query}) r "
                f"ON {_equal(keys)}",
                names,
            )
        return self._joined(other, keys, f"{how.upper()} JOIN")

    def _joined(self, other: DataFrame, keys: list[str], kind: str) -> DataFrame:
        left = [name for name in self.columns if name not in keys]
        right = [name for name in other.columns if name not in keys]
        if twice := set(left) & set(right):
            raise TypeError(f"both tables have {sorted(twice)}, and are not joined by that")
        texts = [f"{_key(name, kind)} AS {quoted_name(name)}" for name in keys]
        texts += [f"l.{quoted_name(name)}" for name in left]
        texts += [f"r.{quoted_name(name)}" for name in right]
        condition = f" ON {_equal(keys)}" if keys else ""
        return self._of(
            f"SELECT {', '.join(texts)} FROM ({self.query}) l "
            f"{kind} ({other.query}) r{condition}",
            [*keys, *left, *right],
        )

    # --- results ---

    def collect(self) -> list[Row]:
        """All rows."""
        found = self.connection.execute(self.query).fetchall()
        return [row_of(self.columns, values) for values in found]

    def count(self) -> int:
        """The number of rows."""
        [(number,)] = self.connection.execute(f"SELECT count(*) FROM ({self.query})").fetchall()
        return int(number)

    def isEmpty(self) -> bool:
        """Whether there is no row."""
        return not self.limit(1).collect()

    def _same(self, query: str) -> DataFrame:
        return DataFrame(self.connection, query, self.columns)

    def _of(self, query: str, names: Iterable[str]) -> DataFrame:
        return DataFrame(self.connection, query, tuple(names))


@dataclass(frozen=True, slots=True)
class Missing:
    """What is done about null in a table."""

    frame: DataFrame

    def fill(self, value: int, subset: Iterable[str] = ()) -> DataFrame:
        """A number in place of null, in some columns or in all that are numbers."""
        wanted = set(subset) or {
            name for name, kind in self.frame.types() if str(kind) in NUMBERS
        }
        return self.frame.select(
            *(
                Column(f"coalesce({reference(name)}, {literal(value)})", (name,))
                if name in wanted
                else name
                for name in self.frame.columns
            )
        )


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows with the same keys together."""

    frame: DataFrame
    keys: tuple[Column, ...]

    def agg(self, *columns: Column) -> DataFrame:
        """A row a group: its keys, and what follows from its rows."""
        names = [*map(_only_name, self.keys), *map(_only_name, columns)]
        texts = [column.text for column in (*self.keys, *columns)]
        listed = ", ".join(
            f"{text} AS {quoted_name(name)}" for text, name in zip(texts, names, strict=True)
        )
        by = f" GROUP BY {', '.join(key.text for key in self.keys)}" if self.keys else ""
        query = f"SELECT {listed} FROM ({self.frame.query}) {TABLE}{by}"
        return DataFrame(self.frame.connection, query, tuple(names))


def quoted_name(name: str) -> str:
    """A name in quotes, whatever is in it."""
    return f'"{name}"'


def _only_name(column: Column) -> str:
    if len(column.names) != 1:
        raise TypeError(f"{column.text} has no name; give it one with alias")
    return column.names[0]


def _spread(column: Column) -> Iterator[tuple[str, str]]:
    """The columns of an explode: the elements, or places or keys beside them."""
    if column.spread is Spread.POSITIONS:
        at, value = column.names
        yield f"unnest(CAST(range(len({column.text})) AS INTEGER[]))", at
        yield f"unnest({column.text})", value
    elif len(column.names) == 2:
        key, value = column.names
        yield f"unnest(map_keys({column.text}))", key
        yield f"unnest(map_values({column.text}))", value
    else:
        yield f"unnest({column.text})", _only_name(column)


def _equal(keys: list[str]) -> str:
    return " AND ".join(f"l.{quoted_name(key)} = r.{quoted_name(key)}" for key in keys)


def _key(name: str, kind: str) -> str:
    if kind == "FULL JOIN":
        return f"coalesce(l.{quoted_name(name)}, r.{quoted_name(name)})"
    return f"l.{quoted_name(name)}"
