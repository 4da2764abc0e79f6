"""Both engines come to one answer: function by function, and in a whole analysis."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from tests.pipeline.test_analysis import tampered_verdict
from tests.support.pipeline.run_folders import write_run
from watchkeeper import simulate
from watchkeeper.cli.main import run_command
from watchkeeper.pipeline.analysis.engine.api import Window, sql, using
from watchkeeper.pipeline.analysis.engine.duck import arrow_type, duck
from watchkeeper.pipeline.analysis.engine.duck_columns import Column, translated, type_name
from watchkeeper.pipeline.analysis.engine.engine import OPTIONAL, Engine, Failed, Schema
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.errors import PipelineProblem

ROWS = Schema(
    {
        "run": "string",
        "seq": "int",
        "mark": "long" + OPTIONAL,
        "text": "string" + OPTIONAL,
        "places": "array<int>" + OPTIONAL,
        "detail": "map<string,string>" + OPTIONAL,
    }
)
GIVEN = (
    ("a", 0, 5, '{"x": 1, "row": ["p", 2, true]}', [2, 1, 2], {"k": "v"}),
    ("a", 1, None, '{"x": 1', [], {}),
    ("b", 0, 7, None, None, None),
)
VALUES: tuple[tuple[str, Any, list[Any]], ...] = (
    ("a field of JSON is text", lambda: sql.get_json_object("text", "$.x"), ["1", None, None]),
    (
        "a list in JSON has elements of one type",
        lambda: sql.from_json(sql.get_json_object("text", "$.row"), "array<string>"),
        [["p", "2", "true"], None, None],
    ),
    (
        "a struct in JSON may lack fields",
        lambda: sql.from_json("text", "struct<x: long, y: string>")["y"],
        [None, None, None],
    ),
    ("an element counts from 0", lambda: sql.get("places", sql.lit(1)), [1, None, None]),
    ("a map gives the value of a key", lambda: sql.col("detail")["k"], ["v", None, None]),
    (
        "an intersection keeps the order of the first, each once",
        lambda: sql.array_intersect("places", sql.array(sql.lit(1), sql.lit(2))),
        [[2, 1], [], None],
    ),
    (
        "so does a difference",
        lambda: sql.array_except("places", sql.array(sql.lit(1))),
        [[2], [], None],
    ),
    (
        "every element of an empty list is anything",
        lambda: sql.forall("places", lambda one: one > 5),
        [False, True, None],
    ),
    (
        "none of them is",
        lambda: sql.exists("places", lambda one: one > 1),
        [True, False, None],
    ),
    ("a text that is no integer is none", lambda: sql.lit("1.5").try_cast("int"), [None] * 3),
    ("a text that is one is", lambda: sql.lit("-15").try_cast("int"), [-15] * 3),
    ("a part of null is null", lambda: sql.regexp_extract("text", "(x)", 1), ["x", "x", None]),
    ("no match is empty", lambda: sql.regexp_extract("run", "(x)", 1), ["", "", ""]),
    (
        "texts with null are null",
        lambda: sql.concat("run", "text").isNull(),
        [False, False, True],
    ),
    ("null is equal to null", lambda: sql.col("mark").eqNullSafe(None), [False, True, False]),
    ("a sequence may fall", lambda: sql.sequence(sql.lit(0), sql.lit(-1)), [[0, -1]] * 3),
    ("a whole number of times", lambda: sql.expr("seq + 7 DIV 2"), [3, 4, 3]),
    ("the greatest is not null", lambda: sql.greatest("mark", sql.lit(6)), [6, 6, 7]),
)
"""What is required, an expression, and its value in each row of GIVEN."""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Engine]:
    """DuckDB, whose language definitions speak."""
    with duck(tmp_path / "scratch", 1) as engine, using(engine.language):
        yield engine


@pytest.mark.parametrize(("what", "expression", "wanted"), VALUES)
def test_a_function_computes_the_same_on_each_engine(
    engine: Engine, what: str, expression: Any, wanted: list[Any]
) -> None:
    table = engine.made(GIVEN, ROWS)
    rows = table.select("run", "seq", expression().alias("value")).orderBy("run", "seq").collect()

    assert [row.value for row in rows] == wanted, what


def test_the_largest_keeps_a_value_that_is_null(engine: Engine) -> None:
    """And groups are counted with it."""
    table = engine.made(GIVEN, ROWS)
    [a, b] = (
        table.groupBy("run")
        .agg(sql.max_by("mark", "seq").alias("last"), sql.count("mark").alias("number"))
        .orderBy("run")
        .collect()
    )

    assert (a.last, a.number, b.last, b.number) == (None, 1, 7, 1)


def test_null_comes_first_and_a_window_ends_at_its_row(engine: Engine) -> None:
    table = engine.made(GIVEN, ROWS)
    order = Window.partitionBy("run").orderBy("mark")
    rows = table.select("run", "mark", sql.sum("seq").over(order).alias("so_far"))

    assert [tuple(row) for row in rows.orderBy("run", "mark").collect()] == [
        ("a", None, 1),
        ("a", 5, 1),
        ("b", 7, 0),
    ]


def test_places_and_pairs_become_rows(engine: Engine) -> None:
    """A list that is empty or null has none."""
    table = engine.made(GIVEN, ROWS)
    places = table.select("run", sql.posexplode("places").alias("at", "place")).collect()
    pairs = table.select("run", sql.explode("detail").alias("key", "value")).collect()

    assert [tuple(row) for row in places] == [("a", 0, 2), ("a", 1, 1), ("a", 2, 2)]
    assert [tuple(row) for row in pairs] == [("a", "k", "v")]


def test_a_full_join_has_the_keys_of_both_sides(engine: Engine) -> None:
    names = Schema({"run": "string", "name": "string"})
    left = engine.made([("a", "x")], names)
    right = engine.made([("b", "y")], names).withColumnRenamed("name", "other")

    assert [tuple(row) for row in left.join(right, "run", "full").orderBy("run").collect()] == [
        ("a", "x", None),
        ("b", None, "y"),
    ]


def test_a_table_that_is_kept_has_the_types_of_spark(engine: Engine, tmp_path: Path) -> None:
    """A sum is no HUGEINT, which Parquet would hold as a fraction."""
    import pyarrow.parquet as pq

    table = engine.made(GIVEN, ROWS)
    sums = table.groupBy("run").agg(sql.sum("seq").alias("sum"))
    Tables(engine, tmp_path).keep("sums", sums)

    schema = pq.read_table(tmp_path / "sums").schema
    assert [str(field.type) for field in schema] == ["string", "int64"]


def test_the_name_of_a_run_is_that_of_its_folder(engine: Engine, tmp_path: Path) -> None:
    """Whatever the name has in it."""
    names = ["it's 50% of [a]*?", "plain", "run=1/2"]
    for number, name in enumerate(names):
        table = engine.made([(number,)], Schema({"number": "int"}))
        engine.kept(table, tmp_path / "events" / f"run={quote(name, safe='')}")

    found = engine.read(tmp_path / "events", Schema({"number": "int", "run": "string"}))
    assert [(row.number, row.run) for row in found.orderBy("number").collect()] == list(
        enumerate(names)
    )


# --- a whole analysis ------------------------------------------------------------------

RUNS = (
    ("consumer-crash", "hardened", 0),
    ("session-expiry", "kafka_07", 0),
    ("mirror-crash", "hardened", 0),
    ("exactly-once", "hardened", 0),
    ("controller-paused", "kafka_08", 1),
    ("leaders-balanced", "hardened", 1),
    ("settings-changed-twice", "kafka_08", 1),
    ("coordinator-crash", "kafka_08", 1),
    ("tombstone-missed", "kafka_08", 1),
)
"""Runs that hold and runs that do not, of both layouts; with messages, mirrors, controllers and
offsets in Kafka."""


class Shown(NamedTuple):
    """What an analysis leaves and prints."""

    code: int
    text: str
    complaints: str
    summary: dict[str, Any]
    tables: dict[str, tuple[list[tuple[str, str]], Counter[str]]]
    """Table -> the names and types of its columns, and how often each row is there."""


def shown_by(name: str, home: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Analyse some runs on an engine."""
    code = run_command(["analyze", str(home), "--engine", name, "--out", str(out)])
    printed = capsys.readouterr()
    summary = json.loads((out / "analysis.json").read_text())
    parts = (out / "tables").rglob("*.parquet")
    tables = {
        str(folder.relative_to(out)): table_in(folder)
        for folder in {part.parent for part in parts}
    }
    return Shown(code, printed.out, printed.err, summary, tables)


