"""`watchkeeper experiment`: names, machines and settings, and what the newer experiments show."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.cli.main import run_command
from watchkeeper.experiment.apparatus.rows import Outcome
from watchkeeper.experiment.catalogue import EXPERIMENTS
from watchkeeper.experiment.clients.chain import chaining
from watchkeeper.experiment.clients.two_phase_commit import AWAY_S, blocked_s
from watchkeeper.experiment.storage.ahead import reading_ahead
from watchkeeper.experiment.storage.double_cache import held_twice, second_pass
from watchkeeper.sim.disk.host_costs import GIB, MACHINES

PAGE = MACHINES["page"]
SMALL = replace(PAGE, memory_bytes=GIB // 2)
MB = 1_000_000


def said_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code, the output and the errors of the command."""
    code = run_command(["experiment", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def values(outcome: Outcome) -> dict[str, float]:
    return {row.what: row.value for row in outcome.rows}


# --- the command -----------------------------------------------------------------------


def test_the_list_has_each_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said_by(capsys, "--list")
    assert code == 0
    names = [line.split()[0] for line in out.splitlines()[1:] if not line.startswith(" ")]
    assert names == list(EXPERIMENTS)


def test_an_experiment_stands_beside_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said_by(capsys, "message-sets")
    assert code == 0
    assert EXPERIMENTS["message-sets"].states in " ".join(out.split())
    assert "agrees" in out


def test_a_setting_changes_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    def first(*arguments: str) -> Any:
        code, out, _ = said_by(capsys, "message-sets", "--json", *arguments)
        assert code == 0
        return json.loads(out)

    usual, far = first(), first("--set", "hop_us=5000")
    assert far["machine"] == "page with hop_us=5000"
    [usual_rows, far_rows] = [one["experiments"][0]["rows"] for one in (usual, far)]
    assert far_rows[0]["value"] < usual_rows[0]["value"] / 10


def test_a_measured_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text("watchkeeper_profile: 1\ndisk: {simulation: {hop_us: 5000}}\n")
    code, out, _ = said_by(capsys, "message-sets", "--json", "--profile", str(profile))
    assert code == 0
    assert json.loads(out)["machine"] == str(profile)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("exctly-once",),
            "no experiment has the name 'exctly-once'. Did you mean 'exactly-once'?",
        ),
        (("heap", "--set", "memry_bytes=3"), "did you mean 'memory_bytes'?"),
        (("heap", "--set", "memory_bytes=0"), "memory_bytes: 0 is too small"),
        (("heap", "--set", "cores"), "'cores' has no `=`; write FIGURE=VALUE"),
        (("heap", "--profile", "absent.yaml"), "absent.yaml: cannot be read"),
        (("message-sets", "--plot", "absent/x.png"), "absent/x.png cannot be written"),
    ],
)
def test_mistakes(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    code, _, errors = said_by(capsys, *arguments)
    assert code == 4
    assert sentence in errors


def test_a_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "outcome.png"
    assert said_by(capsys, "message-sets", "compression", "--plot", str(path))[0] == 0
    one = path.read_bytes()
    assert said_by(capsys, "message-sets", "compression", "--plot", str(path))[0] == 0
    assert path.read_bytes() == one
    assert one.startswith(b"\x89PNG")


# --- what they show --------------------------------------------------------------------


def test_a_cache_in_a_heap_holds_what_the_pagecache_holds() -> None:
    """As long as both have room; with more data, the second pass reads from the disk again."""
    quarter, most = SMALL.memory_bytes // 4 // MB * MB, SMALL.memory_bytes * 9 // 10 // MB * MB
    assert held_twice(SMALL, quarter) == 1
    assert second_pass(SMALL, most, heap_bytes=0).share == 0
    assert second_pass(SMALL, most, heap_bytes=SMALL.memory_bytes // 2).share > 0.5


def test_reading_ahead_saves_requests() -> None:
    found = values(reading_ahead(PAGE))
    ahead = found["requests of the disk, with read-ahead"]
    assert 10 * ahead < found["requests of the disk, without read-ahead"]


def test_a_chain_that_pushes_fills_up_and_loses() -> None:
    """More memory in each node only delays it."""
    found = values(chaining(PAGE))
    assert found["push: sets lost, of 3,000"] > 0
    assert found["pull: sets lost between the logs"] == 0
    assert found["pull: memory that the nodes hold at the end"] < 10


@pytest.mark.parametrize("away_s", AWAY_S)
def test_a_prepared_store_waits_for_its_coordinator(away_s: int) -> None:
    """A transaction of one store ends with the connection of its client."""
    assert blocked_s(PAGE, 2, away_s) >= away_s
    assert blocked_s(PAGE, 1, away_s) < 2
