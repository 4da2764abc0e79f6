"""Logs are loaded into a table: each message once, killed or not, and how far is known."""

from __future__ import annotations

import fcntl
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import HOME
from tests.pipeline.sweeps.test_kills import killed
from tests.support.log.kafka_logs import BuiltLog, brokers, built, in_turn, plain, written
from tests.support.pipeline.loads import (
    Rows,
    due,
    elsewhere,
    files_of,
    killed_at_every_point,
    load,
    rows_of,
)
from watchkeeper.cli.main import run_command
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.pipeline.kafkalog.options import options_of
from watchkeeper.pipeline.loading.commits import Commit, parsed
from watchkeeper.pipeline.loading.load import load_logs, planned
from watchkeeper.pipeline.loading.load_task import LoadTask
from watchkeeper.pipeline.loading.load_task import load as do
from watchkeeper.pipeline.loading.table import LOADING, LOCK, QUARANTINE, opened

forms = pytest.mark.parametrize("form", ["0.7", "0.8"])
Output = pytest.CaptureFixture[str]


def said_by(capsys: Output) -> dict[str, Any]:
    """What was printed as JSON."""
    output: dict[str, Any] = json.loads(capsys.readouterr().out)
    return output


# --- loading ---------------------------------------------------------------------------


@forms
def test_a_load_holds_every_message_once(form: str, tmp_path: Path, capsys: Output) -> None:
    logs = brokers(form)
    home, out = written(tmp_path / "logs", logs), tmp_path / "out"

    assert load(home, out, "--json") == 0
    output = said_by(capsys)
    assert rows_of(out) == due(logs)
    assert output["messages"] == sum(len(log.rows) for log in logs.values())
    assert [row["to"] for row in output["logs"]] == [logs[name].end for name in sorted(logs)]
    assert sorted(path.name for path in out.iterdir() if path.suffix != ".parquet") == [LOCK]


@forms
@pytest.mark.parametrize("split_bytes", ["1", "100"])
def test_a_load_goes_on_where_the_last_has_ended(
    form: str, split_bytes: str, tmp_path: Path, capsys: Output
) -> None:
    """It writes files for what has come since, and leaves the others alone."""
    home, out = tmp_path / "logs", tmp_path / "out"
    before: dict[str, bytes] = {}
    for count in (0, 3, 3, 5, 12):
        logs = {
            "1/clicks-0": in_turn(form, count),
            "2/clicks-1": in_turn(form, count, Codec.GZIP),
        }
        written(home, logs)
        assert load(home, out, "--split-bytes", split_bytes) == 0
        assert {name: rows for name, rows in rows_of(out).items() if rows} == {
            name: rows for name, rows in due(logs).items() if rows
        }
        after = files_of(out)
        assert {name: after[name] for name in before} == before
        before = after
    assert "12 messages" not in capsys.readouterr().err


def test_a_torn_end_is_reported_and_loaded_when_it_is_whole(
    tmp_path: Path, capsys: Output
) -> None:
    home, out = tmp_path / "logs", tmp_path / "out"
    log = built([plain(b"one"), plain(b"two")])
    path = log.write(home / "clicks-0") / f"{0:020d}.kafka"
    path.write_bytes(log.segments[0][:-1])

    assert load(home, out, "--json") == 0
    [row] = said_by(capsys)["logs"]
    assert (row["to"], row["messages"], row["torn_bytes"]) == (13, 1, 12)
    path.write_bytes(log.segments[0])
    assert load(home, out) == 0
    assert rows_of(out) == {"0/clicks-0": log.rows}


def test_in_08_another_replica_goes_on_where_one_has_ended(tmp_path: Path) -> None:
    """Offsets mean the same on each broker, and the first broker may have lost its log."""
    out = tmp_path / "out"
    short, long = in_turn("0.8", 4), in_turn("0.8", 9)
    home = written(tmp_path / "logs", {"1/clicks-0": short, "2/clicks-0": long})
    assert load(home, out) == 0
    assert rows_of(out) == {"1/clicks-0": short.rows}

    for path in (home / "1" / "clicks-0").iterdir():
        path.unlink()
    assert load(home, out) == 0
    assert rows_of(out) == {
        "1/clicks-0": short.rows,
        "2/clicks-0": long.rows[len(short.rows) :],
    }


