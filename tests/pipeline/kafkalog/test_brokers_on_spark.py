"""Spark reads live brokers: in batch, and as a stream that goes on from its checkpoint."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from tests import HOME
from tests.pipeline.kafkalog.test_on_spark import rows_in
from tests.support.live.broker_process import HOST, BrokerProcess, brokers
from tests.support.live.log_brokers import ended_well, served_logs, serving, started
from tests.support.live_zookeeper import until
from tests.support.log.kafka_logs import BuiltLog, Row, in_turn, written
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.loads import due
from tests.support.pipeline.streams import catch_up
from watchkeeper.model.log.format.codecs import Codec

forms = pytest.mark.parametrize("form", ["0.7", "0.8"])
TOPICS = "clicks,views"
KILLS = 2


def reader(spark: Any, where: str, **options: object) -> Any:
    """The messages of brokers as a frame."""
    given = {"brokers": where, "topics": TOPICS, **options}
    return spark.read.format("kafkalog").options(**given).load()


@pytest.mark.parametrize("form", [pytest.param("0.7", marks=pytest.mark.slow), "0.8"])
def test_spark_reads_every_message_once(form: str, spark: Any, tmp_path: Path) -> None:
    """Range by range; filters are pushed down; errors have names; a stream has limits."""
    logs = served_logs(form)
    with serving(form, tmp_path / "logs", logs) as where:
        assert rows_in(reader(spark, where, splitBytes=100)) == due(logs)
        low, high = (logs["1/clicks-1"].rows[at].offset for at in (4, 11))
        wanted = f"topic = 'clicks' and partition = 1 and offset >= {low} and offset < {high}"
        found = reader(spark, where, pushdown="on").where(wanted)
        expected = [row for row in logs["1/clicks-1"].rows if low <= row.offset < high]
        assert rows_in(found) == {"1/clicks-1": expected}
        stream = Stream(spark, where, tmp_path, maxMessagesPerTrigger=9)
        batches = stream.catch_up()
        assert max(batch.numInputRows for batch in batches) <= 9
        assert stream.rows() == due(logs)
    with pytest.raises(Exception, match=r"PipelineProblem: .* connection refused, after \d+ s"):
        reader(spark, where, retryMs=0).toArrow()


class Stream:
    """A stream of brokers into a table, run until it has caught up."""

    def __init__(self, spark: Any, where: str, place: Path, **options: object) -> None:
        self.spark = spark
        self.place = place
        self.options = {"brokers": where, "topics": TOPICS, **options}

    def catch_up(self) -> list[Any]:
        """Read what there is; how each batch went."""
        source = self.spark.readStream.format("kafkalog").options(**self.options)
        return catch_up(source.load(), self.place)

    def rows(self) -> dict[str, list[Row]]:
        """What has been written, sorted."""
        found = rows_in(self.spark.read.parquet(str(self.place / "table")))
        return {name: sorted(rows) for name, rows in found.items()}


@pytest.mark.slow
@forms
def test_a_stream_goes_on_at_a_broker_that_has_moved(
    form: str, spark: Any, tmp_path: Path
) -> None:
    """Its checkpoint holds offsets, not addresses; new partitions are read from their start."""
    home, logs = tmp_path / "logs", {"1/clicks-0": in_turn(form, 4)}

    def serve(start: Any, served: dict[str, BuiltLog]) -> BrokerProcess:
        written(home, served)
        ended_well(home / "1")
        return started(start, form, 1)

    with brokers(home / "1") as start:
        broker = serve(start, logs)
        stream = Stream(spark, f"1:{HOST}:{broker.port}", tmp_path, topics="clicks")
        [batch] = stream.catch_up()
        assert stream.rows() == due(logs)
        name = "1/clicks-0" if form == "0.7" else "clicks-0"
        assert json.loads(batch.sources[0].endOffset)[name] == logs["1/clicks-0"].end

        broker.kill()
        more = {"1/clicks-0": in_turn(form, 9), "1/clicks-1": in_turn(form, 2, Codec.GZIP)}
        broker = serve(start, more)
        stream.options["brokers"] = f"1:{HOST}:{broker.port}"
        assert [each.numInputRows for each in stream.catch_up()] == [5 * 3 + 6]
        assert stream.rows() == due(more)


@pytest.mark.slow
@forms
def test_a_stream_bears_to_be_killed(form: str, needs_java: None, tmp_path: Path) -> None:
    """By the id of its process, begun again at once; each message is in its table once."""
    logs = {"1/clicks-0": in_turn(form, 40), "1/clicks-1": in_turn(form, 30, Codec.SNAPPY)}
    chance = random.Random(form)
    with serving(form, tmp_path / "logs", logs) as where:
        for _ in range(KILLS):
            begun = _stream(where, tmp_path)
            enough = _batches(tmp_path) + chance.randrange(1, 4)
            until(
                lambda begun=begun, enough=enough: (
                    _batches(tmp_path) >= enough or begun.poll() is not None
                ),
                PATIENCE_S,
            )
            os.killpg(begun.pid, signal.SIGKILL)
            begun.wait(PATIENCE_S)
        last = _stream(where, tmp_path)
        assert last.wait(PATIENCE_S) == 0
    names = {line["path"] for batch in _sink(tmp_path) for line in _lines(batch)}
    table = pyarrow.dataset.dataset([name.removeprefix("file://") for name in names]).to_table()
    rows = [
        (f"1/{row['topic']}-{row['partition']}", Row(*(row[name] for name in Row._fields)))
        for row in table.to_pylist()
    ]
    assert sorted(rows) == sorted((name, row) for name, log in logs.items() for row in log.rows)


def _stream(where: str, place: Path) -> subprocess.Popen[bytes]:
    """Begin a stream in a process, and a group of processes, of its own."""
    program = (
        Path(__file__).parent.parent.parent / "support" / "pipeline" / "stream_of_brokers.py"
    )
    return subprocess.Popen(
        [sys.executable, "-P", str(program), where, str(place)],
        cwd=HOME,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _sink(place: Path) -> list[Path]:
    """What the sink of the stream has committed, batch by batch; some hold earlier ones, too."""
    folder = place / "table" / "_spark_metadata"
    names = [*folder.glob("*")] if folder.exists() else []
    return [path for path in names if path.name.removesuffix(".compact").isdecimal()]


def _batches(place: Path) -> int:
    return len(_sink(place))


def _lines(batch: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in batch.read_text().splitlines()[1:]]
