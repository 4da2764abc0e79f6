"""The jobs on activity: in batch, as a stream, and in plain Python they answer the same."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from tests import HOME, SOURCE
from tests.support.live_zookeeper import until
from tests.support.pipeline import activity_plain as plain
from watchkeeper.logs.activity_produce import into_logs
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import wrap
from watchkeeper.pipeline.activity import run_job as job_runner
from watchkeeper.pipeline.activity import table_output
from watchkeeper.pipeline.activity.events import Event, Metric, View, Vote, topic_of
from watchkeeper.pipeline.activity.folder import CHECKPOINTS, LOCK, Place, held
from watchkeeper.pipeline.activity.generator import generated, sent_ms
from watchkeeper.pipeline.activity.jobs import JOBS, Job
from watchkeeper.pipeline.activity.log_input import names_of
from watchkeeper.pipeline.activity.run_job import Written, run_job
from watchkeeper.pipeline.activity.settings import Activity, Rules
from watchkeeper.pipeline.errors import PipelineProblem

SITE = msgspec.convert(
    {
        "members": 60,
        "follows": 3,
        "events_an_hour": 40,
        "spammers": {"count": 2},
        "hosts": {
            "count": 2,
            "every_ms": 120_000,
            "lost_per_mille": 100,
            "incident_ms": 5_400_000,
        },
    },
    Activity,
)
EVENTS = 1_200
RULES = msgspec.convert({"limit": {"window_s": 1_800, "most": 5}}, Rules)
"""So that members are over their limit, too."""
PATIENCE_S = 400
TWICE = ("feed", "click_through", "crawlers", "alerts", "metrics")
"""Tables whose streams are begun twice, of each way to make one; others at the end alone."""
TABLES = {table.name: table for job in JOBS.values() for table in job.tables}


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """Thirty hours of a small site."""
    return list(generated(SITE, 4, EVENTS))


def append(home: Path, some: Sequence[Event]) -> None:
    """Append events to the logs of a folder, as the command does."""
    into_logs(home, some, partitions=2, codec=Codec.NONE)


@pytest.fixture(scope="module")
def home(events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of these events."""
    folder = tmp_path_factory.mktemp("activity") / "logs"
    append(folder, events)
    return folder


@pytest.fixture(scope="module")
def at_once(spark: Any, home: Path) -> Path:
    """The tables that every job makes of all there is."""
    out = home.parent / "at-once"
    for job in JOBS.values():
        run_job(spark, job, str(home), out, RULES, is_stream=False)
    return out


@pytest.fixture(scope="module")
def streamed(spark: Any, events: list[Event], home: Path) -> Path:
    """The tables of every job, made as streams, of which most were begun twice."""
    out, logs = home.parent / "streamed", home.parent / "growing"
    middle = len(events) * 2 // 3
    for some, names in ((events[:middle], TWICE), (events[middle:], tuple(TABLES))):
        append(logs, some)
        for job in JOBS.values():
            few = tuple(table for table in job.tables if table.name in names)
            for written in stream(spark, job._replace(tables=few), logs, out):
                assert written.lost == 0
    return out


def stream(spark: Any, job: Job, logs: Path, out: Path) -> list[Written]:
    """Have the streams of a job catch up."""
    return run_job(spark, job, str(logs), out, RULES, is_stream=True)


DAYS = ds.partitioning(pa.schema([("day", pa.date32())]), flavor="hive")


