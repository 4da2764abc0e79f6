"""`watchkeeper explore-brokers`, and the page of what it finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.check import brokers, control_plane_command
from watchkeeper.cli.main import run_command
from watchkeeper.model.plan.bounds import KINDS
from watchkeeper.reports.explorer.html import page_data, path_alone

STATE = "/brokers/topics/clicks/partitions/0/state"


def said_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """The exit code and the JSON of the command."""
    code = run_command(["explore-brokers", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def crashed() -> brokers.Searched:
    """The nearest way to a partition without a live leader, if a broker may crash."""
    return brokers.explore_brokers("kafka_08", ("crash",), ("live leaders",), 2)


def test_a_violation_is_written_as_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--fault", "crash", "--property", "live-leaders", "--out", str(tmp_path))
    code, report = said_by(capsys, *words)

    assert (code, report["verdict"], report["violated"]) == (1, "violated", "live leaders")
    assert report["steps"] == 37, "as on the page of findings"
    files = [Path(file) for file in report["files"]]
    assert [file.name for file in files] == ["verdict.json", "counterexample.html"]
    assert files[0].parent.name == "brokers-kafka_08-crash-live-leaders-explore"
    assert "2 brokers that elect a controller" in files[1].read_text()
    assert report["command"].endswith("--fault crash --property live-leaders")


def test_what_holds_has_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = said_by(capsys, "--out", str(tmp_path))
    assert (code, report["verdict"], report["states"]) == (0, "holds", 1644)
    assert report["properties"] == list(brokers.PROPERTY_NAMES)
    assert len(report["files"]) == 1
    assert report["command"] == "watchkeeper explore-brokers --variant kafka_08"


def test_a_limit_makes_it_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--brokers", "3", "--max-states", "100", "--out", str(tmp_path))
    code, report = said_by(capsys, *words)
    assert (code, report["verdict"]) == (2, "unknown")
    assert report["command"].endswith("--brokers 3 --max-states 100")


def test_the_report_has_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--fault", "crash", "--property", "live-leaders", "--out", str(tmp_path)]
    assert run_command(["explore-brokers", *words]) == 1
    text = capsys.readouterr().out
    assert "2 brokers, kafka_08, live leaders: violated" in text
    assert "  15  broker/1  is killed" in text
    assert "bound     2 brokers, 1 topic of 1 partition, 1 crash" in text


def test_the_words_of_the_command_are_those_of_the_search() -> None:
    """The command names them itself, so that `--help` imports no search."""
    assert tuple(brokers.PROPERTY_NAMES.values()) == control_plane_command.BROKER_PROPERTIES
    words = {word.replace("-", "_") for word in control_plane_command.BROKER_FAULTS}
    assert words <= set(KINDS)
    assert brokers.properties_of(("known-state",)) == ("known state",)


def test_the_page_has_the_data_of_znodes(crashed: brokers.Searched) -> None:
    """The state of the partition, after each step."""
    path = crashed.counterexample
    assert path is not None
    found = path_alone(path)
    graph, choices = found.graph, found.choices

    written = [number for number, step in enumerate(path.steps, 1) if STATE in step.registry]
    assert json.loads(path.steps[-1].registry[STATE])["leader"] == 1
    assert written == list(range(written[0], len(path.steps) + 1))
    assert graph[0].registry == {}
    assert [state.registry for state in graph[1:]] == [step.registry for step in path.steps]
    assert choices == (0,) * len(path.steps)


def test_brokers_have_colours_where_there_are_no_consumers(crashed: brokers.Searched) -> None:
    path = crashed.counterexample
    assert path is not None
    data = page_data(path.nodes, {}, path_alone(path).graph)
    assert [name for name, _ in data["nodes"]] == ["broker/0", "broker/1"]
    assert len({colour for _, colour in data["nodes"]} - {""}) == 2
    assert data["consumers"] == ["broker/0", "broker/1"]