def test_only_some_topics_and_another_broker(tmp_path: Path) -> None:
    logs = brokers()
    home = written(tmp_path / "logs", logs)
    assert load(home / "1", tmp_path / "one", "--topics", "clicks", "--broker", "9") == 0
    assert rows_of(tmp_path / "one") == {
        "9/clicks-0": logs["1/clicks-0"].rows,
        "9/clicks-1": logs["1/clicks-1"].rows,
    }


@given(
    st.builds(
        Commit,
        st.text(min_size=1, max_size=20),
        st.integers(0, 2**31 - 1),
        st.integers(0, 2**31 - 1),
        st.sampled_from(["0.7", "0.8"]),
        st.integers(0, 2**63 - 1),
        st.integers(0, 2**63 - 1),
    ).filter(lambda message: message.topic.isprintable())
)
def test_a_name_says_what_a_file_holds(commit: Commit) -> None:
    """Whatever the topic; and nothing reads the name as hidden, or as a path."""
    assert parsed(commit.name) == commit
    assert "/" not in commit.name
    assert commit.name[0] not in "._"


# --- damage ----------------------------------------------------------------------------


def damaged() -> tuple[dict[str, BuiltLog], Rows]:
    """Logs of which one is damaged in its third message and later on, and what is left."""
    logs = {"1/clicks-0": in_turn("0.7", 10), "1/clicks-1": in_turn("0.7", 4)}
    log = logs["1/clicks-0"]
    data = bytearray(log.segments[0])
    rows, last = log.entries[2].rows, log.entries[2].end - 1
    data[last] ^= 1
    _, garbled, behind, more = log.entries[5]
    data[garbled:behind] = b"\xff" * (behind - garbled)
    log.segments[0] = bytes(data)
    lost = {row.offset for row in (*rows, *more)}
    left = due(logs) | {"1/clicks-0": [row for row in log.rows if row.offset not in lost]}
    return logs, left


def test_damage_keeps_a_split_from_being_loaded_and_no_other(
    tmp_path: Path, capsys: Output
) -> None:
    """And when the file is restored, the same command goes on."""
    logs, _ = damaged()
    home, out = written(tmp_path / "logs", logs), tmp_path / "out"

    assert load(home, out, "--split-bytes", "1") == 4
    output = capsys.readouterr().err
    assert "clicks-0 of broker 1 is damaged at offset" in output
    assert "have damaged messages skipped or put in quarantine, or restore the file" in output
    kept = files_of(out)
    assert rows_of(out)["1/clicks-1"] == logs["1/clicks-1"].rows

    undamaged = {"1/clicks-0": in_turn("0.7", 10), "1/clicks-1": logs["1/clicks-1"]}
    written(home, undamaged)
    assert load(home, out, "--split-bytes", "1") == 0
    assert rows_of(out) == due(undamaged)
    assert {name: files_of(out)[name] for name in kept} == kept


@pytest.mark.parametrize(
    ("folder", "options", "broker"),
    [
        ("logs", (), "0 for the logs in {}, since nothing names one; --broker ID names another"),
        ("broker-7", (), "7 for the logs in {}, by the name of the folder; --broker ID names"),
        ("logs", ("--broker", "3"), "3 for the logs in {}, as --broker says"),
    ],
)
def test_it_says_which_broker_a_folder_is_taken_for(
    tmp_path: Path, capsys: Output, folder: str, options: tuple[str, ...], broker: str
) -> None:
    home = written(tmp_path / folder, {"clicks-0": in_turn("0.7", 3)})
    assert load(home, tmp_path / "out", *options) == 0
    output = capsys.readouterr()
    assert f"broker  {broker.format(home)}" in output.err
    assert f"clicks-0 of broker {broker[0]}" in output.out


