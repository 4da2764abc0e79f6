"""A group that mixes variants is named by the mix, wherever the variant of a run is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from watchkeeper import simulate
from watchkeeper.api import folder
from watchkeeper.api.result import Result
from watchkeeper.api.tables import console
from watchkeeper.cli.main import run_command
from watchkeeper.reports.figure.title import subtitle
from watchkeeper.run.compare import Compared, show
from watchkeeper.run.comparison import Comparison, Side

TEXT = """
name: mixed
about: a member that runs Kafka 0.8.2 beside one that does not
clusters: {main: {zookeeper: {servers: 1}, brokers: 1, layout: "0.8",
                  topics: {clicks: {partitions: 2}}}}
groups:
  billing:
    streams: {clicks: 1}
    consumers: [{id: a, variant: kafka_08}, {id: b}]
settle: 5s
"""
MIX = "kafka_08 and hardened"


@pytest.fixture(autouse=True)
def in_a_folder_with_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mixed.yaml").write_text(TEXT)


@pytest.fixture
def result() -> Result:
    return simulate("mixed.yaml")


def test_a_run_names_the_mix(capsys: pytest.CaptureFixture[str]) -> None:
    """In the first line, in the JSON, and in the title of each page and picture."""
    run_command(["run", "mixed.yaml"])
    home = Path("runs/latest").resolve()

    assert capsys.readouterr().out.startswith(f"mixed, {MIX}, simulated, seed 0: ")
    verdict = json.loads((home / "verdict.json").read_text())
    assert (verdict["variant"], verdict["consumers"]) == (
        "hardened",
        {"kafka_08": 1, "hardened": 1},
    )
    assert f"<title>mixed, {MIX} · simulated" in (home / "ownership.html").read_text()
    assert f"<title>mixed, {MIX} · simulated" in (home / "spacetime.html").read_text()
    assert subtitle(folder.read_trace(home).header) == f"{MIX} · simulated · seed 0"


def test_a_group_of_one_variant_has_its_name(result: Result) -> None:
    """The variant of the run, and a variant that all consumers of a group have instead."""
    plain, other = (
        simulate("consumer-crash"),
        TEXT.replace("{id: b}", "{id: b, variant: kafka_08}"),
    )
    Path("other.yaml").write_text(other)

    assert subtitle(plain.trace.header) == "hardened · simulated · seed 0"
    assert subtitle(simulate("other.yaml").trace.header) == "kafka_08 · simulated · seed 0"
    assert f"mixed, {MIX}, seed 0" in repr(result)


def test_a_comparison_names_the_mix(result: Result, capsys: pytest.CaptureFixture[str]) -> None:
    side = Side((result,))
    done = Compared(Comparison(side, side, None), (Path("sim"), Path("live")))

    show(done, console())

    assert capsys.readouterr().out.startswith(f"mixed, {MIX}, 1 simulated run and 1 live one: ")
    assert done.to_json()["consumers"] == {"kafka_08": 1, "hardened": 1}


def test_a_sweep_names_the_mix_of_each_cell(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    of = ["--variants", "hardened,kafka_08", "--seeds", "1", "--out", "swept"]
    run_command(["sweep", "mixed.yaml", *of, "--runner", "process", "--no-shrink"])
    shown = capsys.readouterr().out

    assert shown.startswith(f"mixed, {MIX}, kafka_08, 2 x 1 runs: ")
    assert f"\n{MIX}  " in shown
    assert "\nkafka_08 " in shown
    assert f"mixed, {MIX}, kafka_08 · 2 runs" in Path("swept/sweep.html").read_text()
