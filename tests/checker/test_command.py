"""`watchkeeper explore` and what it leaves, from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from watchkeeper.check import check
from watchkeeper.checker.search.search import Limits, Search, SearchOptions
from watchkeeper.checker.state_space.system import System
from watchkeeper.cli.main import run_command

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
    code, report = said_by(capsys, "explore", str(scenario))

    assert (code, report["verdict"], report["complete"], report["steps"]) == (
        0,
        "holds",
        True,
        None,
    )
    assert report["bound"] == (
        "2 consumers, 2 partitions of 1 topic, 1 broker, from the start, 1 crash"
    )
    found = {row["name"]: (row["verdict"], row["exercised"]) for row in report["properties"]}
    assert found.pop("monotone offsets") == ("unknown", 0), "the search has no messages"
    assert {verdict for verdict, _ in found.values()} == {"holds"}
    assert all(exercised > 0 for _, exercised in found.values())
    assert report["remarks"] == ["without further faults every path leads to a converged state"]
    assert json.loads(Path(report["files"][0]).read_text()) == report


def test_the_command_that_repeats_a_search_has_its_options(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one search and of a battery; a limit that the scenario itself brings is none of them."""
    options = ["--all", "--max-states", "40", "--no-reduce"]
    search = f"watchkeeper explore {scenario} --variant hardened"
    _, report = said_by(capsys, "explore", str(scenario), *options)
    assert report["command"] == " ".join([search, *options])
    _, again = said_by(capsys, *report["command"].split()[1:])
    assert again["states"] == report["states"]

    scenario.write_text(TEXT)
    _, report = said_by(capsys, "explore", str(scenario), "--max-states", "40", "--budget", "9m")
    assert report["command"] == f"{search} --budget 540s --max-states 40"


