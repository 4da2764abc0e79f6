"""The folder of a run: it holds what the run is judged again with, wherever it is read."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from watchkeeper import simulate
from watchkeeper.analyze.runs import Gathered, gathered
from watchkeeper.api.folder import PROFILE, SCENARIO, read_trace
from watchkeeper.api.profile import profile_of
from watchkeeper.api.run_files import scenario_text
from watchkeeper.cli.main import run_command
from watchkeeper.model.judgement.judge import judge
from watchkeeper.pipeline.analysis.runs import Run
from watchkeeper.scenarios import from_text

TEXT = """
name: mine
about: A consumer crashes, in a scenario of a user.
clusters:
  main: {zookeeper: {servers: 1}, brokers: 1, topics: {clicks: {partitions: 3}}}
groups:
  billing: {consumers: 2, streams: {clicks: 1}}
timeline:
  - {at: 4s, crash: billing/1}
settle: 10s
"""
LATENCIES = "watchkeeper_profile: 1\nzookeeper: {simulation: {read_us: 90}}\n"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Begins in a folder with a scenario; the returned call moves to another one."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (here / "mine.yaml").write_text(TEXT)
    monkeypatch.chdir(here)
    return lambda: monkeypatch.chdir(there)


def command(*words: str) -> int:
    """Run a command without figures."""
    return run_command(list(words))


def found_in(tmp_path: Path, name: str) -> Gathered:
    """The runs that `analyze` finds."""
    return gathered((tmp_path / "here" / name,))


def test_a_run_is_judged_again_from_any_folder(
    tmp_path: Path, elsewhere: Callable[[], None]
) -> None:
    """Also after the scenario file has changed, or is gone."""
    assert command("run", "mine.yaml", "--no-pictures") == 0
    Path("mine.yaml").write_text(TEXT.replace("consumers: 2", "consumers: 5"))
    elsewhere()

    [run] = found_in(tmp_path, "runs").runs

    assert run.why_no_plan == ""
    assert run.plan == from_text("mine.yaml", TEXT).plan()
    home = (tmp_path / "here" / "runs" / "latest").resolve()
    again = judge(run.plan, read_trace(home), ())
    recorded = json.loads((home / "verdict.json").read_text())["properties"]
    judged_again = {finding.claim.name: finding.evidence for finding in again.findings}
    for row in recorded:
        if row["name"] not in ("faults struck", "progress"):  # they need the effects of faults
            assert judged_again[row["name"]] == row["evidence"]


def simulated_again(run: Run, out: Path) -> str:
    """The fingerprint of a run that is repeated by the command of an analysis."""
    words = shlex.split(run.command)
    assert words[:2] == ["watchkeeper", "run"]
    run_command([*words[1:], "--no-pictures", "--out", str(out)])
    verdict = out / "latest" / "verdict.json"
    fingerprint: str = json.loads(verdict.read_text())["fingerprint"]
    return fingerprint


def test_its_command_gives_the_same_run_from_any_folder(
    tmp_path: Path, elsewhere: Callable[[], None]
) -> None:
    """With the latency profile of the run."""
    Path("slow.yaml").write_text(LATENCIES)
    assert command("run", "mine.yaml", "--no-pictures", "--profile", "slow.yaml") == 0
    elsewhere()

    [run] = found_in(tmp_path, "runs").runs

    home = (tmp_path / "here" / "runs" / "latest").resolve()
    assert (home / PROFILE).read_text() == LATENCIES
    assert profile_of(home / PROFILE).digest == run.header.profile
    assert simulated_again(run, tmp_path / "again") == run.fingerprint


def test_a_shipped_scenario_keeps_its_short_command(
    tmp_path: Path, elsewhere: Callable[[], None]
) -> None:
    """A name is easier to read than a path, where it leads to the same text."""
    assert command("run", "steady-join", "--no-pictures", "--seed", "3") == 0

    [run] = found_in(tmp_path, "runs").runs

    assert run.command == "watchkeeper run steady-join --variant hardened --seed 3"


def test_traces_of_a_sweep_are_judged_again_from_any_folder(
    tmp_path: Path, elsewhere: Callable[[], None]
) -> None:
    """Those of a scenario file, and of values that the command has changed."""
    pytest.importorskip("pyarrow")
    of = ["sweep", "mine.yaml", "--seeds", "2", "--runner", "process", "--no-shrink"]
    assert run_command([*of, "--out", "plain"]) == 0
    assert run_command([*of, "--set", "settle=8s,9s", "--out", "changed"]) == 0
    elsewhere()

    [plain] = found_in(tmp_path, "plain").runs
    changed = found_in(tmp_path, "changed").runs

    assert plain.plan == from_text("mine.yaml", TEXT).plan()
    assert changed
    for run in changed:
        assert run.plan is not None
        assert run.plan.settle_us in (8_000_000, 9_000_000)
    assert simulated_again(changed[0], tmp_path / "again") == changed[0].fingerprint


def test_a_trace_without_its_scenario_says_so(
    tmp_path: Path, elsewhere: Callable[[], None]
) -> None:
    """Only what needs no plan can be computed then."""
    command("run", "mine.yaml", "--no-pictures")
    home = (tmp_path / "here" / "runs" / "latest").resolve()
    (home / SCENARIO).unlink()

    [run] = found_in(tmp_path, "runs").runs

    assert run.plan is None
    assert run.why_no_plan == "scenario.yaml is not beside its trace"


def test_the_tick_of_an_existing_zookeeper_is_kept() -> None:
    """A live run takes the tick that it finds, and is judged by it."""
    result = simulate("steady-join")
    [cluster] = result.plan.clusters
    ticked = replace(cluster, zookeeper=replace(cluster.zookeeper, tick_us=700_000))
    live = replace(result, plan=replace(result.plan, clusters=(ticked,)))

    assert scenario_text(result) == result.scenario.text
    assert from_text("kept.yaml", scenario_text(live)).plan("hardened") == live.plan


def test_a_search_is_replayed_from_its_folder(
    tmp_path: Path, elsewhere: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its counterexample holds the whole scenario."""
    assert command("explore", "mine.yaml", "--variant", "documented") == 1
    elsewhere()

    home = tmp_path / "here" / "runs" / "mine-documented-explore"
    assert command("replay", str(home)) == 0
