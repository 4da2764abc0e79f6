"""Columns of DuckDB: expressions in its SQL, put together as PySpark's are.

Names that a definition uses become quoted names below `_`, the one table that each SELECT reads,
so that no alias of the same SELECT and no keyword is taken for a column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

TABLE = "_"
KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false", "div"})
"""Of the SQL in definitions; every other word without a parenthesis is a column."""

RANKS = ("row_number()", "dense_rank()")
"""Numbers of rows: an INTEGER in Spark, and a BIGINT here."""

_TOKEN = re.compile(r"'(?:[^']|'')*'|`[^`]+`|[A-Za-z_]\w*|\d\w*|<=>|\s+|.")
_SIMPLE_TYPES = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "bigint": "BIGINT",
    "int": "INTEGER",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
}


class Spread(Enum):
    """The form in which the elements of a list or map become rows."""

    VALUES = "explode"
    POSITIONS = "posexplode"


def quoted(name: str) -> str:
    """A name in quotes; the parts of `a.b` one by one."""
    return ".".join(f'"{part}"' for part in name.split("."))


def reference(name: str) -> str:
    """A column, or a field of one, of the table that is read."""
    return f"{TABLE}.{quoted(name)}"


def literal(value: Any) -> str:
    """A value in SQL."""
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return f"({value})" if value < 0 else str(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    raise TypeError(f"a value of the type {type(value).__name__} has no literal in SQL")


def type_name(spark: str) -> str:
    """The name of a type of Spark as DuckDB has it."""
    text = spark.strip()
    if text in _SIMPLE_TYPES:
        return _SIMPLE_TYPES[text]
    kind, _, inside = text.removesuffix(">").partition("<")
    if kind == "array":
        return f"{type_name(inside)}[]"
    if kind == "map":
        key, value = _parts(inside)
        return f"MAP({type_name(key)}, {type_name(value)})"
    if kind == "struct":
        fields = (part.split(":", 1) for part in _parts(inside))
        return f"STRUCT({', '.join(f'{quoted(n.strip())} {type_name(t)}' for n, t in fields)})"
    raise TypeError(f"{spark!r} is not a type that the analysis uses")


def _parts(inside: str) -> list[str]:
    """The parts between the outermost commas."""
    found, depth = [""], 0
    for letter in inside:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found


def translated(text: str) -> str:
    """An expression in the SQL of a definition, as DuckDB reads it."""
    tokens = _TOKEN.findall(text)
    found = []
    for at, token in enumerate(tokens):
        follows = next((other for other in tokens[at + 1 :] if not other.isspace()), "")
        is_field = at > 0 and tokens[at - 1] == "."
        found.append(_token(token, is_field=is_field, is_function=follows == "("))
    return "".join(found)


def _token(token: str, *, is_field: bool, is_function: bool) -> str:
    if token.startswith("`"):
        return reference(token.strip("`"))
    if token == "<=>":
        return "IS NOT DISTINCT FROM"
    if not re.match(r"[A-Za-z_]", token):
        return token
    if is_field:
        return quoted(token)
    if token.lower() == "div":
        return "//"
    if token.lower() in KEYWORDS:
        return token
    return MACROS.get(token, token) if is_function else reference(token)


MACROS = {
    "size": "wk_size",
    "array_contains": "wk_contains",
    "array_except": "wk_except",
    "sequence": "wk_sequence",
}
"""Function in the SQL of definitions -> the macro that computes the same in DuckDB."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """An expression, with the names that its columns have in a result."""

    text: str
    names: tuple[str, ...] = ()
    spread: Spread | None = None
    suffix: str = ""
    """What follows the expression where rows are ordered by it."""

    # --- operators ---

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return self._with("=", other)

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return self._with("<>", other)

    def __lt__(self, other: object) -> Column:
        return self._with("<", other)

    def __le__(self, other: object) -> Column:
        return self._with("<=", other)

    def __gt__(self, other: object) -> Column:
        return self._with(">", other)

    def __ge__(self, other: object) -> Column:
        return self._with(">=", other)

    def __add__(self, other: object) -> Column:
        return self._with("+", other)

    def __sub__(self, other: object) -> Column:
        return self._with("-", other)

    def __mul__(self, other: object) -> Column:
        return self._with("*", other)

    def __truediv__(self, other: object) -> Column:
        return self._with("/", other)

    def __radd__(self, other: object) -> Column:
        return column_of(other)._with("+", self)

    def __rsub__(self, other: object) -> Column:
        return column_of(other)._with("-", self)

    def __rmul__(self, other: object) -> Column:
        return column_of(other)._with("*", self)

    def __and__(self, other: object) -> Column:
        return self._with("AND", other)

    def __or__(self, other: object) -> Column:
        return self._with("OR", other)

    def __invert__(self) -> Column:
        return Column(f"(NOT {self.text})")

    def __neg__(self) -> Column:
        return Column(f"(-{self.text})")

    def __hash__(self) -> int:
        return hash(self.text)

    def __bool__(self) -> bool:
        raise TypeError("a column has no truth of its own; combine columns with &, | and ~")

    def __iter__(self) -> Any:
        raise TypeError("a column has no elements outside of a query")

    def _with(self, operator: str, other: object) -> Column:
        return Column(f"({self.text} {operator} {column_of(other).text})")

    def __getitem__(self, key: Any) -> Column:
        """An element: of a list by its place from 0 on, of a map or a struct by its key."""
        if isinstance(key, int):
            return Column(f"{self.text}[{key + 1}]")
        names = (key,) if isinstance(key, str) else ()
        return Column(f"{self.text}[{column_of(key).text}]", names)

    # --- methods ---

    def alias(self, *names: str) -> Column:
        """The same under another name."""
        return replace(self, names=names)

    def cast(self, kind: str) -> Column:
        """The same as another type."""
        return Column(f"CAST({self.text} AS {type_name(kind)})", self.names)

    def try_cast(self, kind: str) -> Column:
        """The same as another type, or null."""
        if type_name(kind) in ("INTEGER", "BIGINT"):
            return Column(f"TRY_CAST(wk_integer({self.text}) AS {type_name(kind)})", self.names)
        return Column(f"TRY_CAST({self.text} AS {type_name(kind)})", self.names)

    def eqNullSafe(self, other: object) -> Column:
        """Whether both are equal, or both null."""
        return Column(f"({self.text} IS NOT DISTINCT FROM {column_of(other).text})")

    def isNull(self) -> Column:
        """Whether it is null."""
        return Column(f"({self.text} IS NULL)")

    def isNotNull(self) -> Column:
        """Whether it is not null."""
        return Column(f"({self.text} IS NOT NULL)")

    def isin(self, *values: Any) -> Column:
        """Whether it is one of some values."""
        listed = ", ".join(map(literal, values))
        return Column(f"({self.text} IN ({listed}))" if values else "FALSE")

    def startswith(self, text: Any) -> Column:
        """Whether a text begins with another."""
        return Column(f"starts_with({self.text}, {column_of(text).text})")

    def rlike(self, pattern: str) -> Column:
        """Whether a pattern occurs in a text."""
        return Column(f"regexp_matches({self.text}, {literal(pattern)})")

    def over(self, window: Window) -> Column:
        """The function over a window of rows."""
        text = f"{self.text} OVER ({window.text})"
        if self.text in RANKS:
            return Column(f"CAST({text} AS INTEGER)")
        return Column(f"({text})", self.names)

    def asc_nulls_first(self) -> Column:
        """In rising order, null first."""
        return replace(self, suffix="ASC NULLS FIRST")

    def asc_nulls_last(self) -> Column:
        """In rising order, null last."""
        return replace(self, suffix="ASC NULLS LAST")

    def desc(self) -> Column:
        """In falling order, null last, as Spark has it."""
        return replace(self, suffix="DESC NULLS LAST")

    def when(self, condition: Column, value: object) -> Column:
        """One more case of a CASE."""
        return Column(f"{self._open()} WHEN {condition.text} THEN {column_of(value).text} END")

    def otherwise(self, value: object) -> Column:
        """The last case of a CASE."""
        return Column(f"{self._open()} ELSE {column_of(value).text} END")

    def _open(self) -> str:
        assert self.text.startswith("CASE "), "only a CASE has cases"
        return self.text.removesuffix(" END")

    @property
    def order(self) -> str:
        """The expression in an ORDER BY; Spark has null first."""
        return f"{self.text} {self.suffix or 'ASC NULLS FIRST'}"


def column_of(value: object) -> Column:
    """A column as it is, and any other value as a literal."""
    return value if isinstance(value, Column) else Column(literal(value))


def named(column: str | Column) -> Column:
    """A column as it is, and a text as the name of one."""
    if isinstance(column, Column):
        return column
    return Column(reference(column), (column.rpartition(".")[2],))


@dataclass(frozen=True, slots=True)
class Window:
    """The rows that a function sees beside its own."""

    keys: tuple[Column, ...] = ()
    orders: tuple[Column, ...] = ()
    frame: str = ""

    unboundedPreceding = -(1 << 63)  # noqa: N815
    currentRow = 0  # noqa: N815

    @classmethod
    def partitionBy(cls, *columns: Any) -> Window:
        """The rows with the same keys."""
        return cls(tuple(map(named, flat(columns))))

    def orderBy(self, *columns: Any) -> Window:
        """The same rows in an order."""
        return replace(self, orders=tuple(map(named, flat(columns))))

    def rowsBetween(self, first: int, last: int) -> Window:
        """The rows between two places beside one's own."""
        return replace(self, frame=f"ROWS BETWEEN {_bound(first)} AND {_bound(last)}")

    def rangeBetween(self, first: int, last: int) -> Window:
        """The rows between two places, and all that are equal to them."""
        return replace(self, frame=f"RANGE BETWEEN {_bound(first)} AND {_bound(last)}")

    @property
    def text(self) -> str:
        """The inside of OVER (...)."""
        parts = []
        if self.keys:
            parts.append(f"PARTITION BY {', '.join(key.text for key in self.keys)}")
        if self.orders:
            parts.append(f"ORDER BY {', '.join(column.order for column in self.orders)}")
        return " ".join([*parts, self.frame])


def _bound(place: int) -> str:
    if place == Window.unboundedPreceding:
        return "UNBOUNDED PRECEDING"
    if place == Window.currentRow:
        return "CURRENT ROW"
    return f"{abs(place)} {'PRECEDING' if place < 0 else 'FOLLOWING'}"


def flat(columns: tuple[Any, ...]) -> list[Any]:
    """Columns that were given one by one, or as one list."""
    if len(columns) == 1 and isinstance(columns[0], list | tuple):
        return list(columns[0])
    return list(columns)


Lambda = Callable[[Column], Column]
