"""What the page about live runs shows is run, against a real ZooKeeper."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from real.ensemble import Ensemble
from tests.test_house import HOME
from watchkeeper.cli import run_command

PAGE = HOME / "docs/how-to/run-live.md"
BLOCK = re.compile(r"```text\n(watchkeeper .*\n)+```")
COMMANDS = [
    line
    for block in BLOCK.finditer(PAGE.read_text())
    for line in block[0].splitlines()
    if line.startswith("watchkeeper ")
]
EXAMPLE = "zk.example"


def test_the_page_shows_what_there_is_to_run() -> None:
    """A run, one with messages, one between clusters, a run elsewhere, and a comparison."""
    assert [line.split()[1] for line in COMMANDS] == [*["run"] * 4, "compare"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_shown_command_does_what_is_said(
    command: str, tmp_path: Path, zookeeper: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with 0; what its output is about stands in other tests."""
    here = command.replace(f"{EXAMPLE}:2181", zookeeper.addresses[0])
    words = shlex.split(here.replace(EXAMPLE, "127.0.0.1"))[1:]
    options = ["--no-pictures"] if words[0] == "run" else []
    operator = KazooClient(zookeeper.hosts)
    operator.start()
    operator.ensure_path("/staging")
    operator.stop()
    operator.close()

    code = run_command([*words, *options, "--out", str(tmp_path)])

    said = capsys.readouterr()
    assert code == 0, said.err
    assert said.out.startswith(f"{words[1]}, hardened")