def test_what_is_violated_is_reported_with_its_shortest_way(
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
    code, report = said_by(capsys, "explore", str(scenario), "--variant", "documented", "--all")

    violated = {row["name"] for row in report["properties"] if row["verdict"] == "violated"}
    assert code == 1
    assert {"truthful registry", "single ownership"} <= violated
    assert report["complete"]


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
    code, report = said_by(capsys, "explore", str(scenario), option, value)

    assert (code, report["verdict"], report["complete"], report["stopped"]) == (
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
        def __init__(self, system: System, options: SearchOptions, **more: Any) -> None:
            made.append(options.limits)
            super().__init__(system, options, **more)

    monkeypatch.setattr(check, "Search", Counted)
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

    code, report = said_by(capsys, "explore", str(scenario), "--variant", "claims-lost-on-error")

    violated = [row["name"] for row in report["properties"] if row["verdict"] == "violated"]
    assert (code, violated, len(searches)) == (1, ["progress"], 1)


def test_a_scenario_without_bounds_prints_what_is_tried(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(f"{TEXT}timeline: [{{at: 1s, crash: billing/0}}]\n")

    code, report = said_by(capsys, "explore", str(scenario), "--max-states", "100")

    assert code == 2
    assert report["remarks"][0].startswith("the scenario has no `bounds:`")
    assert report["searches"][0]["row"] == "the faults of its timeline"
    assert "crash, restart" in {search["row"] for search in report["searches"]}


def test_bounds_that_are_not_understood_are_reported_with_their_line(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(f"{TEXT}bounds: {{crush: 1}}\n")

    code, report = said_by(capsys, "explore", str(scenario))

    assert code == 4
    [problem] = report["error"]["problems"]
    assert (problem["line"], problem["field"]) == (7, "bounds.crush")
    assert "crash" in problem["message"]


def test_several_clusters_are_refused(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = "zookeeper: {servers: 1}, brokers: 1, topics: {views: {partitions_per_broker: 1}}"
    text = TEXT.replace("  main:", f"  other: {{{second}}}\n  main:")
    scenario.write_text(text.replace("{consumers: 2", "{cluster: main, consumers: 2"))

    assert run_command(["explore", str(scenario)]) == 4

    sentence = "a search takes one cluster; this scenario has several"
    assert sentence in capsys.readouterr().err


def test_groups_that_keep_offsets_in_kafka_are_not_searched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No search has brokers that coordinate groups."""
    assert run_command(["explore", "coordinator-crash"]) == 4
    assert "no search has brokers that coordinate groups" in capsys.readouterr().err


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

    code, report = said_by(capsys, "replay", str(counterexample / "counterexample.yaml"))

    assert (code, report["conforms"], report["reached"]) == (0, True, True)
    assert report["text"].startswith("truthful registry is violated: ")


def test_a_circle_is_reported_kept_and_gone_round(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(f"{TEXT}bounds: {{lost_reply: 1, consumers: 1, partitions: 1}}\n")

    assert run_command(["explore", str(scenario), "--variant", "claims-lost-on-error"]) == 1

    assert "and this for ever:\n" in capsys.readouterr().out
    file = scenario.parent / "runs" / "two-claims-lost-on-error-explore" / "counterexample.yaml"
    kept = yaml.safe_load(file.read_text())["schedule"]
    assert [step["does"] for step in kept["cycle"]] == ["reply"]
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

    names = {path.name for path in counterexample.iterdir()}
    assert names == {"verdict.json", "explore.html", "states.png"}


def test_a_schedule_that_was_changed_is_reported(
    counterexample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = counterexample / "counterexample.yaml"
    file.write_text(file.read_text().replace("does: reply", "does: sings", 1))
    capsys.readouterr()

    code = run_command(["replay", str(file)])

    assert code == 4
    assert "sings" in capsys.readouterr().err


def test_a_file_without_a_schedule_is_reported(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["replay", str(scenario)]) == 4
    assert "two.yaml has no `schedule:`" in capsys.readouterr().err


MIXED = """
name: mixed
about: an upgrade from one variant to the other
variant: documented_ceil
clusters:
  main: {zookeeper: {servers: 1}, brokers: 1, topics: {clicks: {partitions_per_broker: 3}}}
groups:
  billing:
    streams: {clicks: 1}
    consumers: [{variant: documented_ceil}, {variant: documented_ceil}, {variant: documented}]
"""


def test_a_group_that_never_settles_violates_progress(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The search begins earlier then, and shows how the group goes round."""
    scenario.write_text(f"{MIXED}bounds: {{begin: settled, consumers: 2}}\n")

    code, output = said_by(capsys, "explore", str(scenario))

    found = {row["name"]: row for row in output["properties"]}
    assert (code, found["progress"]["verdict"]) == (1, "violated")
    assert "may go round for ever" in found["progress"]["evidence"]
    assert output["remarks"][0].startswith("the group does not come to rest by itself")
    [file] = [name for name in output["files"] if name.endswith("counterexample.yaml")]
    schedule = yaml.safe_load(Path(file).read_text())["schedule"]
    assert schedule["violates"] == "progress"
    assert schedule["cycle"]
    assert run_command(["replay", file]) == 0


def test_a_group_that_never_settles_does_so_within_few_states(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict does not wait for the end of the search."""
    scenario.write_text(f"{MIXED}bounds: {{begin: settled, consumers: 2}}\n")

    code, output = said_by(capsys, "explore", str(scenario), "--max-states", "10")

    found = {row["name"]: row for row in output["properties"]}
    assert (code, output["complete"], found["progress"]["verdict"]) == (1, False, "violated")
    assert "no process is passed over" in found["progress"]["evidence"]


def test_one_that_waits_for_another_settles(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that goes round alone is no violation, if the others end it."""
    text = MIXED.replace("{variant: documented}", "{variant: documented_ceil}")
    scenario.write_text(f"{text}bounds: {{begin: settled, consumers: 2}}\n")

    _, output = said_by(capsys, "explore", str(scenario))

    assert output["bound"].endswith("settled in the beginning")


def test_a_bound_keeps_a_mix_of_variants_and_the_verdict_names_them(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first two consumers are of one variant; the bound has one of each."""
    scenario.write_text(f"{MIXED}bounds: {{consumers: 2}}\n")

    run_command(["explore", str(scenario), "--max-states", "10"])
    shown = capsys.readouterr().out
    _, output = said_by(capsys, "explore", str(scenario), "--max-states", "10")

    assert output["consumers"] == {"documented_ceil": 1, "documented": 1}
    assert shown.startswith("mixed, documented_ceil and documented, every interleaving: ")
    assert "2 consumers (1 of documented_ceil, 1 of documented), 3 partitions" in output["bound"]
    assert output["remarks"] == []


def test_a_bound_without_place_for_a_variant_says_so(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict is not about the variant that was left out."""
    text = MIXED.replace("variant: documented_ceil\n", "variant: documented\n")
    scenario.write_text(f"{text}bounds: {{consumers: 1}}\n")

    run_command(["explore", str(scenario)])
    shown = capsys.readouterr().out

    assert shown.startswith("mixed, documented_ceil, every interleaving: ")
    assert "1 consumer (1 of documented_ceil)" in shown
    assert "the bound has no place for a consumer of documented; a larger" in shown
