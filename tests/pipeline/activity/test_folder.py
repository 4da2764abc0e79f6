"""What is in the way of a job on activity is said in a sentence, before Spark is started."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.log.kafka_logs import in_turn, written
from watchkeeper.cli.main import run_command
from watchkeeper.logs import activity
from watchkeeper.logs.activity_produce import into_logs
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.pipeline.activity import folder
from watchkeeper.pipeline.activity.events import Click, Event, Follow, Mail, Search, View, Vote
from watchkeeper.pipeline.activity.folder import LOCK, Made, Place, stamp
from watchkeeper.pipeline.activity.jobs import JOBS
from watchkeeper.pipeline.activity.settings import Rules

Output = pytest.CaptureFixture[str]
EVENTS: list[Event] = [
    Vote(0, 1, 1, 5),
    Follow(0, 1, 2),
    View(0, "10.0.0.1", None, 1),
    Mail(0, 1, 2, "hello"),
    Search(0, 1, 1, (1, 2)),
    Click(0, 1, 1, 1),
]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Logs that are as they ought to be."""
    into_logs(tmp_path / "logs", EVENTS, partitions=1, codec=Codec.NONE)
    return tmp_path / "logs"


def begin(job: str, logs: Path, out: Path, *options: str) -> int:
    """Run a job; its exit code. No test here comes to where Spark is started."""
    command = ["activity", job, str(logs), str(out), "--master", "spark://127.0.0.1:9"]
    return run_command([*command, *options])


# --- logs ------------------------------------------------------------------------------


def test_logs_without_a_topic(logs: Path, tmp_path: Path, capsys: Output) -> None:
    """It is reported, and no folder is made."""
    out = tmp_path / "out"
    assert begin("alerts", logs, out) == 4
    assert "has no log of topic metrics; it has those of clicks" in capsys.readouterr().err
    assert begin("feed", tmp_path / "none", out) == 4
    assert "cannot be read" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert begin("feed", tmp_path / "empty", out) == 4
    assert "there is no log in" in capsys.readouterr().err
    assert not out.exists()


def test_logs_of_two_formats(tmp_path: Path, capsys: Output) -> None:
    home = written(tmp_path / "logs", {"votes-0": in_turn("0.7", 1)})
    written(home, {"follows-0": in_turn("0.8", 1)})
    assert begin("feed", home, tmp_path / "out") == 4
    assert "0.7" in (printed := capsys.readouterr().err)
    assert "0.8" in printed


# --- the folder ------------------------------------------------------------------------


def of_a_user(out: Path, logs: Path) -> None:
    (out / "feed").mkdir(parents=True)
    (out / "feed" / "notes.txt").write_text("mine")


def a_file(out: Path, logs: Path) -> None:
    out.mkdir()
    (out / "feed").write_text("mine")


def a_file_itself(out: Path, logs: Path) -> None:
    out.write_text("mine")


def made_at_once(out: Path, logs: Path) -> None:
    stamp(out / "feed", Made(False, str(logs), {}))


def made_as_a_stream(out: Path, logs: Path) -> None:
    stamp(out / "feed", Made(True, str(logs), {}))


def of_other_logs(out: Path, logs: Path) -> None:
    stamp(out / "feed", Made(True, "/data/logs", {}))


def without_a_checkpoint(out: Path, logs: Path) -> None:
    made_as_a_stream(out, logs)
    (out / "feed" / "batch-000000-0000.parquet").touch()


def without_a_table(out: Path, logs: Path) -> None:
    commits = Place(out, "feed").checkpoint / "commits"
    commits.mkdir(parents=True)
    (commits / "0").touch()


IN_THE_WAY: dict[str, tuple[Callable[[Path, Path], None], bool, str]] = {
    "a folder of a user": (of_a_user, False, "/feed/notes.txt was written by no job"),
    "a file of a user": (a_file, True, "/feed was written by no job of this kind; name"),
    "a file": (a_file_itself, False, "out cannot be written: a part of that path is a file"),
    "made at once": (made_at_once, True, "was not made by a stream; name another folder"),
    "made as a stream": (made_as_a_stream, False, "is made by a stream; go on with --stream"),
    "of other logs": (of_other_logs, True, "is a stream of /data/logs, not of "),
    "no checkpoint": (without_a_checkpoint, True, "says how far it has come; put that back"),
    "no table": (without_a_table, True, "is left of a table that is gone; remove it, too"),
}


@pytest.mark.parametrize("name", IN_THE_WAY)
def test_what_is_in_the_way_is_left_as_it_is(
    name: str, logs: Path, tmp_path: Path, capsys: Output
) -> None:
    put, as_stream, printed = IN_THE_WAY[name]
    out = tmp_path / "out"
    put(out, logs)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert begin("feed", logs, out, *["--stream"] * as_stream) == 4
    assert printed in capsys.readouterr().err
    after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    after.pop(out / LOCK, None)
    assert after == before


def test_a_stream_goes_on_with_its_rules(logs: Path, tmp_path: Path, capsys: Output) -> None:
    """A window that began under one of them would end under another."""
    out, file = tmp_path / "out", tmp_path / "rules.yaml"
    of_limited = folder.made_of(JOBS["abuse"].tables[0], str(logs), Rules(), is_stream=True)
    stamp(out / "limited", of_limited)
    file.write_text("rules: {limit: {window_s: 30, most: 90}}")
    assert begin("abuse", logs, out, "--stream", "--config", str(file)) == 4
    printed = capsys.readouterr().err
    assert (
        'was begun with limit {"window_s":60,"most":90}, not {"window_s":30,"most":90}' in printed
    )
    assert begin("abuse", logs, out, "--stream") == 4
    assert "nothing answers at spark://127.0.0.1:9; start a master" in capsys.readouterr().err


def test_one_job_at_a_time(
    logs: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one folder; the next waits a while, since one that was killed may still be ending."""
    monkeypatch.setattr(folder, "LOCK_S", 0.2)
    out = tmp_path / "out"
    out.mkdir()
    with (out / LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert begin("feed", logs, out) == 4
        assert "another job into" in capsys.readouterr().err
    assert begin("feed", logs, out) == 4
    assert "nothing answers at spark://127.0.0.1:9; start a master" in capsys.readouterr().err


# --- the machine -----------------------------------------------------------------------


def test_a_machine_without_java(
    logs: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert begin("feed", logs, tmp_path / "out") == 4
    assert "there is no Java on PATH" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_job_that_is_interrupted(
    logs: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While Spark starts, say; a message says what to do."""

    def pressed(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(activity, "session", pressed)
    assert begin("feed", logs, tmp_path / "out") == 2
    assert "are whole; the same command goes on" in capsys.readouterr().err
