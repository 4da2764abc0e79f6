"""The command that a report gives repeats what it reports: every option that matters is in it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.cli.main import run_command
from watchkeeper.console.signals import INTERRUPTS

SCENARIO = """
name: two
about: two members share one topic
clusters:
  main: {zookeeper: {servers: 1}, brokers: 1, topics: {clicks: {partitions_per_broker: 2}}}
groups: {billing: {consumers: 2, streams: {clicks: 1}}}
timeline: [{at: 12s, crash: billing/1}]
settle: 8s
"""
BOUNDS = "bounds: {crash: 1}\n"
PROFILE = """
watchkeeper_profile: 1
zookeeper: {simulation: {request: {p50: 2ms, p99: 9ms}}}
"""
VIRTUAL = """
import time
from watchkeeper.virtual import simulated

@simulated(seeds=9, until_s=10)
def test_sleeps(world):
    done = []
    world.process("a", lambda: (time.sleep(1), done.append(1)))
    world.finally_(lambda: done, name="it ends")
"""
FILE = "my two.yaml"
"""A path that a shell has to be given in quotes."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a scenario, one with bounds, and a file of tests."""
    monkeypatch.chdir(tmp_path)
    Path(FILE).write_text(SCENARIO)
    Path("bounded two.yaml").write_text(SCENARIO + BOUNDS)
    Path("test_again_virtual.py").write_text(VIRTUAL)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """The exit code and the JSON of a command."""
    code = run_command([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


COMMANDS: dict[str, tuple[str, str, str]] = {
    "run": (
        f"run '{FILE}' --seed 5 --check-determinism --no-pictures",
        "verdict fingerprint deterministic",
        "--seed 5 --check-determinism",
    ),
    "run of a variant": (
        "run consumer-crash --variant documented --seed 2 --no-pictures",
        "verdict fingerprint",
        "--variant documented --seed 2",
    ),
    "explore": (
        "explore 'bounded two.yaml' --max-states 60 --no-reduce --all --jobs 2 --max-memory 64",
        "verdict states transitions stopped",
        "--all --max-states 60 --max-memory 64 --no-reduce --jobs 2",
    ),
    "explore, memory": (
        "explore 'bounded two.yaml' --max-memory 0.001",
        "verdict stopped complete",
        "--max-memory 0.0009",
    ),
    "explore-replicas": (
        "explore-replicas --fault crash --epochs 2 --max-states 50",
        "verdict states stopped",
        "--fault crash --epochs 2 --max-states 50",
    ),
    "explore-brokers": (
        "explore-brokers --fault crash --max-states 50 --property live-leaders",
        "verdict states stopped",
        "--fault crash --property live-leaders --max-states 50",
    ),
    "explore-offsets": (
        "explore-offsets --fault crash --members 2 --max-states 50",
        "verdict states stopped",
        "--members 2 --fault crash --max-states 50",
    ),
    "sweep": (
        f"sweep '{FILE}' --seeds 2..4 --variants documented --set settle=7s,9s --traces 3 "
        "--no-shrink --runner process --out 'my sweep'",
        "verdicts cells failures traces",
        "--traces 3 --no-shrink --out 'my sweep'",
    ),
    "virtual": (
        "virtual test_again_virtual.py::test_sleeps --seeds 3..5 --policy pct:2 --keep-going "
        "--check-determinism",
        "verdicts seeds deterministic",
        "--seeds 3..5 --policy pct:2 --keep-going --check-determinism",
    ),
}
"""Command -> its words, the fields of its report that have to be the same, and the options."""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_comes_to_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    given, fields, options = COMMANDS[name]
    words = shlex.split(given)

    code, report = told(capsys, *words)
    report = report[0] if name == "virtual" else report
    line = shlex.split(report["command"])
    assert options in report["command"]
    assert line[:2] == ["watchkeeper", words[0]]
    again, repeated = told(capsys, *line[1:])
    repeated = repeated[0] if name == "virtual" else repeated

    assert again == code
    assert {field: repeated[field] for field in fields.split()} == {
        field: report[field] for field in fields.split()
    }
    assert repeated["command"] == report["command"]


@pytest.mark.slow
def test_the_command_of_an_analysis(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "run", FILE, "--no-pictures")
    code, report = told(capsys, "analyze", "runs", "--out", "my analysis")

    assert report["command"] == "watchkeeper analyze runs --out 'my analysis'"
    again, repeated = told(capsys, *shlex.split(report["command"])[1:])
    assert (again, repeated) == (code, report)


# --- an interrupt ----------------------------------------------------------------------


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C has been pressed."""
    monkeypatch.setattr(INTERRUPTS, "came", True)


@pytest.mark.usefixtures("interrupted")
@pytest.mark.parametrize(
    "words",
    [
        ("explore", "bounded two.yaml"),
        ("explore-replicas", "--fault", "crash"),
        ("explore-brokers", "--fault", "crash"),
        ("explore-offsets", "--fault", "crash"),
    ],
    ids=lambda words: words[0],
)
def test_an_interrupted_search_says_what_it_has_seen(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = told(capsys, *words)

    assert (code, report["verdict"]) == (2, "unknown")
    assert report["stopped"] == "it was interrupted"
    assert report["states"] > 0
    run_command(list(words))
    assert "it was interrupted" in capsys.readouterr().out


@pytest.mark.usefixtures("interrupted")
def test_an_interrupted_battery_says_which_searches_are_complete(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["explore", FILE, "--budget", "1h"]) == 2
    report = capsys.readouterr().out

    assert "0 of " in report
    assert "complete; it was interrupted, and nothing is known of what the others" in report
    assert "not begun" in report


@pytest.mark.usefixtures("interrupted")
def test_interrupted_runs_in_virtual_time_say_how_many_are_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = run_command(["virtual", "test_again_virtual.py", "--seeds", "3..9"])
    report = capsys.readouterr().out

    assert code == 2
    assert "1 seed, 1 holds" in report
    assert "interrupted: nothing is known of the other 6 seeds" in report


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_that_python_drops_ends_a_live_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No exception arrives if Ctrl-C comes while an object is collected; the run looks itself."""
    code, report = told(capsys, "run", FILE, "--world", "live", "--no-pictures")

    assert (code, report["verdict"]) == (2, "unknown")


# --- quiet and verbose -----------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("run", FILE, "--no-pictures"),
        ("explore", "bounded two.yaml", "--max-states", "60"),
        ("sweep", FILE, "--seeds", "2", "--out", "quiet", "--runner", "process"),
        ("virtual", "test_again_virtual.py", "--seeds", "1"),
    ],
    ids=lambda words: words[0],
)
def test_quiet_prints_the_first_line_and_verbose_the_seconds_of_each_part(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    run_command([*words, "--quiet"])
    quiet = capsys.readouterr()
    run_command([*words, "--verbose"])
    verbose = capsys.readouterr()

    assert quiet.out == verbose.out.partition("\n")[0] + "\n"
    assert quiet.err == ""
    assert [line for line in verbose.err.splitlines() if line.endswith(" s") and ": " in line]
