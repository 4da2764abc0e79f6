"""The functions of PySpark that definitions use, as expressions of DuckDB.

Each computes what Spark computes, with its null, its order of null and its types.
"""

from __future__ import annotations

import itertools
from typing import Any

from watchkeeper.pipeline.analysis.engine.duck_columns import (
    Column,
    Lambda,
    Spread,
    column_of,
    literal,
    named,
    quoted,
    translated,
    type_name,
)

MACROS_SQL = (
    "CREATE OR REPLACE TEMP MACRO wk_distinct(x) AS "
    "list_filter(x, lambda one, nth: list_position(x, one) = nth)",
    "CREATE OR REPLACE TEMP MACRO wk_size(x) AS CAST(len(x) AS INTEGER)",
    "CREATE OR REPLACE TEMP MACRO wk_contains(x, y) AS "
    "CASE WHEN x IS NULL OR y IS NULL THEN NULL ELSE list_contains(x, y) END",
    "CREATE OR REPLACE TEMP MACRO wk_except(x, y) AS "
    "list_filter(wk_distinct(x), lambda one: NOT list_contains(y, one))",
    "CREATE OR REPLACE TEMP MACRO wk_sequence(x, y) AS "
    "CASE WHEN x <= y THEN generate_series(x, y) ELSE generate_series(x, y, -1) END",
    "CREATE OR REPLACE TEMP MACRO wk_json(x) AS CASE WHEN json_valid(x) THEN CAST(x AS JSON) END",
    "CREATE OR REPLACE TEMP MACRO wk_integer(x) AS "
    r"CASE WHEN regexp_full_match(CAST(x AS VARCHAR), '\s*[+-]?[0-9]+\s*') THEN x END",
)
"""What a connection has to know before it computes any of these."""

_numbers = itertools.count()


def _call(function: str, *columns: Any) -> Column:
    return Column(f"{function}({', '.join(named(column).text for column in columns)})")


# --- names and values ------------------------------------------------------------------


def col(name: str) -> Column:
    """A column by its name; `a.b` is a field of it."""
    return named(name)


def lit(value: Any) -> Column:
    """A value."""
    return column_of(value)


def expr(text: str) -> Column:
    """An expression in SQL."""
    return Column(f"({translated(text)})")


def when(condition: Column, value: object) -> Column:
    """The first case of a CASE."""
    return Column(f"CASE WHEN {condition.text} THEN {column_of(value).text} END")


def coalesce(*columns: Any) -> Column:
    """The first value that is not null."""
    return _call("coalesce", *columns)


def nullif(one: Any, other: Any) -> Column:
    """Null where both are equal."""
    return _call("nullif", one, other)


def greatest(*columns: Any) -> Column:
    """The greatest value that is not null."""
    return _call("greatest", *columns)


def least(*columns: Any) -> Column:
    """The least value that is not null."""
    return _call("least", *columns)


def floor(number: Any) -> Column:
    """The number rounded down."""
    return _call("floor", number)


def abs(number: Any) -> Column:
    """The number without its sign."""
    return _call("abs", number)


def desc(name: str) -> Column:
    """A column in falling order."""
    return named(name).desc()


def broadcast(frame: Any) -> Any:
    """A table that is small; DuckDB sees that by itself."""
    return frame


# --- text ------------------------------------------------------------------------------


def lower(text: Any) -> Column:
    """A text in small letters."""
    return _call("lower", text)


def length(text: Any) -> Column:
    """The number of letters."""
    return _call("length", text)


def concat(*columns: Any) -> Column:
    """Texts one after the other; null if one is."""
    return Column(f"({' || '.join(named(column).text for column in columns)})")


def concat_ws(between: str, *columns: Any) -> Column:
    """Texts with something between them; null is left out."""
    return _call("concat_ws", lit(between), *columns)


def split(text: Any, pattern: str) -> Column:
    """The parts of a text."""
    return _call("regexp_split_to_array", text, lit(pattern))


def regexp_extract(text: Any, pattern: str, group: int) -> Column:
    """A group of the first match; empty if there is none."""
    return _call("regexp_extract", text, lit(pattern), lit(group))


def regexp_replace(text: Any, pattern: str, by: str) -> Column:
    """A text with every match replaced."""
    return _call("regexp_replace", text, lit(pattern), lit(by.replace("$", "\\")), lit("g"))


# --- JSON ------------------------------------------------------------------------------


def get_json_object(text: Any, path: str) -> Column:
    """A part of a text in JSON as text; null where there is none."""
    return Column(f"json_extract_string(wk_json({named(text).text}), {literal(path)})")


def from_json(text: Any, kind: str) -> Column:
    """A text in JSON as a value of a type; null where it is none."""
    return Column(f"TRY_CAST(wk_json({named(text).text}) AS {type_name(kind)})")


# --- structs, lists and maps -----------------------------------------------------------


def struct(*columns: Any) -> Column:
    """Several columns as one."""
    fields = map(named, columns)
    return Column(
        f"struct_pack({', '.join(f'{quoted(one.names[0])} := {one.text}' for one in fields)})"
    )


def array(*columns: Any) -> Column:
    """A list of values."""
    return Column(f"[{', '.join(named(column).text for column in columns)}]")


def create_map(*columns: Any) -> Column:
    """A map of keys and values in turn."""
    texts = [named(column).text for column in columns]
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return Column(f"MAP {{{', '.join(f'{key}: {value}' for key, value in pairs)}}}")


def map_from_arrays(keys: Any, values: Any) -> Column:
    """A map of a list of keys and a list of values."""
    return _call("map", keys, values)


def map_keys(found: Any) -> Column:
    """The keys of a map."""
    return _call("map_keys", found)