def test_what_is_damaged_can_be_skipped(tmp_path: Path, capsys: Output) -> None:
    logs, left = damaged()
    home, out = written(tmp_path / "logs", logs), tmp_path / "out"

    assert load(home, out, "--corrupt", "skip", "--json") == 0
    output = said_by(capsys)
    assert rows_of(out) == left
    assert (output["skipped"], output["quarantined"]) == (2, 0)
    about = [pq.ParquetFile(path).metadata.metadata for path in out.glob("1-0.*.parquet")]
    assert sum(int(pair[b"skipped"]) for pair in about) == 2


def test_what_is_damaged_can_be_put_in_quarantine(tmp_path: Path, capsys: Output) -> None:
    """In a table of its own, with the bytes as they are and what is wrong with them."""
    logs, left = damaged()
    home, out = written(tmp_path / "logs", logs), tmp_path / "out"

    assert load(home, out, "--corrupt", "quarantine", "--json") == 0
    output = said_by(capsys)
    assert rows_of(out) == left
    assert (output["skipped"], output["quarantined"]) == (0, 2)
    paths = sorted((out / QUARANTINE).iterdir())
    assert {path.name for path in paths} <= set(files_of(out))
    found = [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]
    entries = logs["1/clicks-0"].entries
    assert [row["offset"] for row in found] == [entries[2].begin, entries[5].begin]
    assert [row["codec"] for row in found] == ["none", None]
    assert found[0]["payload"] != entries[2].rows[0].payload
    assert found[1]["payload"] == b"\xff" * (entries[5].end - entries[5].begin)
    assert [row["reason"] for row in found] == ["its CRC is wrong", "no message begins there"]


# --- killed ----------------------------------------------------------------------------


def test_killed_at_any_point_it_goes_on(tmp_path: Path) -> None:
    """At every single thing it does with files; and some tables many times in turn."""
    logs, _ = damaged()
    written(tmp_path / "logs", logs)
    assert killed_at_every_point({"path": str(tmp_path / "logs")}, tmp_path) > 25


def test_killed_with_its_processes_it_goes_on(tmp_path: Path) -> None:
    """By its id, at moments that chance has drawn; its processes end by themselves."""
    logs = {f"{at}/clicks-{at}": in_turn("0.7", 15, Codec(at % 3)) for at in range(6)}
    home, out = written(tmp_path / "logs", logs), tmp_path / "out"
    how = ("--runner", "pool", "--jobs", "2", "--split-bytes", "1")
    chance = random.Random(11)
    for _ in range(3):
        enough = len(files_of(out)) + chance.randrange(1, 25)
        begun = elsewhere(home, out, *how)
        assert killed(begun, lambda enough=enough: len(files_of(out)) >= enough)
        for name, rows in rows_of(out).items():
            assert set(rows) <= set(logs[name].rows)
    assert load(home, out, "--split-bytes", "1", "--runner", "process") == 0
    assert rows_of(out) == due(logs)


def test_a_task_that_outlives_its_load_commits_nothing(tmp_path: Path) -> None:
    """The next load has taken its folder away, and nothing can be renamed out of it."""
    logs = {"0/clicks-0": in_turn("0.7", 3)}
    home, out = written(tmp_path / "logs", logs), tmp_path / "out"
    options = options_of({"path": str(home)})
    with opened(out) as table:
        plan = planned(options.logs(), table.held(), options)
        late = LoadTask(
            tuple(plan.splits), str(table.home), str(table.run), "fail", "fail", "none"
        )
    load_logs(options, out, lambda _, tasks: map(do, tasks), tell=lambda _: None)
    before = files_of(out)

    [output] = do(late)
    assert "is not there any more: another load into" in output.problem
    assert files_of(out) == before
    assert not (out / LOADING).exists()