def rows_in(out: Path, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table, as anybody reads them, in an order that is that of equal rows."""
    if not any((out / table).rglob("*.parquet")):
        return []
    table_of_days = ds.dataset(out / table, format="parquet", partitioning=DAYS).to_table()
    rows = table_of_days.select(names_of(TABLES[table].columns)).to_pylist()
    return in_order(tuple(row.values()) for row in rows)


def in_order(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows), key=repr)


def due(table: str, events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """What a table of these events has to hold."""
    return in_order(plain.ANSWERS[table](events, RULES))


# --- the same answers ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("table", plain.ANSWERS)
def test_all_at_once_is_what_plain_python_answers(
    table: str, events: list[Event], at_once: Path
) -> None:
    """Row for row, and there is at least one."""
    assert due(table, events)
    assert rows_in(at_once, table) == due(table, events)


@pytest.mark.slow
@pytest.mark.parametrize("table", plain.ANSWERS)
def test_a_stream_comes_to_the_same(table: str, events: list[Event], streamed: Path) -> None:
    """Though it was ended in the middle, and some measurements came late."""
    assert rows_in(streamed, table) == due(table, events)


@pytest.mark.slow
def test_spark_reads_the_tables_with_their_days(
    spark: Any, events: list[Event], streamed: Path
) -> None:
    """And takes nothing else that lies there for a part of them."""
    days = spark.read.parquet(str(streamed / "metrics")).groupBy("day").count().collect()
    rows = due("metrics", events)
    assert {(row["day"], row["count"]) for row in days} == {
        (day, sum(row[-1] == day for row in rows)) for day in {row[-1] for row in rows}
    }


def test_every_table_has_a_plain_answer() -> None:
    assert set(plain.ANSWERS) == set(TABLES)


def test_late_measurements_make_a_difference(events: list[Event]) -> None:
    """Those that are waited for, and those that are not: so the tables show either mistake."""
    metrics = plain.of(Metric, events)
    prompt = [metric for metric in metrics if metric.sent_ms - metric.at_ms < 60_000]
    as_if_prompt = [msgspec.structs.replace(metric, sent_ms=metric.at_ms) for metric in metrics]
    found = set(plain.alerts(metrics, RULES))
    assert set(plain.alerts(prompt, RULES)) != found
    assert set(plain.alerts(as_if_prompt, RULES)) != found


def test_members_behind_one_address_are_distinguished(events: list[Event]) -> None:
    """Some are over their limit, and some addresses exceed it whose users do not."""
    callers = {row[2] for row in plain.limited(events, RULES)}
    assert any(caller.startswith("member") for caller in callers)
    views = plain.of(View, events)
    by_address = [msgspec.structs.replace(view, member=None) for view in views]
    limited = {(row[0], row[3]) for row in plain.limited(views, RULES)}
    assert not {(row[0], row[3]) for row in plain.limited(by_address, RULES)} <= limited


@pytest.mark.slow
def test_the_warehouse_has_a_folder_for_each_day(at_once: Path, streamed: Path) -> None:
    """What was sent late is in that of the day on which it happened."""
    for out in (at_once, streamed):
        days = sorted(path.name for path in (out / "metrics").glob("day=*"))
        assert days == ["day=2026-11-01", "day=2026-11-02"]


# --- again, and again ------------------------------------------------------------------


def counted(written: list[Written]) -> dict[str, int]:
    return {item.name: item.rows for item in written}


@pytest.mark.slow
def test_a_table_is_made_anew_in_its_place(
    spark: Any, events: list[Event], tmp_path: Path
) -> None:
    """Not added to; and nothing else is left in the folder."""
    logs, out = tmp_path / "logs", tmp_path / "out"
    append(logs, events[:800])
    job = only("ratings")
    first = counted(run_job(spark, job, str(logs), out, RULES, is_stream=False))
    append(logs, events[800:])
    second = counted(run_job(spark, job, str(logs), out, RULES, is_stream=False))
    assert first["ratings"] < second["ratings"] == len(due("ratings", events))
    assert rows_in(out, "ratings") == due("ratings", events)
    assert [path.name for path in out.iterdir()] == ["ratings"]


def only(*tables: str) -> Job:
    """A job with these tables."""
    return Job((), tuple(TABLES[table] for table in tables))


# --- ended in the middle ---------------------------------------------------------------


class Ended(Exception):
    """What is on the disk then is what a kill at this moment leaves."""


def before(real: Callable[..., Any], *given: Any) -> None:
    raise Ended


def after(real: Callable[..., Any], *given: Any) -> None:
    real(*given)
    raise Ended


End = tuple[Any, str, Callable[..., Any], int]
"""Where in the code, whether before or after it, and at the how-manyth time."""
BEFORE, AFTER = ((job_runner, "put_batch", how, 1) for how in (before, after))
BETWEEN: End = (table_output, "rows_in", before, 2)
"""When the file of the one day is there, and that of the other is not."""
BEFORE_CLOSING: End = (job_runner, "put_batch", before, 2)
"""Before the batch that reads nothing, and closes windows; what follows begins with that one."""
ENDS: dict[str, tuple[list[End], list[End]]] = {
    "metrics": ([AFTER], [BEFORE, BETWEEN]),
    "alerts": ([BEFORE, AFTER, BEFORE_CLOSING, AFTER], [AFTER]),
}
"""Table -> where its stream ends, one time after the other, in the first part and the second."""


@pytest.mark.slow
@pytest.mark.parametrize("table", ["metrics", "alerts"])
def test_a_stream_that_ended_in_the_middle_goes_on(
    table: str, spark: Any, halves: list[list[Event]], tmp_path: Path
) -> None:
    """No row is lost or doubled, and what is late counts."""
    logs, out = tmp_path / "logs", tmp_path / "out"
    for some, ends in zip(halves, ENDS[table], strict=True):
        append(logs, some)
        for end in ends:
            with ending(*end), pytest.raises(Ended):
                stream(spark, only(table), logs, out)
        stream(spark, only(table), logs, out)
    assert rows_in(out, table) == due(table, halves[0] + halves[1])


@contextmanager
def ending(where: Any, what: str, how: Callable[..., Any], time: int) -> Iterator[None]:
    """Have a function end the job when it is called for the n-th time."""
    real, calls = getattr(where, what), []

    def called(*given: Any) -> Any:
        calls.append(what)
        return how(real, *given) if len(calls) == time else real(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, what, called)
        yield


@pytest.fixture(scope="module")
def halves(events: list[Event]) -> list[list[Event]]:
    """What hosts measured, on both days, in two parts."""
    metrics: list[Event] = [event for event in events if isinstance(event, Metric)]
    middle = len(metrics) * 2 // 3
    return [metrics[:middle], metrics[middle:]]


@pytest.mark.slow
def test_windows_are_closed_though_nothing_comes_after_an_end(
    spark: Any, halves: list[list[Event]], tmp_path: Path
) -> None:
    """Spark closes them in a batch of its own; a kill may come before that has begun."""
    logs, out, place = tmp_path / "logs", tmp_path / "out", Place(tmp_path / "out", "alerts")
    append(logs, halves[0] + halves[1])
    stream(spark, only("alerts"), logs, out)
    for left in ("offsets/*1*", "commits/*1*", "../../alerts/batch-000001-*"):
        for path in list(place.checkpoint.glob(left)):
            path.unlink()
    place.begun.touch()
    assert not rows_in(out, "alerts")
    stream(spark, only("alerts"), logs, out)
    assert rows_in(out, "alerts") == due("alerts", halves[0] + halves[1])


@pytest.mark.slow
def test_a_table_survives_a_kill_between_two_renames(at_once: Path, tmp_path: Path) -> None:
    """The one that there was is put back by whichever job comes next."""
    place = Place(tmp_path, "feed")
    place.old.parent.mkdir()
    shutil.copytree(at_once / "feed", place.old)
    with held(tmp_path, JOBS["relevance"]):
        assert not place.home.exists()
    with held(tmp_path, JOBS["feed"]):
        assert rows_in(tmp_path, "feed") == rows_in(at_once, "feed")


COMMAND = """
from watchkeeper.pipeline.activity.jobs import JOBS, Job
from watchkeeper.cli.main import main

of = {table.name: table for job in JOBS.values() for table in job.tables}
JOBS["warehouse"] = Job(("metrics",), (of["metrics"], of["alerts"]))
main()
"""
"""The command, with a job that has two tables only."""


@pytest.mark.slow
def test_a_command_that_is_killed_goes_on(events: list[Event], tmp_path: Path) -> None:
    """By its id, in the middle of a stream, and begun again at once."""
    logs, out = tmp_path / "logs", tmp_path / "out"
    middle = len(events) // 2
    append(logs, events[:middle])
    begun = elsewhere(logs, out)
    until(lambda: any(out.glob("_checkpoints/metrics/offsets/0")), PATIENCE_S)
    begun.kill()
    assert begun.wait(PATIENCE_S) == -signal.SIGKILL
    append(logs, events[middle:])
    again = elsewhere(logs, out)
    printed = again.communicate(timeout=PATIENCE_S)[1]
    assert again.returncode == 0, printed
    assert Place(out, "metrics").made()
    for table in ("metrics", "alerts"):
        assert rows_in(out, table) == due(table, events)
    assert {path.name for path in out.iterdir()} == {"metrics", "alerts", CHECKPOINTS, LOCK}


def elsewhere(logs: Path, out: Path) -> subprocess.Popen[str]:
    """Begin the command in a process of its own."""
    arguments = ["activity", "warehouse", str(logs), str(out), "--stream", "--master", "local[2]"]
    return subprocess.Popen(
        [sys.executable, "-P", "-c", COMMAND, *arguments],
        cwd=HOME,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


# --- what is reported ------------------------------------------------------------------


@pytest.mark.slow
def test_what_comes_behind_the_watermark_is_reported(
    spark: Any, events: list[Event], tmp_path: Path
) -> None:
    """It is in no window any more, and a reader of the tables has to know."""
    logs, out, job = tmp_path / "logs", tmp_path / "out", only("limited")
    views = [event for event in events if isinstance(event, View)]
    append(logs, views)
    [first] = stream(spark, job, logs, out)
    append(logs, [View(views[0].at_ms, "10.0.0.1", None, 1)])
    [second] = stream(spark, job, logs, out)
    assert (first.lost, second.lost) == (0, 1)


NO_EVENTS = {
    "no JSON": b"a vote",
    "another type": b'{"at_ms": 1, "member": 1, "page": "home", "stars": 3}',
    "no moment": b'{"member": 1, "page": 1, "stars": 3}',
}


@pytest.mark.parametrize("name", NO_EVENTS)
def test_a_message_that_is_no_event_is_reported(name: str, spark: Any, tmp_path: Path) -> None:
    """With its place; and no table is made of the others."""
    append(tmp_path / "logs", [Vote(0, 1, 1, 5)])
    [log] = (tmp_path / "logs").glob("votes-*")
    with (log / f"{0:020}.kafka").open("ab") as file:
        offset = file.tell()
        file.write(wrap([Message.of(NO_EVENTS[name])], Codec.NONE))
    job, printed = only("ratings"), NO_EVENTS[name].decode()
    with pytest.raises(PipelineProblem) as caught:
        run_job(spark, job, str(tmp_path / "logs"), tmp_path / "out", RULES, is_stream=False)
    assert (
        f"/{log.name[-1]} holds no event at offset {offset}, but {printed}; expected JSON"
        in str(caught.value)
    )
    assert not (tmp_path / "out" / "ratings").exists()


def test_events_are_cut_where_they_were_sent(events: list[Event]) -> None:
    """So what the second part of a stream brings is not older than the rules allow."""
    middle = len(events) * 2 // 3
    before = max(event.at_ms for event in events[:middle] if topic_of(event) == "metrics")
    late = [
        event
        for event in events[middle:]
        if topic_of(event) == "metrics" and event.at_ms < before
    ]
    assert late
    assert sent_ms(events[middle]) >= before
