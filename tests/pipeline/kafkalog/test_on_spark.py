"""Spark reads logs: in batch and as a stream, whole or what a filter wants, damaged or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from tests.support.log.kafka_logs import BuiltLog, Row, brokers, built, in_turn, plain, written
from tests.support.pipeline.loads import due, load
from tests.support.pipeline.streams import catch_up
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.pipeline.kafkalog.filters import Wish, pushed
from watchkeeper.pipeline.kafkalog.scan.split_reader import COLUMNS

forms = pytest.mark.parametrize("form", ["0.7", "0.8"])


def reader(spark: Any, home: Path, **options: object) -> Any:
    return spark.read.format("kafkalog").options(**options).load(str(home))


def rows_in(frame: Any) -> dict[str, list[Row]]:
    """The rows of a frame, log by log."""
    found: dict[str, list[Row]] = {}
    for row in frame.toArrow().to_pylist():
        name = f"{row['broker']}/{row['topic']}-{row['partition']}"
        found.setdefault(name, []).append(Row(*(row[field] for field in Row._fields)))
    return dict(sorted(found.items()))


# --- in batch --------------------------------------------------------------------------


@forms
def test_spark_reads_every_message_once(form: str, spark: Any, tmp_path: Path) -> None:
    logs = brokers(form)
    frame = reader(spark, written(tmp_path, logs), splitBytes=100)
    assert frame.columns == list(COLUMNS)
    assert rows_in(frame) == due(logs)


def test_some_columns_are_read_alone(spark: Any, tmp_path: Path) -> None:
    """If the schema says so; one that says something else is refused."""
    home = written(tmp_path, {"clicks-0": built([plain(b"a", b"b")])})
    source = spark.read.format("kafkalog")
    found = source.schema("payload binary, offset bigint").load(str(home)).toArrow()
    assert found.to_pylist() == [{"payload": b"a", "offset": 0}, {"payload": b"b", "offset": 11}]
    with pytest.raises(Exception, match="has no column 'value'; it has topic, broker"):
        source.schema("value binary").load(str(home)).toArrow()
    with pytest.raises(Exception, match="the column offset is of type bigint, not int"):
        source.schema("offset int").load(str(home)).toArrow()


def test_what_cannot_be_read_is_a_sentence(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="PipelineProblem: there is no log in"):
        reader(spark, tmp_path).toArrow()
    with pytest.raises(Exception, match="PipelineProblem: kafkalog has no option 'topic'"):
        reader(spark, tmp_path, topic="clicks").toArrow()


def damaged() -> BuiltLog:
    """A log whose second message is damaged."""
    log = built([plain(b"one", b"two", b"three")])
    log.segments[0] = log.segments[0].replace(b"two", b"tWo")
    return log


def test_damage_fails_or_is_skipped_or_kept(spark: Any, tmp_path: Path) -> None:
    home = written(tmp_path, {"clicks-0": damaged()})
    with pytest.raises(Exception, match="clicks-0 of broker 0 is damaged at offset 13"):
        reader(spark, home).toArrow()
    skipped = reader(spark, home, corrupt="skip").toArrow()
    assert skipped["payload"].to_pylist() == [b"one", b"three"]
    kept = reader(spark, home, corrupt="quarantine").select("payload", "crc_ok").toArrow()
    assert kept["payload"].to_pylist() == [b"one", b"tWo", b"three"]
    assert kept["crc_ok"].to_pylist() == [True, False, True]


def test_a_table_that_was_loaded_is_read_by_anybody(spark: Any, tmp_path: Path) -> None:
    """Spark finds the rows in it and nothing else, whatever the topics; and the quarantine."""
    logs = {
        "3/__a b:c%d=é~-0": in_turn("0.7", 4),
        "3/2026-1": in_turn("0.7", 4, Codec.GZIP),
        "3/clicks-0": damaged(),
    }
    home, out = written(tmp_path / "logs", logs), tmp_path / "out"
    assert load(home, out, "--corrupt", "quarantine") == 0
    frame = spark.read.parquet(str(out))
    expected = due(logs) | {"3/clicks-0": [logs["3/clicks-0"].rows[at] for at in (0, 2)]}
    assert rows_in(frame) == expected
    assert dict(frame.dtypes) == dict(reader(spark, home).dtypes)
    kept = spark.read.parquet(str(out / "_quarantine")).toArrow().to_pylist()
    assert [(row["topic"], row["offset"], row["payload"]) for row in kept] == [
        ("clicks", 13, b"tWo")
    ]


# --- filters ---------------------------------------------------------------------------


def test_filters_are_pushed_down(spark: Any, tmp_path: Path) -> None:
    """Logs and segments that a filter rules out are not read: here they could not be."""
    logs = {"1/clicks-0": in_turn("0.7", 8), "1/clicks-1": damaged(), "2/views-0": damaged()}
    home = written(tmp_path, logs)
    rows = logs["1/clicks-0"].rows

    def filtered(condition: str, pushdown: str = "on") -> list[Row]:
        frame = reader(spark, home, pushdown=pushdown).where(condition)
        return rows_in(frame).get("1/clicks-0", [])

    assert filtered("topic = 'clicks' and partition = 0") == rows
    assert filtered("partition in (0, 7) and broker = 1") == rows
    assert filtered("topic like 'click%' and broker = 1 and partition = 0") == rows
    low, high = rows[5].offset, rows[14].offset
    both = f"partition = 0 and broker = 1 and offset >= {low} and offset < {high}"
    assert filtered(both) == rows[5:14]
    assert filtered("broker = 7") == []
    with pytest.raises(Exception, match="is damaged at offset"):
        filtered("partition = 0 and topic = 'clicks'", pushdown="off")


def test_a_frame_can_be_filtered_in_several_ways(spark: Any, tmp_path: Path) -> None:
    """Unless filters are pushed down: Spark keeps them with the frame, not with the query.

    As soon as the last assertion fails, Spark has mended that, and the option `pushdown` may
    be on from the beginning.
    """
    home = written(tmp_path, {"clicks-0": in_turn("0.7", 1), "clicks-1": in_turn("0.7", 2)})

    def counted(frame: Any) -> tuple[int, int, int]:
        parts = (frame.where("partition = 0"), frame.where("partition = 1"))
        both = {row["partition"] for row in parts[0].union(parts[1]).toArrow().to_pylist()}
        return len(both), parts[0].count(), frame.count()

    assert counted(reader(spark, home)) == (2, 3, 9)
    assert counted(reader(spark, home, pushdown="on")) == (1, 3, 3)


OFFSET, TOPIC = ("offset",), ("topic",)
FILTERS: dict[str, tuple[list[Filter], Wish, int]] = {
    "none": ([], Wish(), 0),
    "a topic": ([EqualTo(TOPIC, "a")], Wish((("topic", frozenset("a")),)), 0),
    "topics": ([In(TOPIC, ("a", "b"))], Wish((("topic", frozenset("ab")),)), 0),
    "not a topic": ([Not(EqualTo(TOPIC, "a"))], Wish(), 1),
    "never null": ([IsNotNull(OFFSET), IsNotNull(TOPIC)], Wish(), 0),
    "sometimes null": ([IsNotNull(("key",))], Wish(), 1),
    "from": ([GreaterThanOrEqual(OFFSET, 5)], Wish(low=5), 1),
    "behind": ([GreaterThan(OFFSET, 5), GreaterThanOrEqual(OFFSET, 3)], Wish(low=6), 2),
    "up to": ([LessThanOrEqual(OFFSET, 5), LessThan(OFFSET, 9)], Wish(high=6), 2),
    "one of": ([In(OFFSET, (7, 3))], Wish(low=3, high=8), 1),
    "exactly": ([EqualTo(OFFSET, 4)], Wish(low=4, high=5), 1),
    "nothing": ([EqualTo(OFFSET, None)], Wish(), 1),
    "another column": ([EqualTo(("codec",), "gzip")], Wish(), 1),
}


@pytest.mark.parametrize("name", FILTERS)
def test_what_is_made_of_filters(name: str) -> None:
    """Filters on logs are dealt with; one on offsets, Spark applies to messages as well."""
    filters, wish, left = FILTERS[name]
    found = pushed(filters)
    assert (found.wish, len(found.left)) == (wish, left)
    assert all(any(remaining is given for given in filters) for remaining in found.left)


# --- as a stream -----------------------------------------------------------------------


class Stream:
    """A stream of a folder of logs into a table, run until it has caught up."""

    def __init__(self, spark: Any, home: Path, place: Path, **options: object) -> None:
        self.spark = spark
        self.home = home
        self.place = place
        self.options = options

    def catch_up(self) -> list[Any]:
        """Read what there is; how each batch went."""
        source = self.spark.readStream.format("kafkalog").options(**self.options)
        return catch_up(source.load(str(self.home)), self.place)

    def rows(self) -> dict[str, list[Row]]:
        """What has been written, sorted."""
        found = rows_in(self.spark.read.parquet(str(self.place / "table")))
        return {name: sorted(rows, key=lambda row: row.offset) for name, rows in found.items()}


def test_a_stream_reads_what_comes(spark: Any, tmp_path: Path) -> None:
    """Batch by batch, at most so much; a torn end is left; begun again, it goes on."""
    home = tmp_path / "logs"
    stream = Stream(spark, home, tmp_path, maxMessagesPerTrigger=8)
    all_logs = {"1/clicks-0": in_turn("0.7", 7), "2/clicks-0": in_turn("0.7", 3, Codec.GZIP)}
    few = {"1/clicks-0": in_turn("0.7", 4), "2/clicks-0": in_turn("0.7", 1, Codec.GZIP)}
    written(home, few)
    last = home / "1" / "clicks-0" / f"{0:020d}.kafka"
    last.write_bytes(last.read_bytes()[:-1])

    batches = stream.catch_up()
    torn = due(few) | {"1/clicks-0": few["1/clicks-0"].rows[:-1]}
    assert stream.rows() == torn
    assert [batch.numInputRows for batch in batches] == [8, 6]
    assert json.loads(batches[-1].sources[0].endOffset) == {
        "1/clicks-0": torn["1/clicks-0"][-1].next_offset,
        "2/clicks-0": few["2/clicks-0"].end,
    }

    written(home, all_logs | {"3/views-0": in_turn("0.7", 1)})
    assert all(batch.numInputRows <= 8 for batch in stream.catch_up())
    assert stream.rows() == due(all_logs | {"3/views-0": in_turn("0.7", 1)})


def test_a_stream_of_08_is_limited_in_bytes(spark: Any, tmp_path: Path) -> None:
    home = written(tmp_path / "logs", brokers("0.8"))
    stream = Stream(spark, home, tmp_path, maxBytesPerTrigger=600, startingOffsets="earliest")
    assert len(stream.catch_up()) > 2
    assert stream.rows() == due(brokers("0.8"))


def test_a_stream_begins_where_the_options_say_and_ends_where_it_must(
    spark: Any, tmp_path: Path
) -> None:
    log = in_turn("0.7", 6, rolls_every=2)
    home = written(tmp_path / "logs", {"clicks-0": log})
    start = log.rows[7].offset
    wrong = Stream(
        spark, home, tmp_path / "wrong", startingOffsets=f'{{"0/clicks-0": {start + 1}}}'
    )
    with pytest.raises(Exception, match=f"no message begins at offset {start + 1}"):
        wrong.catch_up()
    stream = Stream(spark, home, tmp_path, startingOffsets=f'{{"0/clicks-0": {start}}}')
    stream.catch_up()
    assert stream.rows() == {"0/clicks-0": log.rows[7:]}

    for path in (home / "clicks-0").iterdir():
        path.unlink()
    built([plain(b"x")], start=log.end + 9).write(home / "clicks-0")
    with pytest.raises(Exception, match=f"was read up to {log.end}, and now begins at"):
        stream.catch_up()
