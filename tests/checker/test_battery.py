"""The searches of a scenario without bounds: which there are, and what they say together."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from watchkeeper.check.battery import FAULTS, OF_THREE, Battery, cells_of, explore_battery
from watchkeeper.check.battery_report import cell_in_words
from watchkeeper.checker.search.search import Limits, SearchOptions
from watchkeeper.cli.main import run_command
from watchkeeper.model.plan.bounds import FAULTS as KINDS
from watchkeeper.model.plan.bounds import TOPIC_CHANGES
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.scenarios import Scenario, from_text

TEXT = """
name: small
about: members of a group share the partitions of one topic
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: 1,
                  topics: {{clicks: {{partitions_per_broker: {partitions}}}}}}}}}
groups: {{billing: {{cluster: main, consumers: {consumers}, streams: {{clicks: 1}}}}}}
"""
LONG_S = 3600.0
"""A budget that no machine uses up here."""


def small(consumers: int = 2, partitions: int = 1) -> Scenario:
    return from_text("small.yaml", TEXT.format(consumers=consumers, partitions=partitions))


def searched(scenario: Scenario, variant: str, states: int | None = None) -> Battery:
    options = SearchOptions(Limits(states=states), finds_all=True)
    return explore_battery(scenario, variant, budget_s=LONG_S, options=options)


@cache
def of_kafka_07() -> Battery:
    """Some of its searches violate a property, and some do not end."""
    return searched(small(), "kafka_07", states=1_000)


def test_every_kind_of_fault_and_every_change_of_topics_has_a_row() -> None:
    kinds = {kind.value for kind in (*KINDS, *TOPIC_CHANGES)}
    assert {kind for faults in FAULTS.values() for kind in faults} == {
        *kinds - {"abandon"},  # no client avoids what it violates
        "broker_crash",
        "broker_restart",
    }


def test_each_row_is_searched_with_and_without_messages_fresh_and_settled() -> None:
    scenario = small()

    cells, remarks = cells_of(scenario.plan())

    found = {(cell.row, cell.bounds.begin, cell.bounds.messages) for cell in cells[1:]}
    assert found == {
        (row, begin, messages)
        for row in FAULTS
        for begin in ("fresh", "settled")
        for messages in (0, 1)
    }
    assert len(remarks) == 1


def test_a_group_of_three_is_searched_with_three_members_too() -> None:
    scenario = small(consumers=4)

    cells, _ = cells_of(scenario.plan())

    assert {cell.row for cell in cells if cell.bounds.consumers == 3} == set(OF_THREE)


TWO_GROUPS = """
name: two
about: two groups share a topic
clusters: {main: {zookeeper: {servers: 1}, brokers: 1,
                  topics: {clicks: {partitions_per_broker: 1}}}}
groups:
  billing: {cluster: main, consumers: 2, streams: {clicks: 1}}
  audit: {cluster: main, consumers: 1, streams: {clicks: 1}}
"""


def test_each_of_several_groups_is_searched_alone() -> None:
    scenario = from_text("two.yaml", TWO_GROUPS)

    cells, remarks = cells_of(scenario.plan())

    assert {cell.group for cell in cells} == {"", "billing", "audit"}
    assert {tuple(group.name for group in cell.plan.groups) for cell in cells[1:]} == {
        ("billing",),
        ("audit",),
    }
    assert "each group is searched alone, but for the faults of the timeline" in remarks


@pytest.mark.parametrize("consumers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_sound_client_holds_in_every_search_and_exercises_every_property(
    consumers: int,
) -> None:
    battery = searched(small(consumers), "hardened")

    assert battery.verdict is Verdict.HOLDS
    assert battery.complete == len(battery.cells)
    assert {finding.verdict for finding in battery.findings} == {Verdict.HOLDS}
    assert all(finding.exercised for finding in battery.findings)


@pytest.mark.slow
def test_what_no_single_search_of_the_timeline_shows_is_found() -> None:
    """Partitions are added to a group at rest; the timeline is empty."""
    battery = of_kafka_07()

    assert battery.verdict is Verdict.VIOLATED
    assert ("partitions added", "settled") in {
        (search.cell.row, search.cell.column)
        for search in battery.cells
        if search.verdict is Verdict.VIOLATED
    }


def test_a_search_that_does_not_end_leaves_the_scenario_unknown() -> None:
    battery = searched(small(partitions=2), "hardened", states=300)

    assert battery.verdict is Verdict.UNKNOWN
    assert 0 < battery.complete < len(battery.cells)


def test_a_budget_that_is_used_up_leaves_searches_that_never_began() -> None:
    battery = explore_battery(small(), "hardened", budget_s=1e-9)

    assert {search.explored for search in battery.cells} == {None}
    assert (battery.verdict, battery.complete) == (Verdict.UNKNOWN, 0)


# --- the command ------------------------------------------------------------------------


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "small.yaml"
    file.write_text(TEXT.format(consumers=2, partitions=1))
    return file


def test_the_table_has_a_row_for_each_fault(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command(["explore", str(scenario), "--budget", "60m", "--max-states", "300"])

    text = capsys.readouterr().out
    assert code == 2
    assert all(row in text for row in FAULTS)
    assert "+ …" in text
    assert "a larger --budget searches more of them" in text


def test_the_table_says_what_each_fault_violates(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row that violates a property had a number of states, as one that holds."""
    arguments = ["--variant", "kafka_07", "--all", "--budget", "60m", "--max-states", "800"]
    code = run_command(["explore", str(scenario), *arguments])

    [row] = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("partitions added")
    ]
    assert code == 1
    assert "progress (" in row


def test_a_search_that_violates_and_does_not_end_is_not_complete() -> None:
    """It was counted as complete, beside a cell that said the opposite."""
    battery = of_kafka_07()

    marked = [one for one in battery.cells if cell_in_words(one).endswith("+ …")]
    assert {one.verdict for one in marked} == {Verdict.VIOLATED, Verdict.UNKNOWN}
    assert battery.complete == len(battery.cells) - len(marked)


def test_a_violation_ends_the_battery_with_its_counterexample(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command(["explore", str(scenario), "--variant", "kafka_07", "--json"])

    report = json.loads(capsys.readouterr().out)
    assert (code, report["verdict"]) == (1, "violated")
    assert report["searches"][-1]["verdict"] == "violated"
    assert [Path(file).name for file in report["files"]][1:] == [
        "counterexample.yaml",
        "test_counterexample.py",
        "counterexample.html",
    ]
    assert run_command(["replay", report["files"][1]]) == 0


def test_a_budget_for_a_scenario_with_bounds_is_refused(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(f"{scenario.read_text()}bounds: {{crash: 1}}\n")

    assert run_command(["explore", str(scenario), "--budget", "1m"]) == 4
    assert "--max-seconds" in capsys.readouterr().err


@pytest.mark.parametrize("budget", ["0s", "5", "soon"])
def test_a_budget_is_a_duration_with_its_unit(
    scenario: Path, capsys: pytest.CaptureFixture[str], budget: str
) -> None:
    assert run_command(["explore", str(scenario), "--budget", budget]) == 4
    assert "duration" in capsys.readouterr().err or budget == "0s"
