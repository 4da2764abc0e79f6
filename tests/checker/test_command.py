"""`watchkeeper explore` and what it leaves, from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from explore.search import Limits, Search
from explore.system import System
from watchkeeper import exploring
from watchkeeper.cli import run_command

TEXT = """
name: two
about: two members share one topic
clusters:
  main: {zookeeper: {servers: 1}, brokers: 1, topics: {clicks: {partitions_per_broker: 2}}}
groups: {billing: {consumers: 2, streams: {clicks: 1}}}
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a small scenario, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "two.yaml"
    file.write_text(f"{TEXT}bounds: {{crash: 1}}\n")
    return file


def said_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """The exit code and the JSON of a command."""
    code = run_command([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_what_holds_holds_within_its_bound(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = said_by(capsys, "explore", str(scenario))

    assert (code, said["verdict"], said["complete"], said["steps"]) == (0, "holds", True, None)
    assert said["bound"] == (
        "2 consumers, 2 partitions of 1 topic, 1 broker, from the start, 1 crash"
    )
    assert {one["verdict"] for one in said["properties"]} == {"holds"}
    assert said["remarks"] == ["without further faults every way leads to a good rest"]
    assert json.loads(Path(said["files"][0]).read_text()) == said


def test_what_is_violated_is_told_with_its_shortest_way(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command(["explore", str(scenario), "--variant", "documented"])

    out = capsys.readouterr().out
    assert code == 1
    assert "two, documented, every interleaving: violated" in out
    assert "the shortest way to violate truthful registry, 25 steps:" in out
    assert "the others are unknown: the search ended with the first violation" in out
    assert "counterexample.yaml" in out


def test_all_finds_the_nearest_violation_of_each_property(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = said_by(capsys, "explore", str(scenario), "--variant", "documented", "--all")

    violated = {one["name"] for one in said["properties"] if one["verdict"] == "violated"}
    assert code == 1
    assert {"truthful registry", "single ownership"} <= violated
    assert said["complete"]


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--max-states", "300", "300 states were seen"),
        ("--max-seconds", "0.000001", "1e-06 s were over"),
        ("--max-memory", "0.0000001", "0.0 GiB of memory were used"),
    ],
)
def test_a_search_that_is_cut_short_is_unknown(
    scenario: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, why: str
) -> None:
    code, said = said_by(capsys, "explore", str(scenario), option, value)

    assert (code, said["verdict"], said["complete"], said["stopped"]) == (
        2,
        "unknown",
        False,
        why,
    )


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Limits]:
    """The limits of every search that is made."""
    made: list[Limits] = []

    class Counted(Search):
        def __init__(self, system: System, limits: Limits | None, **options: Any) -> None:
            made.append(limits or Limits())
            super().__init__(system, limits, **options)

    monkeypatch.setattr(exploring, "Search", Counted)
    return made


def test_a_shorter_way_is_looked_for_within_what_is_left_of_the_limits(
    scenario: Path, searches: list[Limits]
) -> None:
    arguments = ["explore", str(scenario), "--variant", "documented", "--max-seconds", "500"]

    assert run_command([*arguments, "--max-states", "200000"]) == 1

    first, second = searches
    assert (first.states, first.seconds) == (200_000, 500)
    assert second.states == 200_000
    assert second.seconds is not None
    assert 0 < second.seconds < 500
    assert second.bytes == first.bytes


def test_no_shorter_way_is_looked_for_to_what_may_never_come(
    scenario: Path, searches: list[Limits], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever else is violated, nothing tells of it but all states together."""
    scenario.write_text(f"{TEXT}bounds: {{lost_reply: 1, consumers: 1, partitions: 1}}\n")

    code, said = said_by(capsys, "explore", str(scenario), "--variant", "claims-lost-on-error")

    violated = [one["name"] for one in said["properties"] if one["verdict"] == "violated"]
    assert (code, violated, len(searches)) == (1, ["progress"], 1)


def test_a_scenario_without_bounds_is_told_what_is_tried(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(f"{TEXT}timeline: [{{at: 1s, crash: billing/0}}]\n")

    code, said = said_by(capsys, "explore", str(scenario))

    assert code == 0
    assert said["remarks"][0].startswith("the scenario has no `bounds:`; one unit for each fault")
    assert said["bound"].endswith("1 crash")


def test_bounds_that_are_not_understood_are_told_with_their_line(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(f"{TEXT}bounds: {{crush: 1}}\n")

    code, said = said_by(capsys, "explore", str(scenario))

    assert code == 4
    [problem] = said["error"]["problems"]
    assert (problem["line"], problem["field"]) == (7, "bounds.crush")
    assert "crash" in problem["said"]


def test_several_clusters_are_refused(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = "zookeeper: {servers: 1}, brokers: 1, topics: {views: {partitions_per_broker: 1}}"
    text = TEXT.replace("  main:", f"  other: {{{second}}}\n  main:")
    scenario.write_text(text.replace("{consumers: 2", "{cluster: main, consumers: 2"))

    assert run_command(["explore", str(scenario)]) == 4

    said = "a search takes one cluster; this scenario has several"
    assert said in capsys.readouterr().err


# --- what is done with a counterexample ------------------------------------------------


@pytest.fixture
def counterexample(scenario: Path) -> Path:
    """The folder of a search that has found something."""
    assert run_command(["explore", str(scenario), "--variant", "documented"]) == 1
    return scenario.parent / "runs" / "two-documented-explore"


def test_a_counterexample_is_followed_in_the_simulation(
    counterexample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    code, said = said_by(capsys, "replay", str(counterexample / "counterexample.yaml"))

    assert (code, said["conforms"], said["reached"]) == (0, True, True)
    assert said["said"].startswith("truthful registry is violated: ")


def test_a_circle_is_told_kept_and_gone_round(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(f"{TEXT}bounds: {{lost_reply: 1, consumers: 1, partitions: 1}}\n")

    assert run_command(["explore", str(scenario), "--variant", "claims-lost-on-error"]) == 1

    assert "and this for ever:\n" in capsys.readouterr().out
    file = scenario.parent / "runs" / "two-claims-lost-on-error-explore" / "counterexample.yaml"
    kept = yaml.safe_load(file.read_text())["schedule"]
    assert [step["does"] for step in kept["circle"]] == ["is answered"]
    assert run_command(["replay", str(file)]) == 0
    steps = len(kept["steps"])
    assert capsys.readouterr().out == (
        f"progress is violated: after {steps} steps it goes round and round, 1 step each time; "
        "3 rounds were made\n"
    )


def test_the_test_that_it_leaves_fails_for_the_same_reason(counterexample: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "test_counterexample.py",
            "-p",
            "no:cacheprovider",
        ],
        cwd=counterexample,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "truthful registry is violated" in done.stdout


def test_a_search_that_finds_nothing_leaves_no_counterexample(
    counterexample: Path, scenario: Path
) -> None:
    """Not even that of an earlier search of the same name."""
    assert (counterexample / "counterexample.html").is_file()
    scenario.write_text(f"{TEXT}bounds: {{consumers: 1}}\n")

    assert run_command(["explore", str(scenario), "--variant", "documented"]) == 0

    assert [one.name for one in counterexample.iterdir()] == ["verdict.json"]


def test_a_schedule_that_was_changed_is_told(
    counterexample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = counterexample / "counterexample.yaml"
    file.write_text(file.read_text().replace("does: is answered", "does: sings", 1))
    capsys.readouterr()

    code = run_command(["replay", str(file)])

    assert code == 4
    assert "sings" in capsys.readouterr().err


def test_a_file_without_a_schedule_is_told(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["replay", str(scenario)]) == 4
    assert "two.yaml has no `schedule:`" in capsys.readouterr().err