def table_in(folder: Path) -> tuple[list[tuple[str, str]], Counter[str]]:
    """The columns of a table, and its rows in any order."""
    import pyarrow.parquet as pq

    found = pq.read_table(folder)
    columns = [(field.name, str(field.type).replace(" not null", "")) for field in found.schema]
    return columns, Counter(map(str, found.to_pylist()))


@pytest.mark.slow
def test_both_engines_come_to_one_answer(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code, report, complaints, summary, and every table: columns, types and rows."""
    del spark  # its session serves the command
    for name, variant, seed in RUNS:
        home = write_run(tmp_path / "runs", simulate(name, variant=variant, seed=seed))
    tampered_verdict(home, "single ownership")
    out = tmp_path / "out"
    on_duckdb, on_spark = (
        shown_by(name, tmp_path / "runs", out, capsys) for name in ("duckdb", "spark")
    )

    assert on_duckdb.code == 1
    assert "single ownership was judged violated" in on_duckdb.complaints
    assert len(on_duckdb.tables) > 90
    assert sum(sum(rows.values()) for _, rows in on_duckdb.tables.values()) > 5_000
    assert on_duckdb.tables.keys() == on_spark.tables.keys()
    assert [
        name for name, seen in on_spark.tables.items() if on_duckdb.tables[name] != seen
    ] == []
    assert on_duckdb[:4] == on_spark[:4]


def test_the_folder_of_an_analysis_may_have_any_name(tmp_path: Path) -> None:
    """Also one that is a pattern of files, or names a run, elsewhere."""
    write_run(tmp_path / "runs", simulate("consumer-crash", variant="hardened", seed=1))
    out = tmp_path / "run=7" / "it's [out]*"

    assert run_command(["analyze", str(tmp_path / "runs"), "--out", str(out)]) == 0
    summary = json.loads((out / "analysis.json").read_text())
    assert [row["run"] for row in summary["measures"]] == ["consumer-crash-hardened-sim-1"]


MISTAKES: tuple[tuple[str, str, Any, tuple[str, str, int], str], ...] = (
    (
        "watchkeeper.pipeline.analysis.properties.ownership",
        "together",
        lambda numbers: numbers.where("number > 2"),
        ("session-expiry", "kafka_07", 0),
        "single ownership",
    ),
    (
        "watchkeeper.pipeline.analysis.control_plane.controllers",
        "_is_wrong_isr",
        lambda: "false",
        ("controller-paused", "kafka_08", 1),
        "leader in sync",
    ),
)
"""A function of a definition, what it does by mistake, and the run and property that show it."""


@pytest.mark.parametrize(("module", "name", "mistake", "run", "claim"), MISTAKES)
def test_a_mistake_in_a_definition_is_a_difference(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: str,
    name: str,
    mistake: Any,
    run: tuple[str, str, int],
    claim: str,
) -> None:
    """Of that property."""
    scenario, variant, seed = run
    write_run(tmp_path / "runs", simulate(scenario, variant=variant, seed=seed))
    monkeypatch.setattr(import_module(module), name, mistake)

    assert run_command(["analyze", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 1
    assert f"{claim} was judged violated" in capsys.readouterr().err


# --- what is refused -------------------------------------------------------------------


def test_a_table_that_cannot_be_computed_is_reported(started: Engine, tmp_path: Path) -> None:
    """In a sentence, with the place and what DuckDB says."""
    table = started.made(GIVEN, ROWS).withColumn("number", sql.col("run").cast("int"))

    with pytest.raises(PipelineProblem, match=r"wrong could not be computed .*Conversion Error"):
        Tables(started, tmp_path).keep("wrong", table)
    with pytest.raises(Failed, match="Conversion Error"):
        started.kept(table, tmp_path / "again")


def test_names_that_only_one_side_has_are_refused(started: Engine) -> None:
    """Where Spark refuses them: a definition must not hold in one engine alone."""
    table = started.made(GIVEN, ROWS)
    with pytest.raises(TypeError, match="only one of both tables has"):
        table.unionByName(table.drop("text"))
    with pytest.raises(TypeError, match="both tables have"):
        table.join(table, "run")
    with pytest.raises(TypeError, match="has no name"):
        table.select(sql.col("seq") + 1)


def test_a_column_has_no_truth_of_its_own() -> None:
    """`and` in place of `&` would leave a condition out."""
    with pytest.raises(TypeError, match="combine columns with"):
        assert Column("seq") == 1


def test_types_and_sql_of_definitions_are_translated() -> None:
    assert type_name("map<string,array<int>>") == "MAP(VARCHAR, INTEGER[])"
    assert type_name("struct<rows: array<struct<at: long>>>") == (
        'STRUCT("rows" STRUCT("at" BIGINT)[])'
    )
    assert str(arrow_type("map<string,array<int>>")) == "map<string, list<item: int32>>"
    assert translated("NOT (end <=> state.leader) AND size(rows) > 0") == (
        'NOT (_."end" IS NOT DISTINCT FROM _."state"."leader") AND wk_size(_."rows") > 0'
    )
    assert translated("note = 'the end'") == "_.\"note\" = 'the end'"
    with pytest.raises(TypeError, match="is not a type that the analysis uses"):
        type_name("decimal")