def test_what_a_kill_has_left_is_removed(tmp_path: Path) -> None:
    """Files half-written, and those in quarantine whose rows were never committed."""
    home, out = written(tmp_path / "logs", {"0/clicks-0": in_turn("0.7", 3)}), tmp_path / "out"
    (out / LOADING / "run" / "attempt").mkdir(parents=True)
    (out / LOADING / "run" / "attempt" / "x.parquet").write_bytes(b"PAR1 and no more")
    (out / QUARANTINE).mkdir()
    (out / QUARANTINE / Commit("clicks", 0, 0, "0.7", 0, 5).name).write_bytes(b"PAR1")

    assert load(home, out) == 0
    assert [path.name for path in out.iterdir() if path.is_dir()] == [QUARANTINE]
    assert list((out / QUARANTINE).iterdir()) == []


# --- bad input -------------------------------------------------------------------------


@pytest.fixture
def loaded(tmp_path: Path, capsys: Output) -> Iterator[Path]:
    """A folder with `logs`, and `out`, into which they were loaded; `out` has to stay so."""
    logs = {"clicks-0": built([plain(b"one", b"two"), plain(b"three", rolls=True)])}
    written(tmp_path / "logs", logs)
    assert load(tmp_path / "logs", tmp_path / "out") == 0
    before = files_of(tmp_path / "out")
    capsys.readouterr()
    yield tmp_path
    assert {name: files_of(tmp_path / "out").get(name) for name in before} == before


def refused(capsys: Output, *command: str) -> str:
    """The one sentence that a command ends with, which has to end with 4."""
    assert run_command(list(command)) == 4
    output = capsys.readouterr().err
    lines = [line for line in output.splitlines() if not line.startswith("runner")]
    assert len(lines) == 1, output
    return lines[0]


def test_folders_that_are_wrong(loaded: Path, capsys: Output) -> None:
    """Each is reported in a sentence; nothing is made where nothing was loaded."""
    out, logs = str(loaded / "out"), loaded / "logs"
    folder = loaded / "other"
    folder.mkdir()
    assert "there is no log in" in refused(capsys, "load", str(folder), out)
    assert "cannot be read: No such file" in refused(capsys, "load", str(loaded / "none"), out)
    output = refused(capsys, "load", str(logs), str(logs))
    assert "holds clicks-0, which no load has written; name a folder that is empty" in output
    assert [path.name for path in logs.iterdir()] == ["clicks-0"]
    (folder / "file").write_bytes(b"")
    assert "cannot be written: File exists" in refused(
        capsys, "load", str(logs), str(folder / "file")
    )
    (folder / "file").unlink()
    assert "holds nothing yet" in refused(capsys, "load", "--offsets", str(folder))


def test_a_gap(loaded: Path, capsys: Output) -> None:
    log = loaded / "logs" / "clicks-0"
    (log / f"{26:020d}.kafka").rename(log / f"{30:020d}.kafka")
    output = refused(capsys, "load", str(loaded / "logs"), str(loaded / "out"))
    assert "ends at 26 and the next segment" in output
    assert "put it back, or read what is there by allowing gaps" in output


def test_a_log_that_ends_before_the_table_does(loaded: Path, capsys: Output) -> None:
    """As after a crash of its broker: it is not the log that it was."""
    last = loaded / "logs" / "clicks-0" / f"{26:020d}.kafka"
    last.write_bytes(b"")
    output = refused(capsys, "load", str(loaded / "logs"), str(loaded / "out"))
    assert "was read up to 41, and now ends at 26: it is not the log that it was" in output


def test_a_log_of_which_something_was_deleted_unread(loaded: Path, capsys: Output) -> None:
    """It can be left out, if it is allowed; then it counts as passed."""
    log = loaded / "logs" / "clicks-0"
    for path in log.iterdir():
        path.unlink()
    later = built([plain(b"later")], start=100)
    later.write(log)
    command = ("load", str(loaded / "logs"), str(loaded / "out"))
    assert "was read up to 41, and now begins at 100" in refused(capsys, *command)
    for _ in range(2):
        assert run_command([*command, "--gaps", "allow"]) == 0
    assert rows_of(loaded / "out")["0/clicks-0"][-1:] == later.rows
    capsys.readouterr()
    assert run_command(["load", "--offsets", str(loaded / "out"), "--json"]) == 0
    assert said_by(capsys)["offsets"] == {"clicks": {"0-0": 115}}


