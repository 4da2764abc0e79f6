"""`--zookeeper`: which ZooKeeper a command uses, that it says so, and what contradicts itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.live_zookeeper import skip_without_zookeeper
from watchkeeper.cli.main import run_command
from watchkeeper.console import zookeeper as option
from watchkeeper.real.zookeeper.jars import zookeeper_jars, zookeeper_version
from watchkeeper.real.zookeeper.settings import Settings
from watchkeeper.real.zookeepers import implementation
from watchkeeper.real.zookeepers.implementation import (
    Implementation,
    apache_if_found,
    apache_version,
    python_settings,
)

OWN = "watchkeeper's own, in Python"


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


# --- which one -------------------------------------------------------------------------


def test_runs_start_the_one_in_python_unless_apaches_is_named() -> None:
    """Whether Java is there or not, so that a run means the same on every machine."""
    assert option.implementation_of(None) is Implementation.PYTHON
    assert option.implementation_of("python") is Implementation.PYTHON
    assert option.implementation_of("java") is Implementation.JAVA
    assert option.hosts_in("zk1:2181,zk2:2181/kafka") == "zk1:2181,zk2:2181/kafka"
    assert [option.hosts_in(word) for word in ("java", "python", None)] == [None] * 3


def test_measurements_and_verifications_start_apaches_if_it_is_found() -> None:
    """What is measured and verified is Apache's behaviour, unless a server is named."""
    skip_without_zookeeper()

    assert apache_version() == zookeeper_version(zookeeper_jars())
    assert apache_if_found() is option.measured_implementation(None) is Implementation.JAVA
    assert option.measured_implementation("python") is Implementation.PYTHON


def test_without_java_everything_starts_the_one_in_python(no_java: None) -> None:
    """And nothing recommends what cannot be started."""
    assert apache_version() is None
    assert option.measured_implementation(None) is Implementation.PYTHON
    assert option.in_words(Implementation.PYTHON) == OWN


def test_the_words_name_the_server_and_the_way_to_apaches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(implementation, "apache_version", lambda: "3.9.5")

    advice = f"{OWN}; --zookeeper java runs on Apache's 3.9.5"
    assert option.in_words(Implementation.PYTHON) == advice
    assert option.in_words(Implementation.JAVA) == "Apache's 3.9.5, in Java"
    assert option.in_words("zk1:2181/kafka") == "zk1:2181/kafka"


def test_both_have_the_same_settings() -> None:
    """So the same session timeouts are granted, and a silent server is missed as soon."""
    apaches = Settings(tick_ms=300, max_session_ms=9_000, sync_ticks=3, has_ttls=True)

    ours = python_settings(apaches)

    assert ours.session_bounds_ms == apaches.session_bounds_ms == (600, 9_000)
    assert (ours.tick_ms, ours.sync_ticks, ours.extended_types) == (300, 3, True)
    assert not python_settings(Settings()).extended_types


# --- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("run", "steady-join", "--zookeeper", "python"), "are for live runs"),
        (
            (
                "run",
                "steady-join",
                "--world",
                "live",
                "--zookeeper",
                "java",
                "--auth",
                "digest:a:b",
            ),
            "go with --zookeeper HOSTS",
        ),
        (
            ("run", "zookeeper-minority", "--world", "live", "--zookeeper", "java"),
            "past the proxy; --zookeeper python can do it",
        ),
        (
            ("run", "broker-disk-full", "--world", "live"),
            "the disk of one broker on this machine cannot be filled",
        ),
        (
            ("calibrate", "127.0.0.1:1", "--zookeeper", "java"),
            "127.0.0.1:1 runs already, so --zookeeper java would start another",
        ),
        (("calibrate", "--zookeeper", "rust"), "'rust' is not one of 'java', 'python'"),
    ],
)
def test_what_contradicts_itself_is_refused(
    arguments: tuple[str, ...],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With a sentence, and exit code 4."""
    monkeypatch.chdir(tmp_path)

    assert run_command(list(arguments)) == 4
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [("run", "steady-join", "--world", "live"), ("conform", "steady-join"), ("calibrate",)],
)
def test_without_java_apaches_is_refused(
    command: tuple[str, ...],
    no_java: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With what to install; the one in Python is not taken in its place."""
    monkeypatch.chdir(tmp_path)

    assert run_command([*command, "--zookeeper", "java"]) == 4
    assert "there is no Java on PATH" in capsys.readouterr().err


# --- that it is said -------------------------------------------------------------------


@pytest.mark.parametrize("server", ["python", "java"])
def test_conform_says_on_which_one(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As text and as JSON."""
    if server == "java":
        skip_without_zookeeper()
    command = ["conform", "consumer-crash", "--schedules", "2", "--zookeeper", server]

    assert run_command(command) == 0
    text = capsys.readouterr().out
    assert run_command([*command, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)

    words = option.in_words(Implementation(server))
    assert text.splitlines()[-1] == f"zookeeper {words}"
    assert output["zookeeper"] == words
    assert output["conforms"]
