"""The jobs on activity: in batch, as a stream, and in plain Python they answer the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from model.log.codecs import Codec
from model.log.message import Message
from model.log.message_set import wrap
from pipeline.activity.events import Event, Metric, View, Vote, topic_of
from pipeline.activity.generator import generated, sent_ms
from pipeline.activity.jobs import JOBS, Job
from pipeline.activity.running import Written, run_job, table_of
from pipeline.activity.settings import Activity, Rules
from pipeline.kafkalog.source import register
from pipeline.problems import PipelineProblem
from pipeline.session import Wanted, session
from real.java import find_java
from real.problems import EnvironmentProblem
from tests import activity_plain as plain
from watchkeeper.activity_producing import into_logs
from watchkeeper.cli import run_command

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
STREAMED = ("feed", "click_through", "crawlers", "alerts", "too_late", "metrics")
"""Tables that are also made as streams: of each job one at least, of each way to write one."""
TABLES = {table.name: table for job in JOBS.values() for table in job.tables}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for all tests here; skipped without Java."""
    try:
        find_java()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))
    wanted = Wanted("local[2]", "tests", tmp_path_factory.mktemp("spark"), "python")
    with session(wanted) as started:
        register(started)
        yield started


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
    """Some tables of every job, made as a stream that was begun twice."""
    out, logs = home.parent / "streamed", home.parent / "growing"
    middle = len(events) * 2 // 3
    for some in (events[:middle], events[middle:]):
        append(logs, some)
        for job in JOBS.values():
            few = job._replace(tables=tuple(one for one in job.tables if one.name in STREAMED))
            for written in run_job(spark, few, str(logs), out, RULES, is_stream=True):
                assert written.lost == 0
    return out