def test_mixed_formats(loaded: Path, capsys: Output) -> None:
    log = loaded / "logs" / "clicks-0"
    (log / "0.log").write_bytes(b"")
    command = ("load", str(loaded / "logs"), str(loaded / "out"))
    assert "holds segments of 0.7 (*.kafka) and of 0.8 (*.log)" in refused(capsys, *command)
    for path in log.glob("*.kafka"):
        path.unlink()
    output = refused(capsys, *command)
    assert "the table holds clicks-0 of broker 0 of Kafka 0.7, and the log is of 0.8" in output


def test_a_half_written_file_of_the_table(loaded: Path, capsys: Output) -> None:
    """No load leaves one; but a copy of the table may hold one."""
    half = loaded / "out" / Commit("views", 0, 0, "0.7", 0, 5).name
    half.write_bytes(b"PAR1 and no more")
    output = refused(capsys, "load", str(loaded / "logs"), str(loaded / "out"))
    assert f"{half} is no whole file of Parquet; remove it, and the next load writes it" in output


def test_two_loads_at_once(loaded: Path, capsys: Output) -> None:
    with (loaded / "out" / LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        output = refused(capsys, "load", str(loaded / "logs"), str(loaded / "out"))
    assert "is under way; wait until it has ended" in output


def test_a_topic_with_too_long_a_name(loaded: Path, capsys: Output) -> None:
    built([plain(b"x")]).write(loaded / "logs" / f"{'x' * 250}-0")
    output = refused(capsys, "load", str(loaded / "logs"), str(loaded / "out"))
    assert "has too long a name for a file that is named after it" in output


USAGE = {
    "one folder": (["x"], "1 folders are given; expected watchkeeper load LOGDIR OUT"),
    "two for one": (["--offsets", "x", "y"], "expected watchkeeper load --offsets OUT"),
    "a group alone": (["x", "y", "--group", "g"], "--group and --zookeeper go together"),
    "a number": (["x", "y", "--split-bytes", "-1"], "expected a whole number from 1 on"),
}


@pytest.mark.parametrize("name", USAGE)
def test_usage(name: str, capsys: Output) -> None:
    arguments, output = USAGE[name]
    assert output in refused(capsys, "load", *arguments)


# --- a full disk -----------------------------------------------------------------------


def test_a_file_that_may_not_grow(loaded: Path) -> None:
    """The rows before it stay; with room, the same command goes on."""
    more = {"views-0": in_turn("0.7", 4000, rolls_every=1000)}
    home, out = written(loaded / "logs", more), loaded / "out"
    command = f"{sys.executable} -P -m watchkeeper load {home} {out} --compression none --json"
    # Python would cut its bytecode at the limit, too, and other processes would read it.
    limited = f"ulimit -f 20; PYTHONDONTWRITEBYTECODE=1 exec {command}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, cwd=HOME)
    assert done.returncode == 4, done.stderr
    assert "cannot be written: File too large; what was loaded before is kept" in done.stderr
    assert json.loads(done.stdout)["files"] == 0
    assert load(home, out) == 0
    assert rows_of(out)["0/views-0"] == more["views-0"].rows


def test_a_full_disk(loaded: Path) -> None:
    """A real one, where this process may mount one."""
    small = loaded / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not allowed here")
    try:
        more = {"views-0": in_turn("0.7", 6000, rolls_every=500)}
        home = written(loaded / "logs", more)
        done = subprocess.run(
            [
                sys.executable,
                "-P",
                "-m",
                "watchkeeper",
                "load",
                str(home),
                str(small),
                "--compression",
                "none",
            ],
            capture_output=True,
            text=True,
            cwd=HOME,
        )
        assert done.returncode == 4
        assert "cannot be written: No space left on device" in done.stderr
        kept = rows_of(small)
        assert kept
        assert set(kept.get("0/views-0", [])) <= set(more["views-0"].rows)
    finally:
        subprocess.run(["umount", str(small)], check=True)