def map_values(found: Any) -> Column:
    """The values of a map."""
    return _call("map_values", found)


def map_entries(found: Any) -> Column:
    """The pairs of a map, as structs."""
    return _call("map_entries", found)


def map_contains_key(found: Any, key: Any) -> Column:
    """Whether a map has a key."""
    return Column(f"map_contains({named(found).text}, {column_of(key).text})")


def size(found: Any) -> Column:
    """The number of elements of a list."""
    return _call("wk_size", found)


def get(found: Any, at: Column) -> Column:
    """An element of a list by its place from 0 on; null beyond the end."""
    return Column(f"{named(found).text}[{at.text} + 1]")


def sequence(first: Any, last: Any) -> Column:
    """The integers from one to another."""
    return _call("wk_sequence", first, last)


def array_join(found: Any, between: str) -> Column:
    """The texts of a list with something between them."""
    return _call("array_to_string", found, lit(between))


def array_contains(found: Any, value: Any) -> Column:
    """Whether a list has a value."""
    return Column(f"wk_contains({named(found).text}, {column_of(value).text})")


def array_intersect(one: Any, other: Any) -> Column:
    """The elements that both lists have."""
    held = f"list_contains({named(other).text}, one)"
    return Column(f"list_filter(wk_distinct({named(one).text}), lambda one: {held})")


def array_except(one: Any, other: Any) -> Column:
    """The elements that only the first list has."""
    return _call("wk_except", one, other)


def array_sort(found: Any) -> Column:
    """A list in rising order, null last."""
    return _call("list_sort", found, lit("ASC"), lit("NULLS LAST"))


def sort_array(found: Any) -> Column:
    """A list in rising order, null first."""
    return _call("list_sort", found, lit("ASC"), lit("NULLS FIRST"))


def array_max(found: Any) -> Column:
    """The greatest element."""
    return _call("list_max", found)


def array_min(found: Any) -> Column:
    """The least element."""
    return _call("list_min", found)


def transform(found: Any, function: Lambda) -> Column:
    """A function of every element."""
    return Column(f"list_transform({named(found).text}, {_lambda(function)})")


def filter(found: Any, function: Lambda) -> Column:
    """The elements for which a condition is true."""
    return Column(f"list_filter({named(found).text}, {_lambda(function)})")


def forall(found: Any, function: Lambda) -> Column:
    """Whether a condition is true for every element."""
    return Column(f"(len({filter(found, lambda one: _is_not_true(function(one))).text}) = 0)")


def exists(found: Any, function: Lambda) -> Column:
    """Whether a condition is true for some element."""
    return Column(f"(len({filter(found, function).text}) > 0)")


def _is_not_true(condition: Column) -> Column:
    return Column(f"({condition.text} IS NOT TRUE)")


def _lambda(function: Lambda) -> str:
    name = f"x{next(_numbers)}"
    return f"lambda {name}: {function(Column(name)).text}"


def explode(found: Any) -> Column:
    """A row an element."""
    return Column(named(found).text, spread=Spread.VALUES)


def posexplode(found: Any) -> Column:
    """A row an element, with its place from 0 on."""
    return Column(named(found).text, spread=Spread.POSITIONS)


# --- over many rows --------------------------------------------------------------------


def sum(number: Any) -> Column:
    """The sum of what is not null."""
    return _call("sum", number)


def count(what: Any) -> Column:
    """The number of rows, or of values that are not null."""
    return Column("count(*)") if isinstance(what, str) and what == "*" else _call("count", what)


def countDistinct(*columns: Any) -> Column:
    """The number of different values that are not null."""
    [column] = columns
    return Column(f"count(DISTINCT {named(column).text})")


def max(what: Any) -> Column:
    """The greatest value."""
    return _call("max", what)


def min(what: Any) -> Column:
    """The least value."""
    return _call("min", what)


def max_by(what: Any, by: Any) -> Column:
    """The value where another is greatest, null or not."""
    return _call("arg_max_null", what, by)


def min_by(what: Any, by: Any) -> Column:
    """The value where another is least, null or not."""
    return _call("arg_min_null", what, by)


def collect_list(what: Any) -> Column:
    """The values that are not null, as a list."""
    text = named(what).text
    return Column(f"coalesce(list({text}) FILTER (WHERE {text} IS NOT NULL), [])")


def collect_set(what: Any) -> Column:
    """The different values that are not null, as a list."""
    text = named(what).text
    return Column(f"coalesce(list(DISTINCT {text}) FILTER (WHERE {text} IS NOT NULL), [])")


def first(what: Any, ignorenulls: bool = False) -> Column:
    """The first value of a window."""
    return _at_an_end("first_value", what, ignorenulls)


def last(what: Any, ignorenulls: bool = False) -> Column:
    """The last value of a window."""
    return _at_an_end("last_value", what, ignorenulls)


def _at_an_end(function: str, what: Any, ignorenulls: bool) -> Column:
    return Column(f"{function}({named(what).text}{' IGNORE NULLS' if ignorenulls else ''})")


def lag(what: Any, by: int = 1, default: Any = None) -> Column:
    """The value of a row before."""
    return Column(f"lag({named(what).text}, {by}, {literal(default)})")


def lead(what: Any, by: int = 1, default: Any = None) -> Column:
    """The value of a row after."""
    return Column(f"lead({named(what).text}, {by}, {literal(default)})")


def row_number() -> Column:
    """The number of a row in its window, from 1 on."""
    return Column("row_number()")


def dense_rank() -> Column:
    """The number of a row in its window; equal rows have the same, without gaps."""
    return Column("dense_rank()")