def rows_in(spark: Any, out: Path, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table, in an order that is that of equal rows."""
    rows = table_of(spark, TABLES[table], out).toArrow().to_pylist()
    return in_order(tuple(row.values()) for row in rows)


def in_order(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows), key=repr)


# --- the same answers ------------------------------------------------------------------


@pytest.mark.parametrize("table", plain.ANSWERS)
def test_all_at_once_is_what_plain_python_answers(
    table: str, spark: Any, events: list[Event], at_once: Path
) -> None:
    """Row for row, and there is at least one."""
    due = in_order(plain.ANSWERS[table](events, RULES))
    assert due
    assert rows_in(spark, at_once, table) == due


@pytest.mark.parametrize("table", STREAMED)
def test_a_stream_comes_to_the_same(
    table: str, spark: Any, events: list[Event], streamed: Path
) -> None:
    """Though it was ended in the middle, and some measurements came late."""
    due = in_order(plain.ANSWERS[table](events, RULES))
    assert rows_in(spark, streamed, table) == due


def test_every_table_has_a_plain_answer() -> None:
    assert set(plain.ANSWERS) == set(TABLES)


def test_late_measurements_make_a_difference(events: list[Event]) -> None:
    """Those that are waited for, and those that are not: so the tables show either mistake."""
    metrics = plain.of(Metric, events)
    prompt = [one for one in metrics if one.sent_ms - one.at_ms < 60_000]
    as_if_prompt = [msgspec.structs.replace(one, sent_ms=one.at_ms) for one in metrics]
    found = set(plain.alerts(metrics, RULES))
    assert set(plain.alerts(prompt, RULES)) != found
    assert set(plain.alerts(as_if_prompt, RULES)) != found


def test_members_behind_one_address_are_told_apart(events: list[Event]) -> None:
    """Some are over their limit, and some addresses would be that nobody behind them is."""
    callers = {row[2] for row in plain.limited(events, RULES)}
    assert any(one.startswith("member") for one in callers)
    views = plain.of(View, events)
    by_address = [msgspec.structs.replace(one, member=None) for one in views]
    limited = {(row[0], row[3]) for row in plain.limited(views, RULES)}
    assert not {(row[0], row[3]) for row in plain.limited(by_address, RULES)} <= limited


def test_the_warehouse_has_a_folder_for_each_day(at_once: Path, streamed: Path) -> None:
    """What was sent late is in that of the day on which it happened."""
    for out in (at_once, streamed):
        days = sorted(path.name for path in (out / "metrics").glob("day=*"))
        assert days == ["day=2026-11-01", "day=2026-11-02"]


# --- again, and again ------------------------------------------------------------------


def counted(written: list[Written]) -> dict[str, int]:
    return {one.name: one.rows for one in written}


def test_a_table_is_made_anew_in_its_place(
    spark: Any, events: list[Event], tmp_path: Path
) -> None:
    """Not added to; and nothing else is left in the folder."""
    logs, out = tmp_path / "logs", tmp_path / "out"
    append(logs, events[:800])
    job = only("relevance", "ratings")
    first = counted(run_job(spark, job, str(logs), out, RULES, is_stream=False))
    append(logs, events[800:])
    second = counted(run_job(spark, job, str(logs), out, RULES, is_stream=False))
    assert first["ratings"] < second["ratings"]
    assert rows_in(spark, out, "ratings") == in_order(plain.ratings(events, RULES))
    assert [path.name for path in out.iterdir()] == ["ratings"]


def only(job: str, table: str) -> Job:
    """A job with one of its tables."""
    return JOBS[job]._replace(tables=(TABLES[table],))


def test_a_table_is_made_in_one_way(
    spark: Any, home: Path, at_once: Path, streamed: Path
) -> None:
    """Both would count twice what they both count."""
    with pytest.raises(PipelineProblem, match="was not made by a stream; name another folder"):
        run_job(spark, JOBS["feed"], str(home), at_once, RULES, is_stream=True)
    with pytest.raises(PipelineProblem, match="is made by a stream; go on with --stream"):
        run_job(spark, JOBS["feed"], str(home), streamed, RULES, is_stream=False)


def test_what_comes_behind_the_watermark_is_told(
    spark: Any, events: list[Event], tmp_path: Path
) -> None:
    """It is in no window any more, and whoever reads the tables has to know."""
    logs, out, job = tmp_path / "logs", tmp_path / "out", only("abuse", "limited")
    views = [one for one in events if isinstance(one, View)]
    append(logs, views)
    [first] = run_job(spark, job, str(logs), out, RULES, is_stream=True)
    append(logs, [View(views[0].at_ms, "10.0.0.1", None, 1)])
    [second] = run_job(spark, job, str(logs), out, RULES, is_stream=True)
    assert (first.lost, second.lost) == (0, 1)


NO_EVENTS = {
    "no JSON": b"a vote",
    "another type": b'{"at_ms": 1, "member": 1, "page": "home", "stars": 3}',
    "no moment": b'{"member": 1, "page": 1, "stars": 3}',
}


@pytest.mark.parametrize("name", NO_EVENTS)
def test_a_message_that_is_no_event_is_told(name: str, spark: Any, tmp_path: Path) -> None:
    """With its place; and no table is made of the others."""
    append(tmp_path / "logs", [Vote(0, 1, 1, 5)])
    [log] = (tmp_path / "logs").glob("votes-*")
    with (log / f"{0:020}.kafka").open("ab") as file:
        offset = file.tell()
        file.write(wrap([Message.of(NO_EVENTS[name])], Codec.NONE))
    job, said = only("relevance", "ratings"), NO_EVENTS[name].decode()
    with pytest.raises(PipelineProblem) as caught:
        run_job(spark, job, str(tmp_path / "logs"), tmp_path / "out", RULES, is_stream=False)
    assert f"/{log.name[-1]} holds no event at offset {offset}, but {said}; expected JSON" in str(
        caught.value
    )
    assert not (tmp_path / "out" / "ratings").exists()


def test_events_are_cut_where_they_were_sent(events: list[Event]) -> None:
    """So what the second part of a stream brings is not older than the rules allow."""
    middle = len(events) * 2 // 3
    before = max(one.at_ms for one in events[:middle] if topic_of(one) == "metrics")
    late = [one for one in events[middle:] if topic_of(one) == "metrics" and one.at_ms < before]
    assert late
    assert sent_ms(events[middle]) >= before


# --- bad input -------------------------------------------------------------------------


def test_logs_without_a_topic(home: Path, tmp_path: Path, capsys: Any) -> None:
    """It is told before Spark is started, and no folder is made."""
    append(tmp_path / "logs", [View(0, "10.0.0.1", None, 1)])
    out = tmp_path / "out"
    assert run_command(["activity", "feed", str(tmp_path / "logs"), str(out)]) == 4
    said = capsys.readouterr().err
    assert "has no log of topic votes; it has those of views" in said
    assert run_command(["activity", "feed", str(tmp_path / "none"), str(out)]) == 4
    assert "cannot be read" in capsys.readouterr().err
    assert not out.exists()


def test_a_master_that_nobody_answers_for(home: Path, tmp_path: Path, capsys: Any) -> None:
    command = ["activity", "feed", str(home), str(tmp_path / "out")]
    assert run_command([*command, "--master", "spark://127.0.0.1:9"]) == 4
    assert "nobody answers at spark://127.0.0.1:9; start a master" in capsys.readouterr().err
