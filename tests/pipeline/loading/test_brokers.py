"""Live brokers are loaded into a table: each message once, whatever is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from tests.support.live.broker_process import HOST, brokers
from tests.support.live.log_brokers import PER_BROKER, served_logs, serving, started
from tests.support.live_zookeeper import until
from tests.support.log.kafka_logs import BuiltLog, in_turn, written
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.loads import (
    due,
    from_elsewhere,
    killed_at_every_point,
    load,
    load_from,
    rows_of,
)
from watchkeeper.cli.main import run_command
from watchkeeper.model.log.format.codecs import Codec

FORMS = ("0.7", "0.8")
forms = pytest.mark.parametrize("form", FORMS)
Output = pytest.CaptureFixture[str]
TOPICS = ("--topics", "clicks,views")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Brokers of each protocol; no test changes them."""
    homes = [tmp_path_factory.mktemp("brokers") / form for form in FORMS]
    with (
        serving("0.7", homes[0], served_logs("0.7")) as of_07,
        serving("0.8", homes[1], served_logs("0.8")) as of_08,
    ):
        yield {"0.7": of_07, "0.8": of_08}


@forms
def test_a_load_holds_every_message_once(
    form: str, served: dict[str, str], tmp_path: Path, capsys: Output
) -> None:
    """Again it loads nothing; and where it was loaded from does not matter to what follows."""
    logs = served_logs(form)
    out = tmp_path / "out"
    assert load_from(served[form], out, *TOPICS, "--json") == 0
    printed = capsys.readouterr()
    output = json.loads(printed.out)
    assert rows_of(out) == due(logs)
    assert output["messages"] == sum(len(log.rows) for log in logs.values())
    assert f"broker  1 at {HOST}:" in printed.err
    assert f", of Kafka {form}" in printed.err

    assert load_from(served[form], out, *TOPICS, "--split-bytes", "1") == 0
    assert load(written(tmp_path / "logs", logs), out) == 0
    assert rows_of(out) == due(logs)
    assert run_command(["load", "--offsets", str(out)]) == 0
    assert str(logs["1/clicks-0"].end) in capsys.readouterr().out


@forms
def test_brokers_go_on_where_files_have_ended(
    form: str, served: dict[str, str], tmp_path: Path
) -> None:
    """The range that is loaded from a broker begins where that of its files has ended."""
    few = {"1/clicks-0": in_turn(form, 4), "1/clicks-1": in_turn(form, 2, Codec.GZIP)}
    out = tmp_path / "out"
    assert load(written(tmp_path / "logs", few), out) == 0
    assert load_from(served[form], out, *TOPICS) == 0
    assert rows_of(out) == due(served_logs(form))


def test_what_is_refused(served: dict[str, str], tmp_path: Path, capsys: Output) -> None:
    out = str(tmp_path / "out")
    for command, sentence in (
        (
            ["--brokers", served["0.8"]],
            "0 folders are given; expected watchkeeper",
        ),
        (["--brokers", "a:1", "logs", out], "2 folders are given"),
        (["--brokers", "a:1", "--offsets", out], "--offsets loads nothing; expected it without"),
        (["--brokers", "a", out], "brokers has 'a'; expected HOST:PORT"),
        (["--protocol", "0.8", "logs", out], "protocol is given without brokers"),
        (["--brokers", served["0.7"], out], "no request for the names of topics"),
    ):
        assert run_command(["load", *command]) == 4
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# --- killed ----------------------------------------------------------------------------


@pytest.mark.slow
@forms
def test_killed_at_any_point_it_goes_on(
    form: str, served: dict[str, str], tmp_path: Path
) -> None:
    """At every connection, request, and thing that it does with files of the table."""
    given = {"brokers": served[form], "topics": "clicks", "splitBytes": "400"}
    assert killed_at_every_point(given, tmp_path) > 40


def many(form: str) -> dict[str, BuiltLog]:
    """Logs of one broker, enough for a load that takes a while."""
    return {
        f"1/clicks-{at}": in_turn(form, 40, Codec(at), rolls_every=1) for at in range(PER_BROKER)
    }


@pytest.mark.slow
@forms
def test_killed_with_its_processes_it_goes_on(form: str, tmp_path: Path) -> None:
    """By its id, at moments that chance has drawn; its processes end by themselves."""
    logs, out = many(form), tmp_path / "out"
    how = ("--topics", "clicks", "--runner", "pool", "--jobs", "2", "--split-bytes", "1")
    chance = random.Random(3)
    with serving(form, tmp_path / "logs", logs) as where:
        for _ in range(4):
            begun = from_elsewhere(where, out, *how)
            _killed_after(begun, out, chance.randrange(1, 12))
            for name, rows in rows_of(out).items():
                assert set(rows) <= set(logs[name].rows)
        assert load_from(where, out, *how) == 0
    assert rows_of(out) == due(logs)


def _killed_after(begun: subprocess.Popen[str], out: Path, files: int) -> None:
    enough = _files(out) + files
    until(lambda: _files(out) >= enough or begun.poll() is not None, PATIENCE_S)
    os.kill(begun.pid, signal.SIGKILL)
    assert begun.wait(PATIENCE_S) in (-signal.SIGKILL, 0)


def _files(out: Path) -> int:
    return len([*out.glob("*.parquet")])


@pytest.mark.slow
@forms
def test_a_broker_is_killed_and_the_load_goes_on(form: str, tmp_path: Path) -> None:
    """By its id, again and again, and started again while the load retries."""
    logs, out = many(form), tmp_path / "out"
    home = written(tmp_path / "logs", logs) / "1"
    chance = random.Random(7)
    with brokers(home) as start:
        broker = started(start, form, 1)
        port = ("--port", str(broker.port))
        how = ("--topics", "clicks", "--split-bytes", "1", "--retry-ms", "120000")
        begun = from_elsewhere(f"1:{HOST}:{broker.port}", out, *how)
        kills = 0
        while begun.poll() is None and kills < 6:
            enough = _files(out) + chance.randrange(1, 8)
            until(lambda enough=enough: _files(out) >= enough or begun.poll() is not None)
            broker.kill()
            kills += 1
            Event().wait(chance.random() * 0.3)
            broker = started(start, form, 1, *port)
        printed = begun.communicate(timeout=PATIENCE_S)
        assert (begun.returncode, kills) >= (0, 3), printed
        assert begun.returncode == 0, printed
    assert rows_of(out) == due(logs)
